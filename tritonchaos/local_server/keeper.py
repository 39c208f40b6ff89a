"""Keeps one server: starts it, reaps what it starts, and ends it all when the starter ends, however that happens.

Run as a script with the standard library only. The starter writes one line of JSON to standard input: "arguments" (the
program and its arguments), "environment" and "ulimits" (name of a resource limit -> value); then it holds that pipe
open for as long as the server may live. Standard output tells it "pid N" once, and "exit N" when the server has ended
(minus the signal number after a signal). Standard error is the server's log.

Why a process in between: Linux can send a death signal to the server, but not to its stubs. A stub watches whether the
process id of its server still exists, and that id exists for as long as nobody reaps the dead server; in a container
whose first process reaps nothing that is for ever. The keeper adopts (PR_SET_CHILD_SUBREAPER) and reaps what is left.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
from typing import Final

# Source: prctl(2), linux/prctl.h. The death signal survives execve of an ordinary program.
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_CANNOT_EXECUTE: Final = 127
# The pipe's end tells of the starter's end, unless a fork of it holds the pipe too: so its process id is looked at.
_LOOK_AT_PARENT_S: Final = 0.5


def main() -> None:
    """Start the server and keep it until it is to end."""
    parent = os.getppid()
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    order = json.loads(_read_line())
    woken = _wake_on_children()
    server = _start(libc, order["arguments"], order["environment"], order["ulimits"])
    _tell(f"pid {server}")
    try:
        _keep(server, parent, woken)
    finally:
        _end_all()


def _keep(server: int, parent: int, woken: int) -> None:
    """Reap and tell until the starter closes its pipe or has ended."""
    while True:
        _reap(server)
        ready, _, _ = select.select([0, woken], [], [], _LOOK_AT_PARENT_S)
        if woken in ready:
            os.read(woken, 4096)
        if (0 in ready and not os.read(0, 4096)) or os.getppid() != parent:
            return


def _start(libc: ctypes.CDLL, arguments: list[str], environment: dict[str, str], ulimits: dict[str, int]) -> int:
    keeper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        # A keeper that ended before the signal was asked for will never send it.
        if os.getppid() == keeper:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(2, 1)
            _limit(ulimits)
            os.execve(arguments[0], arguments, environment)
    except OSError as error:
        os.write(2, f"cannot execute {arguments[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(_CANNOT_EXECUTE)


def _limit(ulimits: dict[str, int]) -> None:
    """Set resource limits of this process, soft and hard; -1 is RLIM_INFINITY."""
    for name, value in ulimits.items():
        try:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (value, value))
        except (ValueError, OSError) as error:
            os.write(2, f"cannot set the resource limit {name} to {value}: {error}\n".encode())
            os._exit(_CANNOT_EXECUTE)


def _reap(server: int) -> None:
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended == 0:
            return
        if ended == server:
            _tell(f"exit {os.waitstatus_to_exitcode(status)}")


def _end_all() -> None:
    """End every child; what they leave becomes our child in turn, so this repeats until there is none."""
    while True:
        for child in _children():
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only
        if name.isdigit() and _parent_of(name) == os.getpid():
            found.append(int(name))
    return found


def _parent_of(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib would double the time to start
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _wake_on_children() -> int:
    """Return a file descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _read_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 1 << 16)
        if not part:
            sys.exit(_CANNOT_EXECUTE)
        line += part
    return line


def _tell(line: str) -> None:
    try:
        os.write(1, f"{line}\n".encode())
    except BrokenPipeError:
        return


if __name__ == "__main__":
    main()
