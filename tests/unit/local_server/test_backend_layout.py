"""One backend directory out of the server's own backends and ours, and the environment they run in."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tritonchaos.local_server.backend_layout import lay_out_backends, server_environment
from tritonchaos.local_server.installation import Installation
from tritonchaos.processes import STUB


def installation(root: Path) -> Installation:
    for name in ("identity", "tensorrt"):
        (root / "backends" / name).mkdir(parents=True)
    backends = {name: root / "backends" / name for name in ("identity", "tensorrt")}
    return Installation(root / "bin" / "tritonserver", "PATH", "2.60.0", backends, (root / "lib",))


def wheel(root: Path, mode: int) -> Installation:
    (root / "backends" / "python").mkdir(parents=True)
    for name in ("libtriton_python.so", "triton_python_backend_utils.py"):
        (root / "backends" / "python" / name).write_text(name)
    stub = root / "stubs" / STUB
    stub.parent.mkdir()
    stub.write_text("stub")
    stub.chmod(mode)
    return Installation(root / "bin" / "tritonserver", "nvidia-pytriton", "", {}, (root / "lib",), stub)


def test_our_backends_are_linked_beside_the_servers_and_win(tmp_path: Path) -> None:
    ours = {name: tmp_path / "ours" / name for name in ("planted", "identity")}
    for folder in ours.values():
        folder.mkdir(parents=True)
    lay_out_backends(installation(tmp_path / "server"), tmp_path / "out", ours)
    linked = {path.name: path.resolve() for path in (tmp_path / "out").iterdir()}
    assert linked == {**ours, "tensorrt": tmp_path / "server" / "backends" / "tensorrt"}


def test_laying_out_again_replaces_links_and_never_what_they_lead_to(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "libtriton_planted.so").touch()
    found = installation(tmp_path / "server")
    lay_out_backends(found, tmp_path / "out", {"planted": planted})
    lay_out_backends(found, tmp_path / "out", {})
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["identity", "tensorrt"]
    assert (planted / "libtriton_planted.so").exists()


@pytest.mark.parametrize("mode", [0o755, 0o644])
def test_the_wheels_python_backend_gets_its_stub_executable(tmp_path: Path, mode: int) -> None:
    found = wheel(tmp_path / "wheel", mode)
    lay_out_backends(found, tmp_path / "out", {})
    python = tmp_path / "out" / "python"
    assert sorted(path.name for path in python.iterdir()) == [
        "libtriton_python.so",
        STUB,
        "triton_python_backend_utils.py",
    ]
    assert (python / STUB).stat().st_mode & 0o111
    assert (python / STUB).read_text() == "stub"
    # The wheel belongs to others and is never changed.
    assert found.stub is not None
    assert found.stub.stat().st_mode & 0o777 == mode


def test_the_environment_leads_the_wheels_stub_to_this_python(tmp_path: Path) -> None:
    own = {"PATH": "/usr/bin", "LD_LIBRARY_PATH": "/theirs", "KEPT": "1"}
    environment = server_environment(wheel(tmp_path, 0o755), own, {"EXTRA": "2"})
    assert environment["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
    assert environment["LD_LIBRARY_PATH"] == f"/theirs:{tmp_path / 'lib'}"
    assert (environment["KEPT"], environment["EXTRA"]) == ("1", "2")
    assert "site-packages" in environment["PYTHONPATH"] or "dist-packages" in environment["PYTHONPATH"]


def test_another_servers_python_is_left_alone(tmp_path: Path) -> None:
    found = replace(installation(tmp_path), libraries=())
    assert server_environment(found, {"PATH": "/usr/bin"}, {"PATH": "/asked"}) == {
        "PATH": "/asked",
        "LD_LIBRARY_PATH": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
