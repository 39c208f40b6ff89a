"""A tritonserver is found where it may be, and refused with the reason where it cannot be run."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from pathlib import Path

import pytest

from tritonchaos.errors import TargetUnavailable
from tritonchaos.local_server.installation import PATH_VARIABLE, binary_problem, find_installation, read_flags
from tritonchaos.processes import STUB

HELP = "#!/bin/sh\necho 'Usage: tritonserver'\necho '  --model-repository <string>'\necho '  --bare'\nexit 1\n"


def write_server(root: Path, text: str = HELP) -> Path:
    binary = root / "bin" / "tritonserver"
    binary.parent.mkdir(parents=True)
    binary.write_text(text)
    binary.chmod(0o755)
    return binary


def write_elf(path: Path, machine: int) -> Path:
    path.write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\2\0" + machine.to_bytes(2, "little") + bytes(40))
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def no_path_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PATH_VARIABLE, raising=False)


def test_a_given_path_brings_backends_libraries_and_version(tmp_path: Path) -> None:
    binary = write_server(tmp_path)
    (tmp_path / "backends" / "python").mkdir(parents=True)
    (tmp_path / "backends" / "tensorrt").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "TRITON_VERSION").write_text("2.60.0\n")
    found = find_installation(binary)
    assert (found.binary, found.origin, found.triton_version) == (binary, "server_path", "2.60.0")
    assert found.backend_names == {"python", "tensorrt"}
    assert found.libraries == (tmp_path / "lib",)
    assert found.stub is None


def test_a_given_path_has_no_fallback(tmp_path: Path) -> None:
    with pytest.raises(TargetUnavailable, match=r"server_path: .*absent does not exist"):
        find_installation(tmp_path / "absent")


def test_the_variable_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_variable, by_path = write_server(tmp_path / "a"), write_server(tmp_path / "b")
    monkeypatch.setenv("PATH", str(by_path.parent))
    assert find_installation(None).binary == by_path
    monkeypatch.setenv(PATH_VARIABLE, str(by_variable))
    assert (find_installation(None).binary, find_installation(None).origin) == (by_variable, PATH_VARIABLE)


def test_a_link_in_path_leads_to_what_belongs_to_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "tritonserver").symlink_to(write_server(tmp_path / "root"))
    (tmp_path / "root" / "backends" / "identity").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert find_installation(None).backend_names == {"identity"}


def test_a_wheel_is_known_by_its_stubs(tmp_path: Path) -> None:
    binary = write_server(tmp_path / "pytriton" / "tritonserver")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = binary.parent.parent / "python_backend_stubs" / python / STUB
    stub.parent.mkdir(parents=True)
    assert find_installation(binary).no_python_backend == f"the wheel has no stub for Python {python}"
    assert find_installation(binary).backend_names == frozenset()
    stub.touch()
    (tmp_path / "nvidia_pytriton.libs").mkdir()
    found = find_installation(binary)
    assert found.libraries[0] == tmp_path / "nvidia_pytriton.libs"
    assert found.backend_names == ({"python"} if found.stub else frozenset())
    assert bool(found.stub) == (not found.no_python_backend)


def test_where_nothing_is_found_everything_looked_at_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [])
    if Path("/opt/tritonserver/bin/tritonserver").exists():
        pytest.skip("this machine has one in /opt/tritonserver")
    with pytest.raises(TargetUnavailable) as caught:
        find_installation(None)
    for place in ("server_path", PATH_VARIABLE, "PATH", "/opt/tritonserver", "nvidia-pytriton"):
        assert place in caught.value.message
    assert "pip install 'tritonchaos[local]'" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\necho 'libnone.so: cannot open shared object file' >&2\nexit 127\n", "text"]
)
def test_one_that_is_found_and_does_not_run_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    if Path("/opt/tritonserver/bin/tritonserver").exists():
        pytest.skip("this machine has one in /opt/tritonserver")
    broken = write_server(tmp_path / "broken", text)
    wheel = write_server(tmp_path / "packages" / "pytriton" / "tritonserver")
    (wheel.parent.parent / "python_backend_stubs").mkdir()
    (tmp_path / "packages" / "pytriton" / "__init__.py").touch()
    monkeypatch.setenv("PATH", str(broken.parent))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages")])
    importlib.invalidate_caches()
    found = find_installation(None)
    assert found.binary == wheel
    [why] = found.passed_over
    assert why.startswith("tritonserver in PATH: ") and str(broken) in why
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(TargetUnavailable, match=f"wheel: not found; tritonserver in PATH: .*{broken}"):
        find_installation(None)


def test_what_cannot_be_run_says_why(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    assert binary_problem(tmp_path).endswith("is not a file")
    assert binary_problem(tmp_path / "text").endswith("is not executable")
    (tmp_path / "text").chmod(0o755)
    assert "neither a program" in binary_problem(tmp_path / "text")


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="machine without an entry")
def test_a_program_for_another_machine_is_refused(tmp_path: Path) -> None:
    machines = {"x86_64": 62, "aarch64": 183}
    ours = machines.pop(platform.machine())
    assert binary_problem(write_elf(tmp_path / "ours", ours)) == ""
    assert "another machine" in binary_problem(write_elf(tmp_path / "theirs", machines.popitem()[1]))


def test_flags_are_read_from_the_help(tmp_path: Path) -> None:
    assert read_flags(write_server(tmp_path), os.environ) == {"model-repository": True, "bare": False}


@pytest.mark.parametrize("text", ["#!/bin/sh\necho cannot open shared object >&2\nexit 127\n", "#!/no/such/shell\n"])
def test_what_does_not_answer_like_tritonserver_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TargetUnavailable, match="--help"):
        read_flags(write_server(tmp_path, text), os.environ)
