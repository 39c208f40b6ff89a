"""What this machine has for tritonchaos, what it lacks, and what to do about that."""

from __future__ import annotations

import http.client
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.errors import SamplerError, TargetError, TemplateError
from tritonchaos.native import cache_folder, find_compiler
from tritonchaos.nvml import Gpu, NoNvml, Nvml, open_nvml
from tritonchaos.plugins import TARGETS
from tritonchaos.processes import SHARED_MEMORY, read_stat
from tritonchaos.units import GIB, MIB, format_bytes

_DOCKER_SOCKET: Final = Path("/var/run/docker.sock")
_DOCKER_DEADLINE_S: Final = 2.0
# The python backend takes 1 MiB and more for each model instance, and a container has 64 MiB unless told otherwise.
_ENOUGH_SHM_BYTES: Final = 128 * MIB
_ENOUGH_DISK_BYTES: Final = 1 * GIB
_PTRACE_SCOPE: Final = Path("/proc/sys/kernel/yama/ptrace_scope")
_TENSORRT: Final = (
    ("tensorrt", ("tensorrt", "tensorrt_cu13", "tensorrt_cu12", "tensorrt_cu11")),
    ("tensorrt_rtx", ("tensorrt_rtx", "tensorrt_rtx_cu13", "tensorrt_rtx_cu12")),
)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        ok: True: as wanted. False: missing or broken, and most runs need it. None: only some runs need it.
        found: What is there, or why it cannot be used.
        what_to_do: "" where nothing is to be done.
    """

    name: str
    ok: bool | None
    found: str
    what_to_do: str = ""


def examine() -> list[Check]:
    """Look at everything, in the order in which a first run needs it; nothing is started or changed."""
    looks: Sequence[Callable[[], list[Check]]] = (
        lambda: [python()],
        tritonserver,
        lambda: [compiler()],
        lambda: gpus(open_nvml()),
        lambda: [tensorrt()],
        lambda: [docker(os.environ)],
        lambda: [disk("disk of the current folder", Path.cwd()), disk("disk of the cache", cache_folder())],
        lambda: [shared_memory()],
        lambda: [debugger(), ptrace(_PTRACE_SCOPE, is_root=os.geteuid() == 0)],
    )
    return [check for look in looks for check in look()]


# --- what serves ---------------------------------------------------------------------------------


def python() -> Check:
    """Version of the running Python and of the packages on which an embedded server depends."""
    versions = [f"{name} {found}" for name in ("numpy", "tritonclient", "pydantic") if (found := _version_of(name))]
    return Check("Python", True, f"{platform.python_version()} ({', '.join(versions)}), {sys.executable}")


def tritonserver() -> list[Check]:
    """Is there a tritonserver that target `local` can start, and can its python backend run?"""
    if "local" not in TARGETS:
        return [Check("tritonserver", False, "target local cannot be loaded", "`tritonchaos list` says why")]
    target = TARGETS["local"]()
    try:
        target.check()
        facts: Mapping[str, str] = target.describe()
    except TargetError as error:
        return [Check("tritonserver", False, error.message, error.hint)]
    version = facts.get("triton_version") or "of unknown version"
    server = Check("tritonserver", True, f"{version}, {facts.get('server_path', '')}")
    return [server, _python_backend(facts.get("python_backend", ""), target.backends())]


def _python_backend(why_not: str, backends: frozenset[str]) -> Check:
    if "python" in backends:
        return Check("python backend", True, f"backends of the server: {', '.join(sorted(backends))}")
    reason = why_not.removeprefix("not available: ") or "this server does not bring it"
    fix = "for the embedded server: a Python with shared library (libpython), up to 3.12, and pip install 'numpy<2'"
    return Check("python backend", None, reason, fix)


def compiler() -> Check:
    """Is there a C compiler for the planted backend?"""
    try:
        found = find_compiler()
    except TemplateError as error:
        return Check("C compiler", None, error.message, error.hint)
    # What a compiler says of its version goes on with its licence.
    return Check("C compiler", True, f"{found.version.splitlines()[0]} ({' '.join(found.command)})")


# --- GPU -----------------------------------------------------------------------------------------


def gpus(nvml: Nvml | NoNvml) -> list[Check]:
    """Driver, and for each GPU whether anybody uses it; closes the given use of NVML."""
    if isinstance(nvml, NoNvml):
        return [Check("NVIDIA driver", None, nvml.reason, nvml.hint)]
    try:
        found = nvml.gpus()
        driver = Check("NVIDIA driver", True, f"{nvml.driver_version()}, NVML answers, {len(found)} GPU(s)")
        broken = [Check("GPU", False, problem, "nvidia-smi shows the state of the GPU") for problem in nvml.problems]
        return [driver, *(_gpu(nvml, gpu) for gpu in found), *broken]
    except SamplerError as error:
        return [Check("NVIDIA driver", False, error.message, error.hint)]
    finally:
        nvml.close()


def _gpu(nvml: Nvml, gpu: Gpu) -> Check:
    try:
        return _look_at_gpu(nvml, gpu)
    except SamplerError as error:
        return Check(f"GPU {gpu.index}", False, error.message, error.hint)


def _look_at_gpu(nvml: Nvml, gpu: Gpu) -> Check:
    name = f"GPU {gpu.index}"
    memory = nvml.memory(gpu.uuid)
    facts = f"{gpu.name}, {format_bytes(memory.total_bytes)}, {gpu.uuid}{', MIG mode' if gpu.has_mig_mode else ''}"
    users = nvml.all_processes(gpu.uuid)
    if not users:
        return Check(name, True, f"{facts}, idle ({format_bytes(memory.used_bytes)} in use)")
    named = ", ".join(_user(pid, used) for pid, used in sorted(users.items()))
    return Check(name, None, f"{facts}, in use by {named}", "readings of the whole device need an otherwise idle GPU")


def _user(pid: int, used_bytes: int | None) -> str:
    stat = read_stat(pid)
    command = "of another container or user" if stat is None else stat.command
    used = "" if used_bytes is None else f" {format_bytes(used_bytes)}"
    return f"pid {pid} ({command}){used}"


def tensorrt() -> Check:
    """Is a TensorRT there to build engines with? Only looked up, as importing one takes seconds and a GPU's driver."""
    for module, distributions in _TENSORRT:
        if importlib.util.find_spec(module) is not None:
            version = next(filter(None, map(_version_of, distributions)), "of unknown version")
            return Check("TensorRT", True, f"Python module {module} {version}")
    fix = "pip install 'tritonchaos[tensorrt]' to build engines here"
    return Check("TensorRT", None, "neither Python module tensorrt nor tensorrt_rtx", fix)


def _version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


# --- Docker --------------------------------------------------------------------------------------


def docker(environment: Mapping[str, str]) -> Check:
    """Is there a Docker client, and does the engine answer on its socket?"""
    client = shutil.which("docker") or "no docker command"
    host = environment.get("DOCKER_HOST", f"unix://{_DOCKER_SOCKET}")
    if not host.startswith("unix://"):
        return Check("Docker", None, f"{client}; engine at {host} was not asked", "only a local socket is looked at")
    path = Path(host.removeprefix("unix://"))
    try:
        version = ping_docker(path, _DOCKER_DEADLINE_S)
    except FileNotFoundError:
        return Check(
            "Docker", None, f"{client}; no engine: {path} does not exist", "install and start Docker or Podman"
        )
    except PermissionError:
        return Check("Docker", None, f"{client}; {path} may not be opened", "add this user to the group docker")
    except (OSError, http.client.HTTPException) as error:
        reason = str(error) or type(error).__name__
        return Check("Docker", None, f"{client}; the engine does not answer on {path}: {reason}", "start Docker")
    return Check("Docker", True, f"{client}; the engine answers on {path}, API {version}")


def ping_docker(path: Path, deadline_s: float) -> str:
    """Ask the engine at a socket whether it lives; return the version of its API.

    Raises:
        OSError, http.client.HTTPException: No socket, no right to open it, or no proper answer in time.

    Source: Docker Engine API, GET /_ping, header Api-Version.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(deadline_s)
        stream.connect(os.fspath(path))
        connection = http.client.HTTPConnection("localhost")
        connection.sock = stream
        connection.request("GET", "/_ping")
        answer = connection.getresponse()
        answer.read()
    if answer.status != http.HTTPStatus.OK:
        raise http.client.HTTPException(f"status {answer.status}")
    return answer.headers.get("Api-Version", "of unknown version")


# --- room and rights -----------------------------------------------------------------------------


def disk(name: str, folder: Path) -> Check:
    """Is there room where a run writes?"""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free_bytes = shutil.disk_usage(existing).free
    found = f"{format_bytes(free_bytes)} free at {folder}"
    if not os.access(existing, os.W_OK):
        return Check(name, False, f"{existing} is not writable", "choose another folder")
    if free_bytes < _ENOUGH_DISK_BYTES:
        return Check(name, False, found, f"make room: models and logs of a run may need {format_bytes(GIB)}")
    return Check(name, True, found)


def shared_memory(folder: Path = SHARED_MEMORY, enough_bytes: int = _ENOUGH_SHM_BYTES) -> Check:
    """Is there room for the python backend's shared memory?"""
    if not folder.is_dir():
        return Check("shared memory", False, f"there is no {folder}", "mount a tmpfs there")
    usage = shutil.disk_usage(folder)
    found = f"{format_bytes(usage.free)} of {format_bytes(usage.total)} free in {folder}"
    if usage.free < enough_bytes:
        fix = "remove what is left there, or start the container with --shm-size=1g"
        return Check("shared memory", None, found, fix)
    return Check("shared memory", True, found)


def debugger() -> Check:
    """Is there a program that prints the stacks of a hung server?"""
    found = [path for name in ("gdb", "eu-stack") if (path := shutil.which(name)) is not None]
    if found:
        return Check("debugger", True, ", ".join(found))
    fix = 'only for the stacks of a hung server: "apt-get install gdb" or "apt-get install elfutils"'
    return Check("debugger", None, "neither gdb nor eu-stack", fix)


def ptrace(scope_file: Path, is_root: bool) -> Check:
    """May a debugger attach to the server?

    Source: kernel documentation, admin-guide/LSM/Yama: 0 everybody's own processes, 1 own children only, 2 root only,
    3 nobody.
    """
    try:
        scope = int(scope_file.read_text())
    except (OSError, ValueError):
        return Check("ptrace", True, "not restricted (no Yama)")
    allowed = scope == 0 or (is_root and scope < 3)
    fix = "" if allowed else "only for the stacks of a hung server: sysctl kernel.yama.ptrace_scope=0"
    return Check("ptrace", True if allowed else None, f"kernel.yama.ptrace_scope = {scope}", fix)
