"""How GPUs come into a container: by NVIDIA Container Toolkit, CDI, or plain device nodes; and why not, where not.

Source: NVIDIA Container Toolkit documentation, "Specialized Configurations with Docker" and "Support for Container
Device Interface"; Docker's documentation of CDI (Docker 25 and later).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from tritonchaos.containers.engine import EngineFacts
from tritonchaos.containers.spec import GpuDevices, Mount
from tritonchaos.errors import TargetUnavailable
from tritonchaos.nvml import Gpu, NoNvml, open_nvml

Way = Literal["auto", "toolkit", "cdi", "devices"]
Wanted = Sequence[int | str] | Literal["all"]

_CDI_KIND: Final = "nvidia.com/gpu"
_CDI_FOLDERS: Final = ("/etc/cdi", "/var/run/cdi")
_FIRST_API_WITH_CDI: Final = (1, 44)
_HOOKS: Final = ("nvidia-container-runtime-hook", "nvidia-container-toolkit")
# Where NVIDIA's images look for the driver's libraries (their LD_LIBRARY_PATH).
_LIBRARIES_IN_CONTAINER: Final = "/usr/local/nvidia/lib64"
# Libraries of the driver for CUDA and NVML. Source: libnvidia-container, src/nvc_info.c, compute_libs and utility_libs,
# without OpenCL's; a driver has some of them under names with a number, such as libnvidia-nvvm70.
_NAME: Final = (
    r"lib(?:cuda|cudadebugger|nvidia-(?:ml|cfg|ptxjitcompiler|nvvm\d*|gpucomp|tileiras|allocator|pkcs11(?:-openssl3)?))"
    r"\.so\.\d[\d.]*"
)
_LISTED: Final = re.compile(rf"\s({_NAME}) .*x86-64.* => (\S+)")
_LIBRARY: Final = re.compile(_NAME)
_HOW: Final = (
    "install the NVIDIA Container Toolkit on this machine and run `nvidia-ctk runtime configure --runtime=docker`, or "
    "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` for CDI; without a GPU take gpus out of the target"
)


@dataclass(frozen=True, slots=True)
class Machine:
    """What of this machine decides; a test gives another root folder."""

    root: Path = Path("/")
    which: Callable[[str], str | None] = shutil.which
    library_list: Callable[[], str] = field(default=lambda: _library_list())
    library_folders: Callable[[], Sequence[str]] = field(default=lambda: _library_folders())

    def exists(self, path: str) -> bool:
        return (self.root / path.lstrip("/")).exists()

    def libraries(self) -> dict[str, str]:
        """Driver libraries: name that a program asks for -> path; from the loader's list, else from its folders."""
        found: dict[str, str] = dict(_LISTED.findall(self.library_list()))
        for folder in self.library_folders():
            for file in sorted((self.root / folder.lstrip("/")).glob("lib*.so.*")):
                if _LIBRARY.fullmatch(file.name):
                    found.setdefault(file.name, str(file))
        return found


@dataclass(frozen=True, slots=True)
class GpuAccess:
    """How the GPUs that were asked for get into the container.

    Attributes:
        library_folder: Folder in the container that holds the driver's libraries and that its loader must search; "":
            whoever puts them there sees to that.
    """

    way: str
    uuids: tuple[str, ...]
    devices: GpuDevices = field(default_factory=GpuDevices)
    mounts: tuple[Mount, ...] = ()
    library_folder: str = ""

    def library_path(self, given: str) -> str:
        """LD_LIBRARY_PATH with which a container's programs find the driver.

        Args:
            given: What it would be otherwise.
        """
        if not self.library_folder or self.library_folder in given.split(":"):
            return given
        return f"{given}:{self.library_folder}" if given else self.library_folder


def find_gpus() -> list[Gpu]:
    """GPUs of this machine.

    Raises:
        TargetUnavailable: There is no driver, or no GPU.
    """
    nvml = open_nvml()
    if isinstance(nvml, NoNvml):
        raise TargetUnavailable(f"a GPU is asked for, but there is none here: {nvml.reason}", hint=nvml.hint)
    try:
        found = nvml.gpus()
    finally:
        nvml.close()
    if not found:
        raise TargetUnavailable("a GPU is asked for, but the driver lists none")
    return found


def choose_gpus(wanted: Wanted, present: Sequence[Gpu]) -> list[Gpu]:
    """GPUs by number, UUID or all.

    Raises:
        TargetUnavailable: One that was asked for is not there.
    """
    if wanted == "all":
        return list(present)
    chosen = []
    for name in wanted:
        found = [gpu for gpu in present if name in (gpu.index, gpu.uuid) or str(name) == str(gpu.index)]
        if not found:
            there = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in present)
            raise TargetUnavailable(f"GPU {name} is asked for, but this machine has {there}")
        chosen += found
    return chosen


def find_access(gpus: Sequence[Gpu], way: Way, facts: EngineFacts, machine: Machine | None = None) -> GpuAccess:
    """Choose the first way that works, or the one that was named.

    Raises:
        TargetUnavailable: None does; says why of each that was tried.
    """
    ways = _WAYS if way == "auto" else {way: _WAYS[way]}
    reasons = []
    for name, find in ways.items():
        found = find(gpus, facts, machine or Machine())
        if isinstance(found, GpuAccess):
            return found
        reasons.append(f"{name}: {found}")
    raise TargetUnavailable("no GPU can be given to a container: " + "; ".join(reasons), hint=_HOW)


def ways_that_work(facts: EngineFacts, machine: Machine | None = None) -> dict[str, str]:
    """Each way -> "" if it can be used with an engine, else why not; for `doctor`."""
    probe = [Gpu(0, "", "", has_mig_mode=False)]
    found = {name: find(probe, facts, machine or Machine()) for name, find in _WAYS.items()}
    return {name: "" if isinstance(answer, GpuAccess) else answer for name, answer in found.items()}


# --- each way: access, or why it cannot be used -------------------------------------------------------


def _toolkit(gpus: Sequence[Gpu], facts: EngineFacts, machine: Machine) -> GpuAccess | str:
    if facts.name == "Podman":
        return "Podman gives GPUs by CDI"
    if "nvidia" not in facts.runtimes and not any(machine.which(hook) for hook in _HOOKS):
        return f"the engine has no runtime nvidia, and {_HOOKS[0]} is not installed"
    uuids = _uuids(gpus)
    return GpuAccess("toolkit", uuids, GpuDevices(ids=uuids))


def _cdi(gpus: Sequence[Gpu], facts: EngineFacts, machine: Machine) -> GpuAccess | str:
    if facts.name != "Podman" and _version(facts.api_version) < _FIRST_API_WITH_CDI:
        return f"{facts.name} {facts.version} knows no CDI (25.0 does)"
    if facts.name != "Podman" and not facts.cdi_folders:
        return 'CDI is switched off in the engine ("features": {"cdi": true} in daemon.json)'
    folders = facts.cdi_folders or _CDI_FOLDERS
    names = set(_cdi_names(machine, folders))
    if not names:
        return f"no CDI description of {_CDI_KIND} in {', '.join(folders)}"
    wanted = [next((n for n in (gpu.uuid, str(gpu.index)) if n in names), None) for gpu in gpus]
    if None in wanted:
        return f"the CDI descriptions have {', '.join(sorted(names))}, not every GPU that is asked for"
    full = tuple(f"{_CDI_KIND}={name}" for name in wanted)
    # Podman takes CDI names where Docker takes device nodes.
    devices = GpuDevices(nodes=full) if facts.name == "Podman" else GpuDevices(driver="cdi", ids=full)
    return GpuAccess("cdi", _uuids(gpus), devices)


def _device_nodes(gpus: Sequence[Gpu], facts: EngineFacts, machine: Machine) -> GpuAccess | str:
    if facts.is_rootless:
        return "a rootless engine may not give device nodes"
    split = [gpu.uuid for gpu in gpus if gpu.has_mig_mode]
    if split:
        return f"{', '.join(split)} is split into MIG instances, which need further nodes"
    needed = ["/dev/nvidiactl", "/dev/nvidia-uvm", *(f"/dev/nvidia{_minor(gpu, machine)}" for gpu in gpus)]
    missing = [node for node in needed if not machine.exists(node)]
    if missing:
        return f"there is no {', '.join(missing)}"
    libraries = machine.libraries()
    if not any(name.startswith("libcuda.so") for name in libraries):
        searched = ", ".join(machine.library_folders())
        return f"the driver's libcuda.so.1 is neither in the loader's list (ldconfig -p) nor in {searched}"
    mounts = tuple(
        Mount(str(Path(path).resolve()), f"{_LIBRARIES_IN_CONTAINER}/{name}")
        for name, path in sorted(libraries.items())
    )
    extra = [node for node in ("/dev/nvidia-uvm-tools",) if machine.exists(node)]
    return GpuAccess("devices", _uuids(gpus), GpuDevices(nodes=(*needed, *extra)), mounts, _LIBRARIES_IN_CONTAINER)


_WAYS: Final[Mapping[str, Callable[[Sequence[Gpu], EngineFacts, Machine], GpuAccess | str]]] = {
    "toolkit": _toolkit,
    "cdi": _cdi,
    "devices": _device_nodes,
}


def _minor(gpu: Gpu, machine: Machine) -> int:
    """Number of a GPU's device node, which need not be NVML's index.

    Source: README of NVIDIA's Linux driver, "The /proc File System Interface": gpus/ADDRESS/information.
    """
    for file in sorted((machine.root / "proc/driver/nvidia/gpus").glob("*/information")):
        text = file.read_text(errors="replace")
        minor = re.search(r"^Device Minor:\s*(\d+)", text, re.MULTILINE)
        if gpu.uuid and gpu.uuid in text and minor is not None:
            return int(minor[1])
    return gpu.index


def _uuids(gpus: Iterable[Gpu]) -> tuple[str, ...]:
    return tuple(gpu.uuid for gpu in gpus)


def _cdi_names(machine: Machine, folders: Sequence[str]) -> list[str]:
    """Device names in the CDI descriptions of NVIDIA's GPUs."""
    import yaml

    names: list[str] = []
    for folder in folders:
        for file in sorted((machine.root / folder.lstrip("/")).glob("*")):
            try:
                read = yaml.safe_load(file.read_text()) if file.suffix in (".yaml", ".yml", ".json") else None
            except (OSError, ValueError, yaml.YAMLError):
                continue
            if isinstance(read, dict) and read.get("kind") == _CDI_KIND:
                names += [str(device.get("name")) for device in read.get("devices") or ()]
    return names


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _library_list() -> str:
    try:
        return subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _library_folders() -> tuple[str, ...]:
    """Where a loader looks before its list, and where a driver is that is mounted, as into a container."""
    asked = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return tuple(dict.fromkeys([*(folder for folder in asked if folder.startswith("/")), _LIBRARIES_IN_CONTAINER]))
