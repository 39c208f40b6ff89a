"""Doctor: each look at the machine, with the outside handed in."""

import http.client
import os
import socket
import threading
from dataclasses import dataclass, field

import pytest

from tritonchaos.doctor import Check, examine
from tritonchaos.doctor.containers import docker, ping_docker
from tritonchaos.doctor.devices import gpus
from tritonchaos.doctor.room import disk, ptrace, shared_memory
from tritonchaos.errors import SamplerError
from tritonchaos.nvml import DeviceMemory, Gpu, NoNvml
from tritonchaos.plugins import load_plugins
from tritonchaos.units import GIB, MIB

GPU = Gpu(0, "GPU-aaaa", "NVIDIA H200", False)


@dataclass
class Nvml:
    """A driver with one GPU."""

    users: dict = field(default_factory=dict)
    problems: list = field(default_factory=list)
    is_lost: bool = False
    closed: int = 0

    def driver_version(self):
        return "580.159.03"

    def gpus(self):
        return [GPU]

    def memory(self, uuid):
        if self.is_lost:
            raise SamplerError("GPU is lost", hint="look at nvidia-smi")
        return DeviceMemory(140 * GIB, 4 * MIB, 600 * MIB, 139 * GIB)

    def all_processes(self, uuid):
        return self.users

    def close(self):
        self.closed += 1


@pytest.fixture
def engine(tmp_path):
    """Starts an engine that says one thing to whoever connects; gives its socket."""
    path = tmp_path / "docker.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.fspath(path))
    listener.listen()
    threads = []

    def start(said):
        def serve():
            caller, _ = listener.accept()
            with caller:
                caller.recv(4096)
                caller.sendall(said)
                caller.recv(1)  # stays silent until the caller leaves

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return path

    yield start
    for thread in threads:
        thread.join(60)
    listener.close()


def test_every_look_gives_a_finding_and_says_what_to_do_about_what_is_missing():
    load_plugins()
    checks = examine(try_container=False)

    names = [check.name for check in checks]
    assert len(names) == len(set(names))
    assert {"tritonserver", "C compiler", "NVIDIA driver", "TensorRT", "Docker", "shared memory", "ptrace"} <= set(
        names
    )
    for check in checks:
        assert check.found.strip(), check.name
        assert "\n" not in check.found, check.name
        assert check.ok is True or check.what_to_do, check.name


def test_machine_without_driver_is_no_fault():
    assert gpus(NoNvml("no NVIDIA driver", "none needed")) == [
        Check("NVIDIA driver", None, "no NVIDIA driver", "none needed")
    ]


def test_idle_gpu_is_as_wanted_and_nvml_is_given_back():
    nvml = Nvml()
    driver, gpu = gpus(nvml)

    assert driver.found == "580.159.03, NVML answers, 1 GPU(s)"
    assert gpu == Check("GPU 0", True, "NVIDIA H200, 140 GiB, GPU-aaaa, idle (4 MiB in use)")
    assert nvml.closed == 1


def test_gpu_in_use_names_who_uses_it():
    _, gpu = gpus(Nvml(users={os.getpid(): 300 * MIB, 2**22 + 1: None}))

    assert gpu.ok is None
    assert f"pid {os.getpid()} (" in gpu.found
    assert "300 MiB" in gpu.found
    assert f"pid {2**22 + 1} (of another container or user)" in gpu.found


def test_lost_and_broken_gpus_are_told():
    _, lost, broken = gpus(Nvml(is_lost=True, problems=["NVML cannot read the GPU number 1"]))

    assert lost == Check("GPU 0", False, "GPU is lost", "look at nvidia-smi")
    assert (broken.ok, broken.found) == (False, "NVML cannot read the GPU number 1")


def test_a_ping_gives_the_version_of_the_api(engine):
    path = engine(b"HTTP/1.1 200 OK\r\nApi-Version: 1.47\r\nContent-Length: 2\r\n\r\nOK")

    assert ping_docker(path, 60) == "1.47"


@pytest.mark.parametrize("said", [b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0\r\n"])
def test_docker_engine_that_answers_badly(engine, said):
    path = engine(said)
    with pytest.raises(http.client.HTTPException):
        ping_docker(path, 60)


def test_silent_docker_engine_is_not_waited_for(engine):
    with pytest.raises(TimeoutError):
        ping_docker(engine(b""), 0.05)


def test_no_docker_engine(tmp_path):
    (check,) = docker({"DOCKER_HOST": f"unix://{tmp_path}/absent.sock"}, try_container=True)

    assert (check.name, check.ok) == ("Docker", None)
    assert f"there is no {tmp_path}/absent.sock" in check.found
    assert "install Docker" in check.what_to_do


def test_a_docker_engine_elsewhere_is_not_asked():
    (check,) = docker({"DOCKER_HOST": "tcp://192.0.2.1:2375"}, try_container=True)

    assert (check.ok, "another machine" in check.found) == (None, True)


def test_folder_that_does_not_exist_yet_is_judged_by_its_parent(tmp_path):
    check = disk("disk", tmp_path / "not" / "yet")

    assert check.name == "disk"
    assert check.found.endswith(f"free at {tmp_path}/not/yet")


def test_shared_memory_needs_a_folder_and_room(tmp_path):
    assert shared_memory(tmp_path / "absent").ok is False
    assert shared_memory(tmp_path, enough_bytes=1).ok is True
    assert shared_memory(tmp_path, enough_bytes=2**62).ok is None


@pytest.mark.parametrize(
    ("scope", "is_root", "ok"),
    [("0\n", False, True), ("1\n", False, None), ("1\n", True, True), ("3\n", True, None), ("", False, True)],
)
def test_who_may_attach_a_debugger(tmp_path, scope, is_root, ok):
    (tmp_path / "ptrace_scope").write_text(scope)

    assert ptrace(tmp_path / "ptrace_scope", is_root=is_root).ok is ok
    assert ptrace(tmp_path / "absent", is_root=is_root).ok is True
