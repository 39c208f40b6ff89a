"""Finds the process that listens on a TCP port of this machine.

Source of the file format: proc_net_tcp(5). Whose sockets another user's process holds cannot be seen without being
root.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.processes import ProcessStat, read_stat

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTEN: Final = "0A"
# The server's own library, whatever program it is loaded into (tritonserver, or Python with the in-process API).
_TRITON_LIBRARY: Final = b"libtritonserver"


@dataclass(frozen=True, slots=True)
class Listener:
    """The tritonserver behind a port, or why it is not known."""

    process: ProcessStat | None
    why_not: str = ""


def is_this_machine(host: str) -> bool:
    """Tell whether an address is one of this machine's: only these can be bound to."""
    try:
        addresses = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return any(_can_bind(family, address) for family, _, _, _, address in addresses)


def find_listener(port: int) -> Listener:
    """Find the tritonserver that listens on a port of this machine."""
    inodes = set(_listening_inodes(port))
    if not inodes:
        return Listener(None, f"nothing on this machine listens on port {port}; a container may")
    holders = {pid for pid in _pids() if inodes & set(_socket_inodes(pid))}
    servers = [stat for pid in holders if _holds_triton(pid) and (stat := read_stat(pid)) is not None]
    if not holders:
        return Listener(None, f"port {port} belongs to another user's process")
    if not servers:
        names = ", ".join(sorted({stat.command for pid in holders if (stat := read_stat(pid)) is not None}))
        return Listener(None, f"port {port} belongs to {names or 'a process'}, which is no tritonserver")
    # A child may have inherited the socket: the server is the one that was there first.
    return Listener(min(servers, key=lambda stat: (stat.start_ticks, stat.pid)))


def _can_bind(family: int, address: tuple[object, ...]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address[0], 0, *address[2:]))
    except (OSError, TypeError):
        return False
    return True


def _listening_inodes(port: int) -> Iterator[int]:
    for table in _TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                yield int(fields[9])


def _pids() -> Iterator[int]:
    """All processes; the open files of another user are not ours to see."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            yield int(entry.name)


def _socket_inodes(pid: int) -> Iterator[int]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - every process of the machine is looked at
    except OSError:
        return
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
        except OSError:
            continue
        if target.startswith("socket:["):
            yield int(target[8:-1])


def _holds_triton(pid: int) -> bool:
    try:
        return _TRITON_LIBRARY in Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return False
