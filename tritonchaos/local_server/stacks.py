"""Stacks of all threads of a process, taken with gdb, or with eu-stack where that is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Final

from tritonchaos.errors import TargetError

_DEADLINE_S: Final = 20.0
_HINT: Final = "install gdb (apt-get install gdb), or elfutils for eu-stack"
# Debugger -> how it is asked for the stacks of all threads of process PID. -nx: no start-up files of the user; no
# paging and no colours in batch mode.
ARGUMENTS: Final = {"gdb": ("-nx", "-batch", "-p", "PID", "-ex", "thread apply all bt"), "eu-stack": ("-p", "PID")}
_NOT_ALLOWED: Final = "not permitted"


def find_debugger() -> str | None:
    """Return the path of the debugger that would be used, or None."""
    return shutil.which("gdb") or shutil.which("eu-stack")


def take_stacks(pids: Iterable[int]) -> dict[int, str]:
    """Stop each process for a moment and print the stacks of all its threads.

    Returns:
        Process id -> text of the debugger, or "not taken: WHY".

    Raises:
        TargetError: There is no debugger.
    """
    debugger = find_debugger()
    if debugger is None:
        raise TargetError("neither gdb nor eu-stack is installed", hint=_HINT)
    return {pid: _take(debugger, pid) for pid in pids}


def _take(debugger: str, pid: int) -> str:
    try:
        done = subprocess.run(
            _arguments(debugger, pid),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_DEADLINE_S,
            env={**os.environ, "DEBUGINFOD_URLS": "", "LC_ALL": "C"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return f"not taken: {debugger} was not done after {_DEADLINE_S:g} s"
    except OSError as error:
        return f"not taken: {debugger}: {error.strerror}"
    text = done.stdout.decode("utf-8", "replace")
    return text if "#0" in text else f"not taken: {_why(done.stderr.decode('utf-8', 'replace'))}"


def _arguments(debugger: str, pid: int) -> list[str]:
    template = ARGUMENTS["gdb" if debugger.endswith("gdb") else "eu-stack"]
    return [debugger, *(part.replace("PID", str(pid)) for part in template)]


def _why(errors: str) -> str:
    lines = [line for line in errors.splitlines() if line.strip()]
    if any(_NOT_ALLOWED in line for line in lines):
        return "tracing it is not permitted (be root, or set kernel.yama.ptrace_scope to 0)"
    return lines[-1] if lines else "the debugger printed nothing"
