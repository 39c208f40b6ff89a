"""Stacks of a container's processes where this machine has no debugger: with the image's, in a container beside it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tritonchaos.containers.container import build
from tritonchaos.containers.engine import Engine
from tritonchaos.containers.image_facts import ImageFacts
from tritonchaos.containers.labels import labels
from tritonchaos.containers.spec import ContainerSpec
from tritonchaos.errors import TargetError

_DEADLINE_S: Final = 30.0
_HINT: Final = "install gdb (apt-get install gdb), or elfutils for eu-stack"


def debugger_in(facts: ImageFacts) -> str | None:
    """Path of a debugger in an image; None where it has none."""
    return next((tool for tool in facts.tools if tool.endswith(("/gdb", "/eu-stack"))), None)


def take_stacks_beside(
    engine: Engine,
    facts: ImageFacts,
    server: ContainerSpec,
    container_id: str,
    pids: Iterable[int],
    arguments: Mapping[str, Sequence[str]],
) -> dict[int, str]:
    """Take stacks from a container in the same PID namespace, which alone may trace.

    Args:
        pids: Processes as this machine sees them.
        arguments: Name of a debugger -> its arguments, with PID in place of the process id.

    Raises:
        TargetError: The image has no debugger either.
    """
    tool = debugger_in(facts)
    if tool is None:
        raise TargetError("neither gdb nor eu-stack is on this machine or in the image", hint=_HINT)
    template = arguments[tool.rpartition("/")[2]]
    taken = {}
    for pid in pids:
        inside = _pid_inside(pid)
        command = tuple(part.replace("PID", str(inside)) for part in template)
        mark = f"tc_{secrets.token_hex(4)}"
        spec = ContainerSpec(
            image=server.image,
            name=f"tritonchaos-{mark}-stacks",
            entrypoint=(tool,),
            command=command,
            labels=labels(mark, "stacks"),
            user="0:0",  # a capability is given to root only
            add=("SYS_PTRACE",),
            tmpfs={"/tmp": "mode=1777"},
            mounts=server.mounts,  # our backends lie there, with their symbols
            has_init=False,  # there is one already in that namespace
            pid_mode=f"container:{container_id}",
        )
        code, text = build(engine, spec, _DEADLINE_S)
        taken[pid] = text if "#0" in text else f"not taken: {tool} in the image ended with {code}"
    return taken


def _pid_inside(pid: int) -> int:
    """Process id in the innermost PID namespace.

    Source: proc_pid_status(5), NSpid.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return pid
    found = next((line.split()[-1] for line in lines if line.startswith("NSpid:")), str(pid))
    return int(found)
