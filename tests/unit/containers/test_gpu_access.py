"""Each way for a GPU to come into a container, on machines that have it and machines that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonchaos.containers.engine import EngineFacts
from tritonchaos.containers.gpu_access import Machine, Way, choose_gpus, find_access, ways_that_work
from tritonchaos.containers.spec import GpuDevices
from tritonchaos.errors import TargetUnavailable
from tritonchaos.nvml import Gpu

GPUS = [Gpu(0, "GPU-a", "H200", has_mig_mode=False), Gpu(1, "GPU-b", "H200", has_mig_mode=False)]
LIBRARIES = """\
	libcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1
	libcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1
	libnvidia-ml.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
	libm.so.6 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libm.so.6
"""
CDI = """\
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices: [{name: "0"}, {name: "1"}, {name: GPU-b}, {name: all}]
"""


def engine(name: str = "Docker", api: str = "1.41", runtimes: tuple[str, ...] = (), cdi: tuple[str, ...] = ()):
    return EngineFacts(name, "x", api, False, False, "2", frozenset(runtimes), cdi)


def machine(root: Path, hook: str | None = None, libraries: str = "", folders: tuple[str, ...] = ()) -> Machine:
    return Machine(root, lambda _: hook, lambda: libraries, lambda: folders)


def with_nodes(root: Path, *names: str) -> Path:
    (root / "dev").mkdir()
    for name in names:
        (root / "dev" / name).touch()
    return root


def with_cdi(root: Path) -> Path:
    (root / "etc" / "cdi").mkdir(parents=True)
    (root / "etc" / "cdi" / "nvidia.yaml").write_text(CDI)
    (root / "etc" / "cdi" / "broken.yaml").write_text("{")
    return root


def test_gpus_are_chosen_by_number_uuid_or_all():
    assert choose_gpus("all", GPUS) == GPUS
    assert choose_gpus([1, "GPU-a"], GPUS) == [GPUS[1], GPUS[0]]
    with pytest.raises(TargetUnavailable, match=r"GPU 2 is asked for, but this machine has 0 \(GPU-a\), 1 \(GPU-b\)"):
        choose_gpus([2], GPUS)


def test_the_toolkit_is_asked_by_uuid(tmp_path: Path):
    for facts, hook in (
        (engine(runtimes=("runc", "nvidia")), None),
        (engine(), "/usr/bin/nvidia-container-runtime-hook"),
    ):
        access = find_access(GPUS, "auto", facts, machine(tmp_path, hook))
        assert (access.way, access.uuids) == ("toolkit", ("GPU-a", "GPU-b"))
        assert access.devices == GpuDevices(ids=("GPU-a", "GPU-b"))


def test_cdi_is_asked_by_the_names_in_its_descriptions(tmp_path: Path):
    access = find_access(GPUS, "auto", engine(api="1.44", cdi=("/etc/cdi",)), machine(with_cdi(tmp_path)))
    assert access.devices == GpuDevices(driver="cdi", ids=("nvidia.com/gpu=0", "nvidia.com/gpu=GPU-b"))


def test_podman_takes_cdi_names_as_devices(tmp_path: Path):
    access = find_access(GPUS[:1], "auto", engine(name="Podman"), machine(with_cdi(tmp_path)))
    assert access.devices == GpuDevices(nodes=("nvidia.com/gpu=0",))


def test_plain_nodes_come_with_the_drivers_libraries(tmp_path: Path):
    root = with_nodes(tmp_path, "nvidiactl", "nvidia-uvm", "nvidia0")
    access = find_access(GPUS[:1], "auto", engine(), machine(root, libraries=LIBRARIES))
    assert access.devices.nodes == ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0")
    assert {mount.target for mount in access.mounts} == {
        "/usr/local/nvidia/lib64/libcuda.so.1",
        "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    }
    assert not any(mount.is_writable for mount in access.mounts)


def test_a_driver_that_is_mounted_beside_the_loaders_list_is_found(tmp_path: Path):
    root = with_nodes(tmp_path, "nvidiactl", "nvidia-uvm", "nvidia0")
    mounted = root / "usr" / "local" / "nvidia" / "lib64"
    mounted.mkdir(parents=True)
    for name in (
        "libcuda.so.580.1",
        "libnvidia-nvvm70.so.4",
        "libnvidia-gpucomp.so.580.1",
        "libcuda.so",
        "libEGL.so.1",
    ):
        (mounted / name).touch()
    (mounted / "libcuda.so.1").symlink_to("libcuda.so.580.1")
    access = find_access(GPUS[:1], "devices", engine(), machine(root, folders=("/none", "/usr/local/nvidia/lib64")))
    sources = {mount.target.rpartition("/")[2]: mount.source for mount in access.mounts}
    assert sorted(sources) == [
        "libcuda.so.1",
        "libcuda.so.580.1",
        "libnvidia-gpucomp.so.580.1",
        "libnvidia-nvvm70.so.4",
    ]
    assert sources["libcuda.so.1"] == str(mounted / "libcuda.so.580.1")
    with pytest.raises(TargetUnavailable, match=r"neither in the loader's list \(ldconfig -p\) nor in /none"):
        find_access(GPUS[:1], "devices", engine(), machine(root, folders=("/none",)))


def test_the_containers_loader_is_told_where_the_driver_is_unless_the_image_says_so(tmp_path: Path):
    root = with_nodes(tmp_path, "nvidiactl", "nvidia-uvm", "nvidia0")
    access = find_access(GPUS[:1], "devices", engine(), machine(root, libraries=LIBRARIES))
    nvidias = "/usr/local/nvidia/lib:/usr/local/nvidia/lib64"
    assert access.library_path(nvidias) == nvidias
    assert access.library_path("/opt/lib") == "/opt/lib:/usr/local/nvidia/lib64"
    assert access.library_path("") == "/usr/local/nvidia/lib64"
    toolkit = find_access(GPUS[:1], "toolkit", engine(runtimes=("nvidia",)), machine(tmp_path))
    assert toolkit.library_path("/opt/lib") == "/opt/lib"


def test_a_gpu_of_mig_instances_is_left_to_nvidias_own_ways(tmp_path: Path):
    root = with_nodes(tmp_path, "nvidiactl", "nvidia-uvm", "nvidia0")
    split = [Gpu(0, "GPU-a", "H200", has_mig_mode=True)]
    with pytest.raises(TargetUnavailable, match="GPU-a is split into MIG instances"):
        find_access(split, "devices", engine(), machine(root, libraries=LIBRARIES))


def test_a_node_is_named_by_the_drivers_number(tmp_path: Path):
    root = with_nodes(tmp_path, "nvidiactl", "nvidia-uvm", "nvidia7")
    told = root / "proc" / "driver" / "nvidia" / "gpus" / "0000:01:00.0"
    told.mkdir(parents=True)
    (told / "information").write_text("Model: \t H200\nGPU UUID: \t GPU-a\nDevice Minor: \t 7\n")
    access = find_access(GPUS[:1], "devices", engine(), machine(root, libraries=LIBRARIES))
    assert access.devices.nodes[-1] == "/dev/nvidia7"


def test_where_no_way_works_each_says_why(tmp_path: Path):
    with pytest.raises(TargetUnavailable) as refused:
        find_access(GPUS[:1], "auto", engine(), machine(tmp_path))
    assert "toolkit: the engine has no runtime nvidia" in refused.value.message
    assert "cdi: Docker x knows no CDI" in refused.value.message
    assert "devices: there is no /dev/nvidiactl" in refused.value.message
    assert "nvidia-ctk" in refused.value.hint


@pytest.mark.parametrize(
    ("way", "why"),
    [("toolkit", "has no runtime nvidia"), ("cdi", "no CDI description"), ("devices", "there is no /dev/nvidiactl")],
)
def test_a_way_that_was_named_has_no_fallback(tmp_path: Path, way: Way, why: str):
    facts = engine(api="1.44", cdi=("/etc/cdi",))
    with pytest.raises(TargetUnavailable, match=why) as refused:
        find_access(GPUS[:1], way, facts, machine(tmp_path))
    assert refused.value.message.count(": ") >= 2
    assert ";" not in refused.value.message
    assert ways_that_work(facts, machine(tmp_path))[way]
