"""What the containers of a run are started with where a GPU is given to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonchaos.containers.engine import EngineFacts
from tritonchaos.containers.gpu_access import GpuAccess
from tritonchaos.containers.images import Image, Reference
from tritonchaos.containers.launching import build_spec, library_path
from tritonchaos.containers.spec import GpuDevices
from tritonchaos.targets.docker import DockerTarget

NVIDIAS = ("/opt/nvidia/nvidia_entrypoint.sh",)
ENGINE = EngineFacts("Docker", "26.1", "1.45", False, False, "2", frozenset(), ())
DEVICES = GpuAccess("devices", ("GPU-a",), GpuDevices(nodes=("/dev/nvidia0",)), (), "/usr/local/nvidia/lib64")


def image(entrypoint: tuple[str, ...] = (), **env: str) -> Image:
    return Image(Reference("image", "1", ""), "sha256:1", "", 0, {}, env, entrypoint)


@pytest.mark.parametrize(
    ("entrypoint", "gpus", "first"),
    [
        (NVIDIAS, DEVICES, "/opt/nvidia/nvidia_entrypoint.sh"),  # gives the CUDA driver that a server would get
        (NVIDIAS, None, "sh"),  # compiles for the host alone
        (("/entry",), DEVICES, "sh"),  # nobody knows what it does with a command
    ],
)
def test_a_build_with_a_gpu_goes_through_nvidias_entrypoint(
    tmp_path: Path, entrypoint: tuple[str, ...], gpus: GpuAccess | None, first: str
) -> None:
    spec = build_spec(DockerTarget("image:1"), tmp_path, ["sh", "build"], image(entrypoint), ENGINE, gpus)
    assert spec.entrypoint is not None
    whole = (*spec.entrypoint, *spec.command)
    assert whole[0] == first
    assert whole[-2:] == ("sh", "build")
    assert len(spec.entrypoint) == 1


def test_the_scenarios_library_path_goes_before_the_images() -> None:
    asked = library_path(image(LD_LIBRARY_PATH="/image"), DEVICES, {"LD_LIBRARY_PATH": "/asked"})
    assert asked == {"LD_LIBRARY_PATH": "/asked:/usr/local/nvidia/lib64"}
    taken_away = library_path(image(LD_LIBRARY_PATH="/image"), DEVICES, {"LD_LIBRARY_PATH": None})
    assert taken_away == {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}
    assert library_path(image(LD_LIBRARY_PATH="/image"), None, {}) == {}
