"""Engine addresses, C libraries, scratch space, progress, what an image says of itself, and specs."""

from __future__ import annotations

import hashlib
import io
import json
import socket
from pathlib import Path

import pytest

from tritonchaos.containers.engine import EngineAddress, check_address, find_engine_address
from tritonchaos.containers.image_facts import _parse as parse_image_facts
from tritonchaos.containers.images import Image, Reference
from tritonchaos.containers.libc import glibc_needed, why_not_loadable
from tritonchaos.containers.pulling import PullProgress
from tritonchaos.containers.scratch import Filler
from tritonchaos.containers.spec import ContainerSpec, GpuDevices, Mount, docker_run_line, engine_config
from tritonchaos.errors import TargetUnavailable

# --- engine ---------------------------------------------------------------------------------------


def test_an_address_that_is_given_has_no_fallback(tmp_path: Path):
    assert find_engine_address({"DOCKER_HOST": "unix:///a"}, "unix:///b").url == "unix:///b"
    assert find_engine_address({"DOCKER_HOST": "unix:///a", "HOME": str(tmp_path)}).url == "unix:///a"


def test_the_docker_commands_context_is_followed(tmp_path: Path):
    folder = tmp_path / ".docker" / "contexts" / "meta" / hashlib.sha256(b"lab").hexdigest()
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps({"Endpoints": {"docker": {"Host": "unix:///lab.sock"}}}))
    (tmp_path / ".docker" / "config.json").write_text('{"currentContext": "lab"}')
    found = find_engine_address({"HOME": str(tmp_path)})
    assert (found.url, found.origin) == ("unix:///lab.sock", "docker context lab")


def test_a_rootless_engine_is_found_by_its_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if Path("/var/run/docker.sock").exists():
        pytest.skip("this machine has an engine of its own")
    (tmp_path / "podman").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path / "podman")  # the address of a socket may not be long
        listener.bind("podman.sock")
        found = find_engine_address({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert found.socket == tmp_path / "podman" / "podman.sock"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("unix:///no/such/socket", "there is no /no/such/socket"),
        ("tcp://192.0.2.1:2375", "runs on another machine"),
        ("ssh://user@host", "runs on another machine"),
    ],
)
def test_an_engine_that_cannot_be_used_is_told_at_once(url: str, told: str):
    with pytest.raises(TargetUnavailable, match=told):
        check_address(EngineAddress(url, "DOCKER_HOST"))


# --- what an image says of itself ------------------------------------------------------------------

IMAGE = Image(Reference("a", "1", ""), "sha256:0", "", 0)
TOLD = """\
banner of an entrypoint
--- tritonchaos: backends
python
tensorrt
--- tritonchaos: version
2.60.0
--- tritonchaos: tensorrt
 10.13.3.9
/usr/lib/x86_64-linux-gnu/libnvinfer.so.10.13.4
--- tritonchaos: libc
glibc 2.39
--- tritonchaos: tools
/usr/bin/c++
--- tritonchaos: help
  --model-repository <string>
  --disable-auto-complete-config
--- tritonchaos: end
"""


def test_an_image_says_what_it_holds():
    facts = parse_image_facts(TOLD, IMAGE)
    assert facts.backends == ("python", "tensorrt")
    assert (facts.triton_version, facts.tensorrt_version, facts.libc) == ("2.60.0", "10.13.4", (2, 39))
    assert "--model-repository <string>\n" in facts.help


def test_an_image_without_a_server_is_refused_with_what_it_said():
    with pytest.raises(TargetUnavailable, match="sh: tritonserver: not found"):
        parse_image_facts("--- tritonchaos: help\nsh: tritonserver: not found\n--- tritonchaos: end\n", IMAGE)


# --- C library ------------------------------------------------------------------------------------


def test_a_library_is_loadable_where_the_c_library_is_no_older(tmp_path: Path):
    library = tmp_path / "libx.so"
    library.write_bytes(b"\x7fELF\0GLIBC_2.2.5\0malloc\0GLIBC_2.38\0GLIBC_2.4\0")
    assert glibc_needed(library) == (2, 38)
    assert why_not_loadable(library, (2, 39)) == ""
    assert why_not_loadable(library, None) == ""
    assert "against glibc 2.38 of this machine, the image has 2.36" in why_not_loadable(library, (2, 36))


# --- scratch space --------------------------------------------------------------------------------


def test_space_that_is_too_much_is_left_alone(tmp_path: Path):
    assert "no scratch space of a container" in Filler(largest_bytes=0).fill(tmp_path, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path):
    filler = Filler()
    assert "cannot be taken" in filler.fill(Path("/proc/self"), 0)
    filler.free()


# --- progress -------------------------------------------------------------------------------------


def test_progress_adds_up_the_layers():
    stream = io.StringIO()
    progress = PullProgress(stream, "a:1")
    progress({"status": "Pulling fs layer", "id": "x"})
    assert stream.getvalue() == ""
    progress({"status": "Downloading", "id": "x", "progressDetail": {"current": 1 << 20, "total": 4 << 20}})
    progress({"status": "Downloading", "id": "y", "progressDetail": {"current": 0, "total": 4 << 20}})
    progress({"status": "Download complete", "id": "y"})
    assert stream.getvalue() == "fetching a:1: 1 MiB of 4 MiB, 1 layers\n"
    assert progress.text() == "fetching a:1: 5 MiB of 8 MiB, 2 layers"


# --- spec -----------------------------------------------------------------------------------------


def test_a_spec_is_safe_unless_it_says_otherwise():
    host = engine_config(ContainerSpec("i", "n"))["HostConfig"]
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    assert (host["ReadonlyRootfs"], host["NetworkMode"], host["PidsLimit"]) == (True, "none", 4096)


def test_gpus_are_written_as_the_docker_command_takes_them():
    by_toolkit = docker_run_line(ContainerSpec("i", "n", gpus=GpuDevices(ids=("GPU-a", "GPU-b"))))
    assert "'--gpus=\"device=GPU-a,GPU-b\"'" in by_toolkit
    by_cdi = docker_run_line(ContainerSpec("i", "n", gpus=GpuDevices(driver="cdi", ids=("nvidia.com/gpu=0",))))
    assert "--device=nvidia.com/gpu=0" in by_cdi


def test_an_entrypoint_and_a_mount_are_in_the_line():
    spec = ContainerSpec("i", "n", ("b",), entrypoint=("/a", "x"), mounts=(Mount("/s", "/t"),))
    line = docker_run_line(spec)
    assert line.endswith(" i x b")
    assert "--entrypoint=/a" in line
    assert "--mount=type=bind,source=/s,target=/t,readonly" in line
