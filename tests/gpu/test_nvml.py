"""NVML sampler on a real GPU, with a process of ours that takes device memory through the CUDA driver."""

import subprocess
import sys
import time

import pytest

from tritonchaos.nvml import NoNvml, open_nvml, visible_gpus
from tritonchaos.plugins import Group, SampleScope
from tritonchaos.samplers.nvml import NvmlSampler
from tritonchaos.sampling import Sampling
from tritonchaos.units import MIB

pytestmark = pytest.mark.gpu

PAGE = 2 * MIB

# Takes 64 MiB at "take", gives it back at "give"; says "no GPU" where CUDA does not start.
CUDA_PROCESS = """
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    print("no GPU:", error, flush=True)
    sys.exit()
def check(result):
    if result:
        print("no GPU: CUDA error", result, flush=True)
        sys.exit()
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
print("ready", flush=True)
for line in sys.stdin:
    if line == "take\\n":
        check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64 << 20)))
    else:
        check(cuda.cuMemFree_v2(memory))
    print("done", flush=True)
"""


@pytest.fixture
def nvml():
    nvml = open_nvml()
    if isinstance(nvml, NoNvml):
        pytest.skip(nvml.reason)
    yield nvml
    nvml.close()


@pytest.fixture
def cuda_process(nvml):
    process = subprocess.Popen(
        [sys.executable, "-c", CUDA_PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    said = process.stdout.readline()
    if said.startswith("no GPU"):
        process.communicate()
        pytest.skip(said.strip())
    yield process
    process.communicate()


def tell(process, word):
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def first_gpu(nvml):
    return visible_gpus(nvml.gpus(), {}).uuids[0]


def opened(nvml, pid):
    sampler = NvmlSampler()
    why = sampler.open(SampleScope(pid=pid, gpu_uuids=(first_gpu(nvml),)))
    return sampler, why


def test_every_gpu_has_a_uuid_and_memory(nvml):
    gpus = nvml.gpus()

    assert gpus
    assert all(gpu.uuid.startswith("GPU-") for gpu in gpus)
    for gpu in gpus:
        memory = nvml.memory(gpu.uuid)
        assert memory.total_bytes > memory.used_bytes >= 0
        assert memory.reserved_bytes is not None, "a driver of today has version 2 of the query"


def test_64_mib_are_seen_on_the_device_and_come_back(nvml, cuda_process):
    sampler, _ = opened(nvml, cuda_process.pid)
    before = sampler.read(Group.FAST)["nvml_device_used_bytes"]

    tell(cuda_process, "take")
    taken = sampler.read(Group.FAST)["nvml_device_used_bytes"] - before
    tell(cuda_process, "give")
    left = sampler.read(Group.FAST)["nvml_device_used_bytes"] - before
    sampler.close()

    assert abs(taken - 64 * MIB) <= PAGE
    assert abs(left) <= PAGE


def test_64_mib_are_seen_in_the_process_where_the_driver_tells(nvml, cuda_process):
    sampler, why = opened(nvml, cuda_process.pid)
    before = sampler.read(Group.FAST)
    if "nvml_process_used_bytes" not in before:
        notes = sampler.notes()
        sampler.close()
        assert why or notes, "an absent metric must have a reason"
        pytest.skip(f"no memory per process here: {why or notes}")

    tell(cuda_process, "take")
    after = sampler.read(Group.FAST)
    notes = sampler.notes()
    sampler.close()

    assert before["nvml_process_used_bytes"] > 0, "a CUDA context takes memory"
    assert abs(after["nvml_process_used_bytes"] - before["nvml_process_used_bytes"] - 64 * MIB) <= PAGE
    assert not [note for note in notes if f"pid {cuda_process.pid} " in note]


def test_device_memory_settles_and_is_sampled(nvml, cuda_process):
    blocks = []
    sampler = NvmlSampler()
    sampling = Sampling([sampler], time.monotonic_ns, blocks.append)
    sampling.open(SampleScope(pid=cuda_process.pid, gpu_uuids=(first_gpu(nvml),)))
    sampling.start()
    settled = sampling.settle(3, 10.0)
    sampling.close()

    assert "nvml_device_used_bytes" in settled.settled
    assert all(value > 0 for value in settled.values["nvml_device_used_bytes"])
    assert sampling.lost() == {}
