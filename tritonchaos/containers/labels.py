"""Labels by which a container, network or volume is known as ours, and whether its owner still lives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tritonchaos.processes import is_running, start_ticks

RUN: Final = "tritonchaos.run"
ROLE: Final = "tritonchaos.role"
OWNER: Final = "tritonchaos.owner"
# Of the owner: boot, PID namespace, process id, its start in ticks, user.
_PARTS: Final = 5
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def labels(run: str, role: str) -> dict[str, str]:
    """Labels of something that this process makes.

    Args:
        run: Mark of the run, such as "tc_1a2b3c4d".
        role: What it is for, such as "server".
    """
    return {RUN: run, ROLE: role, OWNER: "/".join((_boot(), _pid_namespace(), *_process(os.getpid())))}


def owner_state(found: Mapping[str, str]) -> str:
    """Say whether the process that made something still runs: "alive", "dead", or "unknown" from here.

    A process id means something within one boot and one PID namespace only. Nothing that runs outlives a boot. What
    another user's process made is theirs to remove, so it counts as unknown.
    """
    parts = found.get(OWNER, "").split("/")
    if len(parts) != _PARTS or not all(part.isdigit() for part in parts[2:]):
        return "unknown"
    boot, namespace, pid, ticks, user = parts
    if int(user) != os.getuid():
        return "unknown"
    if boot != _boot():
        return "dead"
    if namespace != _pid_namespace():
        return "unknown"
    return "alive" if is_running(int(pid), int(ticks)) else "dead"


def _process(pid: int) -> tuple[str, str, str]:
    return str(pid), str(start_ticks(pid) or 0), str(os.getuid())


def _boot() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return "-"


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:
        return "-"
