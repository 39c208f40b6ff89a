"""Becomes another program that the kernel kills when the process that started it ends, however it ends.

Run as a script with the standard library only. Standard input is one JSON object: "parent" (process id of the starter),
"arguments" (the program and its arguments), "environment". The process keeps its id: the program takes its place.

A script of its own instead of code between fork and exec: that would run in a copy of a process with threads, where any
lock may be held for ever.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Final

# Source: prctl(2), linux/prctl.h. It survives execve of an ordinary program.
_PR_SET_PDEATHSIG: Final = 1
_CANNOT_EXECUTE: Final = 127


def main() -> int:
    """Ask for the death signal, then become the program; returns an exit status only where that fails."""
    order = json.load(sys.stdin)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != order["parent"]:
        # It ended before the signal was asked for, so the signal will never come.
        return _CANNOT_EXECUTE
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    program = order["arguments"][0]
    try:
        os.execve(program, order["arguments"], order["environment"])
    except OSError as error:
        sys.stderr.write(f"cannot execute {program}: {error.strerror}\n")
    return _CANNOT_EXECUTE


if __name__ == "__main__":
    sys.exit(main())
