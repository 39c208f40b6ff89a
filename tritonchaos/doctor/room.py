"""Room and rights: disks, shared memory, and who may look into a hung server."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from tritonchaos.doctor.check import Check
from tritonchaos.processes import SHARED_MEMORY
from tritonchaos.units import GIB, MIB, format_bytes

# The python backend takes 1 MiB and more for each model instance, and a container has 64 MiB unless told otherwise.
_ENOUGH_SHM_BYTES: Final = 128 * MIB
_ENOUGH_DISK_BYTES: Final = 1 * GIB


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
