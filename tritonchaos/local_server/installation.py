"""Finds a tritonserver on this machine and what belongs to it: backends, libraries, the stub of the running Python."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tritonchaos.errors import TargetUnavailable
from tritonchaos.local_server.server_flags import parse_help
from tritonchaos.processes import STUB

PATH_VARIABLE: Final = "TRITONCHAOS_SERVER_PATH"
CONTAINER_BINARY: Final = Path("/opt/tritonserver/bin/tritonserver")
HOW_TO_INSTALL: Final = (
    "pip install 'tritonchaos[local]' brings a tritonserver (Linux x86-64, Python up to 3.12), "
    f"or give the path of one with --server-path or {PATH_VARIABLE}"
)

# e_machine of the ELF header by what uname calls the machine. Source: elf(5).
_ELF_MACHINES: Final = {"x86_64": 62, "aarch64": 183}
_PROBE_S: Final = 30.0
# The tritonserver that each nvidia-pytriton wheel carries, for reports that are written before a server has answered.
_WHEEL_VERSIONS: Final = {"0.7.0": "2.51.0"}
# The stub of 2.51 fails every inference under NumPy 2 with a shape error, although loading a model succeeds.
_FIRST_BAD_NUMPY: Final = 2


@dataclass(frozen=True, slots=True)
class Installation:
    """A tritonserver on this machine.

    Attributes:
        origin: How it was found, such as "PATH" or "nvidia-pytriton 0.7.0".
        triton_version: "" where it is not known before the server runs.
        backends: Backend name -> its folder; the wheel's python backend is in `stub`, not here.
        libraries: Folders for LD_LIBRARY_PATH.
        stub: The wheel's stub for the running Python; None where there is none, or the server is no wheel's.
        no_python_backend: Why the wheel's python backend cannot be used here; "" otherwise.
        passed_over: Places that were looked at before it and have one that cannot be used, with the reason.
    """

    binary: Path
    origin: str
    triton_version: str
    backends: Mapping[str, Path]
    libraries: tuple[Path, ...]
    stub: Path | None = None
    no_python_backend: str = ""
    passed_over: tuple[str, ...] = ()

    @property
    def backend_names(self) -> frozenset[str]:
        return frozenset(self.backends) | ({"python"} if self.stub is not None else frozenset())

    @property
    def is_wheel(self) -> bool:
        return (self.binary.parent.parent / "python_backend_stubs").is_dir()

    @property
    def wheel_python_backend(self) -> Path:
        """Folder of the wheel's python backend, which lacks its stub."""
        return self.binary.parent.parent / "backends" / "python"


def find_installation(server_path: Path | None) -> Installation:
    """Find a tritonserver by path, environment, PATH, in the place where Triton's images have it, or in a wheel.

    A path that was given has no fallback; one that was only found there and does not run is passed over.

    Args:
        server_path: The binary that was asked for, or None.

    Raises:
        TargetUnavailable: None can be used; names everything that was looked at.
    """
    given = [("server_path", server_path), (PATH_VARIABLE, _path_from_environment())]
    looked_at = [f"{name} is not given" for name, path in given if path is None]
    for name, path in given:
        if path is not None:
            return _open_given(path, name)
    search: list[tuple[str, Callable[[], Path | None]]] = [
        ("tritonserver in PATH", _path_from_path),
        (str(CONTAINER_BINARY), lambda: CONTAINER_BINARY if CONTAINER_BINARY.exists() else None),
        ("the nvidia-pytriton wheel", _wheel_binary),
    ]
    passed_over: list[str] = []
    for name, find in search:
        path = find()
        if path is None:
            looked_at.append(f"{name}: not found")
            continue
        why_not = binary_problem(path)
        if not why_not:
            found = replace(_describe(path, name), passed_over=tuple(passed_over))
            why_not = "" if found.is_wheel else _help_problem(found)
            if not why_not:
                return found
        passed_over.append(f"{name}: {why_not}")
    everything = "; ".join([*looked_at, *passed_over])
    raise TargetUnavailable(f"no tritonserver on this machine: {everything}", hint=HOW_TO_INSTALL)


def _help_problem(found: Installation) -> str:
    """Say why a server does not run here (a library is missing, it is damaged); "" if it answers."""
    libraries = [*map(str, found.libraries), os.environ.get("LD_LIBRARY_PATH", "")]
    try:
        read_flags(found.binary, {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries))})
    except TargetUnavailable as error:
        return error.message
    return ""


def binary_problem(path: Path) -> str:
    """Say why a file cannot be run as tritonserver, judged by the file alone; "" if it can."""
    if not path.exists():
        return f"{path} does not exist"
    if not path.is_file():
        return f"{path} is not a file"
    if not os.access(path, os.X_OK):
        return f"{path} is not executable"
    with path.open("rb") as file:
        header = file.read(20)
    if header.startswith(b"#!"):
        return ""
    if not header.startswith(b"\x7fELF"):
        return f"{path} is neither a program (ELF) nor a script"
    machine = int.from_bytes(header[18:20], "little")
    if machine != _ELF_MACHINES.get(platform.machine(), machine):
        return f"{path} is a program for another machine (ELF machine {machine}; this is {platform.machine()})"
    return ""


def read_flags(binary: Path, environment: Mapping[str, str]) -> Mapping[str, bool]:
    """Ask a tritonserver for its help: flag without dashes -> does it take a value?

    Raises:
        TargetUnavailable: It cannot be executed (a library is missing) or is no tritonserver.
    """
    try:
        done = subprocess.run(
            [binary, "--help"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetUnavailable(f"{binary} --help failed: {error}", hint=HOW_TO_INSTALL) from error
    text = done.stdout.decode("utf-8", "replace")
    flags = parse_help(text)
    if "model-repository" not in flags:
        told = " | ".join(text.strip().splitlines()[-3:]) or "nothing"
        raise TargetUnavailable(
            f"{binary} --help does not answer as tritonserver does; exit status {done.returncode}, it said: {told}",
            hint=HOW_TO_INSTALL,
        )
    return flags


# --- where it may be -----------------------------------------------------------------------------


def _path_from_environment() -> Path | None:
    value = os.environ.get(PATH_VARIABLE, "")
    return Path(value) if value else None


def _path_from_path() -> Path | None:
    found = shutil.which("tritonserver")
    return Path(found) if found else None


def _wheel_binary() -> Path | None:
    # Found without importing it: pytriton's import is slow and starts things of its own.
    spec = importlib.util.find_spec("pytriton")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        binary = Path(folder) / "tritonserver" / "bin" / "tritonserver"
        if binary.exists():
            return binary
    return None


def _open_given(path: Path, name: str) -> Installation:
    if problem := binary_problem(path):
        raise TargetUnavailable(f"{name}: {problem}", hint="give the path of a tritonserver program for this machine")
    return _describe(path, name)


# --- what belongs to it --------------------------------------------------------------------------


def _describe(path: Path, origin: str) -> Installation:
    binary = path.absolute()
    # A name in PATH is often a link; what belongs to the server lies beside the file itself.
    root = binary.resolve().parent.parent
    if (root / "python_backend_stubs").is_dir():
        return _describe_wheel(binary.resolve(), root)
    folders = (root / "backends").iterdir() if (root / "backends").is_dir() else ()
    version_file = root / "TRITON_VERSION"
    return Installation(
        binary=binary,
        origin=origin,
        triton_version=version_file.read_text().strip() if version_file.is_file() else "",
        backends={folder.name: folder for folder in sorted(folders) if folder.is_dir()},
        libraries=tuple(folder for folder in (root / "lib",) if folder.is_dir()),
    )


def _describe_wheel(binary: Path, root: Path) -> Installation:
    version = _distribution_version("nvidia-pytriton")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = root / "python_backend_stubs" / python / STUB
    python_library, why_not = _find_python_library(python)
    if not stub.is_file():
        why_not = f"the wheel has no stub for Python {python}"
    numpy_version = _distribution_version("numpy")
    if numpy_version and int(numpy_version.split(".")[0]) >= _FIRST_BAD_NUMPY:
        why_not = f"its stub needs NumPy below {_FIRST_BAD_NUMPY}, found {numpy_version}"
    libraries = (root.parent.parent / "nvidia_pytriton.libs", python_library)
    return Installation(
        binary=binary,
        origin=f"nvidia-pytriton {version}".strip(),
        triton_version=_WHEEL_VERSIONS.get(version, ""),
        backends={},
        libraries=tuple(folder for folder in libraries if folder is not None and folder.is_dir()),
        stub=None if why_not else stub,
        no_python_backend=why_not,
    )


def _distribution_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _find_python_library(python: str) -> tuple[Path | None, str]:
    """Folder of the running Python's shared library, which the stub needs to start; or why there is none."""
    name = f"libpython{python}.so.1.0"
    prefix = Path(sys.base_prefix)
    folders = [Path(sysconfig.get_config_var("LIBDIR") or prefix / "lib"), prefix / "lib", prefix / "lib64"]
    if multiarch := sysconfig.get_config_var("MULTIARCH"):
        folders.append(prefix / "lib" / multiarch)
    for folder in folders:
        if (folder / name).exists():
            return folder, ""
    return None, f"{name} not found (this Python was built without a shared library), looked in {sys.base_prefix}"
