"""NVML access and the NVML sampler, on a stand-in for module pynvml that answers as recorded drivers do."""

# ruff: noqa: N802 - the stand-in's functions have the library's names

import os
from types import SimpleNamespace

import pytest

from tritonchaos.errors import SamplerError
from tritonchaos.nvml import DeviceMemory, Gpu, NoNvml, Nvml, visible_gpus
from tritonchaos.plugins import Group, SampleScope
from tritonchaos.samplers.nvml import NvmlSampler
from tritonchaos.units import GIB, MIB

A, B = "GPU-aaaaaaaa-0000-0000-0000-000000000001", "GPU-bbbbbbbb-0000-0000-0000-000000000002"


class NVMLError(Exception):
    """As in pynvml: carries NVML's return value."""

    def __init__(self, value):
        super().__init__(f"NVML return value {value}")
        self.value = value


class Driver:
    """Answers like module pynvml; handles are UUIDs. Values of the constants are those of nvml.h."""

    NVMLError = NVMLError
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_NOT_FOUND = 6
    NVML_ERROR_INSUFFICIENT_SIZE = 7
    NVML_ERROR_LIBRARY_NOT_FOUND = 12
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25
    nvmlMemory_v2 = 33554472  # noqa: N815 - the library's name

    def __init__(self, uuids=(A,)):
        self.uuids = uuids
        self.used = dict.fromkeys(uuids, 4 * MIB)
        self.compute = {uuid: {} for uuid in uuids}
        self.graphics = {uuid: {} for uuid in uuids}
        self.lost = set()
        self.has_version_2 = True
        self.list_error = None
        self.mig = set()
        self.shutdowns = 0

    def nvmlSystemGetDriverVersion(self):
        return "580.159.03"

    def nvmlDeviceGetCount(self):
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.nvmlDeviceGetHandleByUUID(self.uuids[index])

    def nvmlDeviceGetHandleByUUID(self, uuid):
        if uuid not in self.used:
            raise NVMLError(self.NVML_ERROR_NOT_FOUND)
        return self._answering(uuid)

    def nvmlDeviceGetUUID(self, handle):
        return handle

    def nvmlDeviceGetName(self, handle):
        return "NVIDIA H200"

    def nvmlDeviceGetMigMode(self, handle):
        return [int(handle in self.mig), 0]

    def nvmlDeviceGetMemoryInfo(self, handle, version=None):
        self._answering(handle)
        used, reserved, total = self.used[handle], 600 * MIB, 140 * GIB
        if version is None:
            return SimpleNamespace(total=total, used=used + reserved, free=total - used - reserved)
        if not self.has_version_2:
            raise NVMLError(self.NVML_ERROR_FUNCTION_NOT_FOUND)
        return SimpleNamespace(total=total, used=used, reserved=reserved, free=total - used - reserved)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        if self.list_error is not None:
            raise NVMLError(self.list_error)
        return self._processes(self.compute, handle)

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle):
        return self._processes(self.graphics, handle)

    def nvmlShutdown(self):
        self.shutdowns += 1

    def _answering(self, handle):
        if handle in self.lost:
            raise NVMLError(self.NVML_ERROR_GPU_IS_LOST)
        return handle

    def _processes(self, listed, handle):
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in listed[self._answering(handle)].items()]


@pytest.fixture
def driver():
    return Driver()


def make_sampler(driver, pids_are_ours=True):
    return NvmlSampler(connect=lambda: Nvml(driver), pids_are_ours=pids_are_ours)


def opened(driver, pid, **kind):
    sampler = make_sampler(driver, **kind)
    assert sampler.open(SampleScope(pid=pid, gpu_uuids=driver.uuids)) == {}
    return sampler


# --- NVML ----------------------------------------------------------------------------------------


def test_version_2_keeps_reserved_apart_and_version_1_is_the_fallback(driver):
    assert Nvml(driver).memory(A) == DeviceMemory(140 * GIB, 4 * MIB, 600 * MIB, 140 * GIB - 604 * MIB)

    driver.has_version_2 = False

    assert Nvml(driver).memory(A) == DeviceMemory(140 * GIB, 604 * MIB, None, 140 * GIB - 604 * MIB)


def test_a_lost_gpu_is_an_error_and_never_a_number(driver):
    nvml = Nvml(driver)
    nvml.memory(A)
    driver.lost.add(A)

    with pytest.raises(SamplerError, match=f"memory of {A}"):
        nvml.memory(A)
    with pytest.raises(SamplerError, match=f"processes of {A}"):
        nvml.processes(A)


def test_gpus_are_listed_and_one_that_does_not_answer_is_named():
    driver = Driver((A, B))
    driver.mig.add(B)
    nvml = Nvml(driver)
    assert nvml.gpus() == [Gpu(0, A, "NVIDIA H200", False), Gpu(1, B, "NVIDIA H200", True)]

    driver.lost.add(A)

    assert [gpu.uuid for gpu in nvml.gpus()] == [B]
    assert [problem.startswith("NVML cannot read the GPU number 0") for problem in nvml.problems] == [True]


@pytest.mark.parametrize(
    "error", ["NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_NO_PERMISSION", "NVML_ERROR_INSUFFICIENT_SIZE"]
)
def test_a_driver_that_cannot_list_processes_gives_none(driver, error):
    driver.list_error = getattr(driver, error)

    assert Nvml(driver).processes(A) is None


def test_memory_that_is_not_available_is_none(driver):
    driver.compute[A] = {7: None, 8: 2**64 - 1, 9: MIB}

    assert Nvml(driver).processes(A) == {7: None, 8: None, 9: MIB}


def test_each_use_is_given_back_once(driver):
    nvml = Nvml(driver)
    nvml.close()
    nvml.close()

    assert driver.shutdowns == 1


GPUS = [Gpu(0, A, "NVIDIA H200", False), Gpu(1, B, "NVIDIA H200", False)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, (A, B)),
        (f"{B},{A}", (B, A)),
        ("GPU-bbbb", (B,)),
        ("GPU-", ()),
        ("", ()),
        ("-1", ()),
        ("1", (B,)),
        (f"{A},9,{B}", (A,)),
        ("MIG-5c1f", ("MIG-5c1f",)),
    ],
)
def test_visible_gpus_follow_cuda_visible_devices(value, expected):
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}

    assert visible_gpus(GPUS, environment).uuids == expected


def test_a_number_in_cuda_visible_devices_is_doubtful_unless_the_order_is_known():
    by_number = {"CUDA_VISIBLE_DEVICES": "1"}

    assert "CUDA may count otherwise" in visible_gpus(GPUS, by_number).notes[0]
    assert visible_gpus(GPUS, by_number | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).notes == ()
    assert visible_gpus(GPUS[:1], {"CUDA_VISIBLE_DEVICES": "0"}).notes == ()


# --- sampler -------------------------------------------------------------------------------------


def test_reads_used_reserved_and_the_servers_own_memory(driver):
    driver.compute[A] = {os.getpid(): 500 * MIB}
    driver.used[A] = 504 * MIB
    sampler = opened(driver, os.getpid())

    assert sampler.read(Group.FAST) == {
        "nvml_device_used_bytes": 504 * MIB,
        "nvml_device_reserved_bytes": 600 * MIB,
        "nvml_process_used_bytes": 500 * MIB,
        "nvml_others_used_bytes": 4 * MIB,
    }
    assert sampler.notes() == ()


def test_what_others_use_is_what_is_not_the_servers(driver):
    driver.compute[A] = {os.getpid(): 500 * MIB, 1: 96 * MIB}
    driver.used[A] = 600 * MIB
    assert opened(driver, os.getpid()).read(Group.FAST)["nvml_others_used_bytes"] == 100 * MIB


def test_where_the_servers_process_is_not_known_others_are_those_that_the_driver_does_not_list(driver):
    driver.compute[A] = {99_000_001: 500 * MIB}
    driver.used[A] = 510 * MIB
    sampler = make_sampler(driver, pids_are_ours=False)
    sampler.open(SampleScope(os.getpid(), (A,)))
    read = sampler.read(Group.FAST)
    assert "nvml_process_used_bytes" not in read
    assert read["nvml_others_used_bytes"] == 10 * MIB
    assert any("99000001" in note for note in sampler.notes())


def test_without_memory_of_processes_nothing_is_said_of_others_but_they_are_named(driver):
    driver.compute[A] = {1: None}
    sampler = make_sampler(driver)
    sampler.open(SampleScope(os.getpid(), (A,)))
    assert "nvml_others_used_bytes" not in sampler.read(Group.FAST)
    assert any("pid 1 " in note for note in sampler.notes())


def test_tells_how_much_memory_there_is(driver):
    assert opened(driver, os.getpid()).capacities() == {"nvml_device_used_bytes": 140 * GIB}


def test_a_stub_counts_as_the_servers_and_a_stranger_does_not(driver):
    # Seen from our parent we are what a stub is to its server; process 1 is nobody's child.
    driver.compute[A] = {os.getpid(): 3 * MIB, os.getppid(): 500 * MIB, 1: GIB}
    sampler = opened(driver, os.getppid())

    assert sampler.read(Group.FAST)["nvml_process_used_bytes"] == 503 * MIB
    assert [f"{A} is not idle: pid 1 " in note and "1 GiB" in note for note in sampler.notes()] == [True]


def test_a_server_that_the_driver_does_not_list_holds_nothing(driver):
    assert opened(driver, os.getpid()).read(Group.FAST)["nvml_process_used_bytes"] == 0


def test_a_driver_without_memory_per_process_makes_it_unavailable(driver):
    driver.compute[A] = {1: None}
    sampler = make_sampler(driver)

    why = sampler.open(SampleScope(pid=os.getpid(), gpu_uuids=(A,)))

    assert list(why) == ["nvml_process_used_bytes"]
    assert "nvml_process_used_bytes" not in sampler.read(Group.FAST)


def test_in_another_pid_namespace_an_unlisted_server_is_unknown_and_not_zero(driver):
    driver.compute[A] = {3_999_999: GIB}
    sampler = opened(driver, os.getpid(), pids_are_ours=False)

    assert "nvml_process_used_bytes" not in sampler.read(Group.FAST)
    assert "another PID namespace" in sampler.notes()[0]

    driver.compute[A][os.getpid()] = MIB
    assert sampler.read(Group.FAST)["nvml_process_used_bytes"] == MIB
    del driver.compute[A][os.getpid()]
    assert sampler.read(Group.FAST)["nvml_process_used_bytes"] == 0, "it was listed once, so pids are ours"


def test_several_gpus_are_told_apart_by_uuid():
    driver = Driver((A, B))
    driver.compute[B] = {os.getpid(): MIB}
    read = opened(driver, os.getpid()).read(Group.ALL)

    assert read[f"nvml_process_used_bytes@{A}"] == 0
    assert read[f"nvml_process_used_bytes@{B}"] == MIB
    assert set(read) == {
        f"nvml_{what}_bytes@{uuid}"
        for what in ("device_used", "device_reserved", "process_used", "others_used")
        for uuid in (A, B)
    }


def test_a_lost_gpu_is_reported_once_with_its_metrics_and_the_other_is_read_on():
    driver = Driver((A, B))
    sampler = opened(driver, os.getpid())
    driver.lost.add(A)

    with pytest.raises(SamplerError) as caught:
        sampler.read(Group.FAST)

    assert all(metric.endswith(f"@{A}") for metric in caught.value.metrics)
    assert len(caught.value.metrics) == 3
    assert {metric.partition("@")[2] for metric in sampler.read(Group.FAST)} == {B}
    why = sampler.open(SampleScope(pid=os.getpid(), gpu_uuids=(A, B)))
    assert {metric.partition("@")[2] for metric in why} == {A}


def test_a_gpu_that_is_lost_between_two_servers_is_reported_as_lost():
    driver = Driver((A, B))
    sampler = opened(driver, os.getpid())
    sampler.read(Group.FAST)
    driver.lost.add(A)
    scope = SampleScope(pid=os.getpid(), gpu_uuids=(A, B))

    assert {metric.partition("@")[2] for metric in sampler.open(scope)} == {A}
    with pytest.raises(SamplerError) as caught:
        sampler.read(Group.FAST)

    assert {metric.partition("@")[2] for metric in caught.value.metrics} == {A}
    assert {metric.partition("@")[2] for metric in sampler.read(Group.FAST)} == {B}


def test_a_driver_that_is_gone_when_the_next_server_starts_is_an_error(driver):
    connections = [Nvml(driver), NoNvml("the driver is not loaded", "load it")]
    sampler = NvmlSampler(connect=lambda: connections.pop(0), pids_are_ours=True)
    scope = SampleScope(pid=os.getpid(), gpu_uuids=(A,))
    sampler.open(scope)
    sampler.read(Group.FAST)

    with pytest.raises(SamplerError, match="NVML is gone: the driver is not loaded"):
        sampler.open(scope)


def test_old_driver_has_no_reserved_and_says_so(driver):
    driver.has_version_2 = False
    sampler = make_sampler(driver)

    why = sampler.open(SampleScope(pid=os.getpid(), gpu_uuids=(A,)))

    assert list(why) == ["nvml_device_reserved_bytes"]
    assert "nvml_device_reserved_bytes" not in sampler.read(Group.FAST)
    assert "used includes reserved" in sampler.notes()[0]


def test_a_gpu_in_use_by_nobody_listed_is_noted_before_the_server_starts(driver):
    driver.used[A] = 3 * GIB
    sampler = make_sampler(driver)

    sampler.open(SampleScope(pid=None, gpu_uuids=(A,)))

    assert "3 GiB in use before the server started" in sampler.notes()[0]
    assert set(sampler.read(Group.ALL)) == {"nvml_device_used_bytes", "nvml_device_reserved_bytes"}


def test_mig_mode_and_programs_that_only_draw_are_noted(driver):
    driver.mig.add(A)
    driver.graphics[A] = {1: 20 * MIB}
    notes = opened(driver, os.getpid()).notes()

    assert "MIG mode" in notes[0]
    assert "pid 1 " in notes[1]


def test_an_earlier_server_is_no_neighbour(driver):
    driver.compute[A] = {os.getppid(): MIB}
    sampler = opened(driver, os.getppid())
    sampler.read(Group.FAST)

    sampler.open(SampleScope(pid=None, gpu_uuids=(A,)))
    sampler.read(Group.FAST)

    assert sampler.notes() == ()


def test_without_a_driver_every_metric_has_the_reason():
    sampler = NvmlSampler(connect=lambda: NoNvml("no NVIDIA driver", "none needed"))

    why = sampler.open(SampleScope(pid=os.getpid()))

    assert set(why.values()) == {"no NVIDIA driver"}
    assert set(why) == set(sampler.quanta())
    assert (sampler.read(Group.ALL), sampler.notes()) == ({}, ())


def test_a_gpu_that_does_not_exist_is_a_reason_and_no_exception(driver):
    why = make_sampler(driver).open(SampleScope(pid=1, gpu_uuids=(B,)))

    assert all(f"GPU {B}" in reason for reason in why.values())
    assert len(why) == 3
