"""GPUs in containers, on a machine with both an NVIDIA driver and the engine of the tests (tests/docker/engine.sh).

By hand, as root:

    tests/docker/engine.sh start /tmp/engine && tests/docker/engine.sh images /tmp/engine
    eval "$(tests/docker/engine.sh env /tmp/engine)"
    pytest tests/gpu/test_docker_gpu.py -m gpu -s
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from tests.docker.conftest import cpu_image, engine, engine_url  # noqa: F401  (fixtures)
from tests.docker.engine_state import unchanged
from tests.gpu.test_planted_gpu import SCENARIO, UNTIL_FLAT, UNTIL_VERDICT
from tests.server.cli import Called, run_scenario, tritonchaos
from tritonchaos.containers.gpu_access import Machine
from tritonchaos.nvml import Gpu, Nvml, open_nvml
from tritonchaos.units import MIB

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
LEAK = "[{what: device_bytes, bytes: 2MiB, when: failed}]"
WITH_GPU = "tritonchaos-test/with-gpu:1"


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    """The first GPU of this machine."""
    nvml = open_nvml()
    if not isinstance(nvml, Nvml):
        pytest.skip(nvml.reason)
    found = nvml.gpus()[0]
    nvml.close()
    return found


@pytest.fixture(autouse=True)
def nothing_stays(gpu: Gpu, engine: str, tmp_path: Path) -> Iterator[None]:  # noqa: F811
    with unchanged(tmp_path):
        yield


@pytest.fixture
def cdi(engine: str, gpu: Gpu) -> Iterator[str]:  # noqa: F811
    """The engine's CDI knows the GPU while a test runs; gives the name of the device."""
    with closing(docker.from_env()) as client:
        info = client.info()
    folders = info.get("CDISpecDirs") or ()
    if not folders or not os.access(folders[0], os.W_OK):
        pytest.skip(f"the engine {info['ServerVersion']} has no folder of CDI descriptions that this user may write")
    file = Path(folders[0]) / "tritonchaos-test.json"
    file.write_text(json.dumps(description(gpu)))
    yield "nvidia.com/gpu=0"
    file.unlink()


def description(gpu: Gpu) -> dict[str, object]:
    """A CDI description as `nvidia-ctk cdi generate` writes, without its hooks: the loader is told by a variable."""
    there = "/usr/local/nvidia/lib64"
    nodes = [f"/dev/{name}" for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", f"nvidia{gpu.index}")]
    mounts = [
        {
            "hostPath": str(Path(path).resolve()),
            "containerPath": f"{there}/{name}",
            "options": ["ro", "nosuid", "nodev", "bind"],
        }
        for name, path in Machine().libraries().items()
    ]
    edits = {
        "env": [f"LD_LIBRARY_PATH={there}", "NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [{"path": node} for node in nodes if Path(node).exists()],
        "mounts": mounts,
    }
    names = (str(gpu.index), gpu.uuid, "all")
    devices = [{"name": name, "containerEdits": edits} for name in names]
    return {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}


def run_in_container(folder: Path, image: str, way: str, plant: str) -> Called:
    text = SCENARIO.format(plant=plant, good=UNTIL_FLAT, failed=UNTIL_VERDICT, amplify="false")
    target = f'docker: {{image: "{image}", network: none, gpus: [0], gpu_access: {way}}}'
    return run_scenario(text.replace("local: {}", target), folder)


def device_bytes(called: Called) -> dict[str, list[int | None]]:
    phases = called.results["phases"]
    return {phase["phase"]: phase["post_unload"].get("nvml_process_used_bytes", []) for phase in phases}


def was_given(called: Called, gpu: Gpu, way: str) -> None:
    facts = called.results["target"]
    assert (facts["gpu_access"], facts["gpu_uuids"]) == (way, gpu.uuid)
    assert facts["container_loosened"] == "nothing"


def sees_the_server(called: Called) -> None:
    """NVML names the processes of this machine's PID namespace: the server's own bytes are read at every cycle."""
    series = [value for values in device_bytes(called).values() for value in values]
    assert series
    assert all(value is not None and value > 64 * MIB for value in series), series


@pytest.mark.parametrize("way", ["devices", "cdi"])
def test_clean_loads_are_flat_to_the_byte(
    tmp_path: Path,
    cpu_image: str,  # noqa: F811
    gpu: Gpu,
    way: str,
    request: pytest.FixtureRequest,
) -> None:
    if way == "cdi":
        request.getfixturevalue("cdi")
    called = run_in_container(tmp_path, cpu_image, way, "[]")
    assert called.exit_code == 0, called.shown()
    was_given(called, gpu, way)
    sees_the_server(called)
    assert len(set(device_bytes(called)["failed"][3:])) == 1


@pytest.mark.parametrize("way", ["devices", "cdi"])
def test_a_leak_of_2_mib_per_load_is_found(
    tmp_path: Path,
    cpu_image: str,  # noqa: F811
    gpu: Gpu,
    way: str,
    request: pytest.FixtureRequest,
) -> None:
    if way == "cdi":
        request.getfixturevalue("cdi")
    called = run_in_container(tmp_path, cpu_image, way, LEAK)
    assert called.exit_code == 1, called.shown()
    was_given(called, gpu, way)
    sees_the_server(called)
    leak = next(f for f in called.findings("leak") if f["metric"] == "nvml_process_used_bytes")
    assert leak["bytes_per_cycle"] == pytest.approx(2 * MIB, rel=0.02)


def test_the_packaged_scenario_runs_with_the_gpu(tmp_path: Path, cpu_image: str, gpu: Gpu) -> None:  # noqa: F811
    options = ["--image", cpu_image, "--set", "models.ident.variant=planted_gpu", "--set", "target.gpu_access=devices"]
    called = run_scenario("failed-load", tmp_path, *options)
    assert called.exit_code == 0, called.shown()
    was_given(called, gpu, "devices")
    sees_the_server(called)


def test_a_bundle_of_a_device_leak_reproduces_in_a_container(tmp_path: Path, cpu_image: str) -> None:  # noqa: F811
    called = run_in_container(tmp_path, cpu_image, "devices", LEAK)
    assert called.exit_code == 1, called.shown()
    made = tritonchaos("repro", called.folder, "--out", tmp_path / "bundle", cwd=tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    there = ["--image", cpu_image, "--gpus", "0", "--gpu-access", "devices"]
    found = tritonchaos("verify", tmp_path / "bundle.tar.gz", *there, cwd=tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    twin = tritonchaos("verify", tmp_path / "bundle.tar.gz", *there, "--clean-twin", cwd=tmp_path)
    assert twin.returncode == 0, twin.stdout + twin.stderr


def test_a_way_that_is_not_there_is_told_with_its_remedy(tmp_path: Path, cpu_image: str) -> None:  # noqa: F811
    with closing(docker.from_env()) as client:
        if "nvidia" in client.info()["Runtimes"]:
            pytest.skip("the engine has the NVIDIA runtime")
    refused = run_in_container(tmp_path, cpu_image, "toolkit", "[]")
    assert refused.exit_code == 4, refused.shown()
    assert "the engine has no runtime nvidia, and nvidia-container-runtime-hook is not installed" in refused.stderr
    assert "install the NVIDIA Container Toolkit" in refused.stderr
    assert not refused.folder.exists()


def test_the_first_way_that_works_is_taken(tmp_path: Path, cpu_image: str, gpu: Gpu) -> None:  # noqa: F811
    """Under `auto`, in an image whose builder does not say that it uses no GPU."""
    file = io.BytesIO(f"FROM {cpu_image}\nLABEL tritonchaos.gpus=any\n".encode())
    with closing(docker.from_env()) as client:
        client.images.build(fileobj=file, tag=WITH_GPU, rm=True, forcerm=True)
        try:
            called = run_in_container(tmp_path, WITH_GPU, "auto", "[]")
        finally:
            client.images.remove(WITH_GPU, force=True)
    assert called.exit_code == 0, called.shown()
    was_given(called, gpu, "devices")


def test_doctor_says_by_which_way(tmp_path: Path, cdi: str) -> None:
    said = tritonchaos("doctor", cwd=tmp_path).stdout
    line = " ".join(said[said.index("GPUs in containers") :].split())
    assert "toolkit: the engine has no runtime nvidia" in line
    assert "cdi: yes" in line
    assert "devices: yes" in line
