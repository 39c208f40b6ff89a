"""What this machine has for tritonchaos, what it lacks, and what to do about that."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tritonchaos.doctor.check import Check
from tritonchaos.doctor.containers import docker
from tritonchaos.doctor.devices import gpus
from tritonchaos.doctor.room import debugger, disk, ptrace, shared_memory
from tritonchaos.doctor.serving import compiler, python, tensorrt, tritonserver
from tritonchaos.native import cache_folder
from tritonchaos.nvml import open_nvml

__all__ = ["Check", "examine"]

_PTRACE_SCOPE: Final = Path("/proc/sys/kernel/yama/ptrace_scope")


def examine(try_container: bool = True) -> list[Check]:
    """Look at everything, in the order in which a first run needs it.

    Args:
        try_container: Start a container for an instant, if there is an engine and a tritonserver image; apart from
            that nothing is started or changed.
    """
    looks: Sequence[Callable[[], list[Check]]] = (
        lambda: [python()],
        tritonserver,
        lambda: [compiler()],
        lambda: gpus(open_nvml()),
        lambda: [tensorrt()],
        lambda: docker(os.environ, try_container),
        lambda: [disk("disk of the current folder", Path.cwd()), disk("disk of the cache", cache_folder())],
        lambda: [shared_memory()],
        lambda: [debugger(), ptrace(_PTRACE_SCOPE, is_root=os.geteuid() == 0)],
    )
    return [check for look in looks for check in look()]
