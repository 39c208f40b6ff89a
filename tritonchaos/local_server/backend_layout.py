"""Lays out one backend directory out of a server's own backends and ours, and the environment they run in."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from tritonchaos.local_server.installation import Installation
from tritonchaos.processes import STUB


def lay_out_backends(installation: Installation, folder: Path, ours: Mapping[str, Path]) -> None:
    """Make `folder` the backend directory: links to the server's backends and to ours, which win.

    Whatever the folder held is replaced, so that it can be laid out again before a restart.

    Args:
        ours: Backend name -> folder holding libtriton_NAME.so.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, source in {**installation.backends, **ours}.items():
        (folder / name).symlink_to(source.absolute(), target_is_directory=True)
    if installation.stub is not None and "python" not in ours:
        _lay_out_python(installation.wheel_python_backend, installation.stub, folder / "python")


def _lay_out_python(backend: Path, stub: Path, folder: Path) -> None:
    """Join the wheel's python backend with one of its stubs; the wheel keeps a stub per Python version elsewhere."""
    folder.mkdir()
    for file in backend.iterdir():
        if file.is_file():
            (folder / file.name).symlink_to(file)
    if os.access(stub, os.X_OK):
        (folder / STUB).symlink_to(stub)
        return
    # Some installers drop the executable bit; a server that cannot execute its stub never answers the load call.
    shutil.copyfile(stub, folder / STUB)
    (folder / STUB).chmod(0o755)


def server_environment(
    installation: Installation, own: Mapping[str, str], asked: Mapping[str, str | None]
) -> dict[str, str]:
    """Environment of the server and of its stubs.

    Args:
        own: Of this process.
        asked: Variables that were asked for; they win, LD_LIBRARY_PATH is searched before ours. None: not set.
    """
    environment = {name: value for name, value in {**own, **asked}.items() if value is not None}
    environment["LD_LIBRARY_PATH"] = _joined(
        environment.get("LD_LIBRARY_PATH", ""), *(str(folder) for folder in installation.libraries)
    )
    # Bytecode is stale only by whole seconds of time: a model.py edited twice in one second would run as it was. And a
    # __pycache__ that appears in a version directory makes the next load of an unchanged model reload it.
    environment.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    if installation.stub is not None:
        _lead_stub_to_python(environment)
    return environment


def _lead_stub_to_python(environment: dict[str, str]) -> None:
    """Let the wheel's stub find the standard library and the packages of the running Python."""
    # A stub embeds Python, which looks for its standard library and site-packages from where `python3` is in PATH (and
    # in a virtual environment follows its pyvenv.cfg): put the running Python first, as an activated environment does.
    environment["PATH"] = _joined(str(Path(sys.executable).parent), environment.get("PATH", os.defpath))
    # Where that folder has no python3 (a Python that was renamed or embedded) this still finds NumPy.
    environment["PYTHONPATH"] = _joined(environment.get("PYTHONPATH", ""), sysconfig.get_path("platlib"))


def _joined(*folders: str) -> str:
    return os.pathsep.join(folder for folder in folders if folder)
