"""What Linux says of a process and of those it started: memory, threads, open files, shared memory, start time.

A process that is absent (or ends while it is read) gives None or an empty answer, never an exception. Source of the
file formats: proc_pid_stat(5), proc_pid_statm(5), and filesystems/proc of the kernel documentation for smaps_rollup.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.units import KIB

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
STUB: Final = "triton_python_backend_stub"
SHARED_MEMORY: Final = Path("/dev/shm")

# The kernel keeps 15 bytes of a command's name, and st_blocks counts 512 bytes whatever the file system's block is.
_COMMAND_LENGTH: Final = 15
_BLOCK_BYTES: Final = 512
# Reading a process that ends meanwhile gives ENOENT or ESRCH; one of another user may give EACCES.
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """One process at one moment.

    Attributes:
        command: Its name as the kernel keeps it, at most 15 characters.
        state: "R", "S", "D", "T", "Z" (zombie) …, as proc_pid_stat(5) names them.
        start_ticks: Clock ticks between boot and its start; together with `pid` it names one process for good.
        session: Process id of its session's leader.
    """

    pid: int
    parent_pid: int
    command: str
    state: str
    threads: int
    start_ticks: int
    session: int

    @property
    def is_zombie(self) -> bool:
        return self.state in {"Z", "X"}

    @property
    def is_stub(self) -> bool:
        """Is it a stub process of Triton's python backend?"""
        return self.command == STUB[:_COMMAND_LENGTH]


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a target; `role` is "server", "stub" or "other"."""

    pid: int
    role: str


@dataclass(frozen=True, slots=True)
class MemoryRollup:
    """Resident memory of a process in bytes.

    `private_bytes` is what only this process has written. Clean pages of libraries are left out: they are private or
    shared as other servers on the machine come and go (26 MiB for Triton 2.51), and no leak.
    """

    rss_bytes: int
    pss_bytes: int
    private_bytes: int


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """A name in /dev/shm and the bytes that are really taken (`st_blocks`, not the length)."""

    name: str
    bytes: int


# --- one process ---------------------------------------------------------------------------------


def read_stat(pid: int) -> ProcessStat | None:
    """Read /proc/PID/stat; None if there is no such process."""
    text = _read(f"/proc/{pid}/stat")
    return parse_stat(pid, text) if text else None


def parse_stat(pid: int, text: bytes) -> ProcessStat:
    """Read the content of /proc/PID/stat."""
    # The command may hold spaces and brackets, so the fields are counted from its last bracket.
    opening, closing = text.index(b"("), text.rindex(b")")
    fields = text[closing + 2 :].split()
    return ProcessStat(
        pid=pid,
        parent_pid=int(fields[1]),
        command=text[opening + 1 : closing].decode("utf-8", "replace"),
        state=fields[0].decode(),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
        session=int(fields[3]),
    )


def start_ticks(pid: int) -> int | None:
    """Clock ticks between boot and the start of a process; None if there is no such process."""
    stat = read_stat(pid)
    return None if stat is None else stat.start_ticks


def memory_rollup(pid: int) -> MemoryRollup | None:
    """Exact memory from /proc/PID/smaps_rollup (about 0.5 ms); None for an absent process, a zombie, or no right to."""
    text = _read(f"/proc/{pid}/smaps_rollup")
    return parse_rollup(text) if text else None


def parse_rollup(text: bytes) -> MemoryRollup:
    """Read the content of /proc/PID/smaps_rollup."""
    kib: dict[bytes, int] = {}
    for line in text.splitlines()[1:]:
        name, _, value = line.partition(b":")
        kib[name] = int(value.split()[0])
    return MemoryRollup(*(kib.get(name, 0) * KIB for name in (b"Rss", b"Pss", b"Private_Dirty")))


def command_line(pid: int) -> tuple[str, ...]:
    """Arguments the process was started with; () for an absent process or a zombie."""
    text = _read(f"/proc/{pid}/cmdline") or b""
    return tuple(part.decode("utf-8", "replace") for part in text.split(b"\0")[:-1])


def environment(pid: int) -> dict[str, str]:
    """Environment a process was started with; {} for an absent process or no right to see it."""
    text = _read(f"/proc/{pid}/environ") or b""
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in text.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs}


def is_running(pid: int, start_ticks: int) -> bool:
    """Does exactly this process still run (a zombie does not)?"""
    stat = read_stat(pid)
    return stat is not None and stat.start_ticks == start_ticks and not stat.is_zombie


# --- processes it started ------------------------------------------------------------------------


def descendants(pid: int) -> list[ProcessStat]:
    """Children of a process and their children, zombies included, the process itself not."""
    found: list[ProcessStat] = []
    waiting = [pid]
    while waiting:
        for child in _children(waiting.pop()):
            stat = read_stat(child)
            if stat is not None:
                found.append(stat)
                waiting.append(child)
    return found


def session_members(session: int) -> list[ProcessStat]:
    """Processes of a session, zombies not, its leader not; those that left it with setsid are not found."""
    return [stat for stat in _all_processes() if stat.session == session and stat.pid != session and not stat.is_zombie]


def stubs_below(folder: Path) -> list[ProcessStat]:
    """Running python backend stubs that were started from a folder, whoever their parent is now.

    A stub outlives a killed server and is then nobody's child; but it was started by its path below the backend
    directory, and that folder belongs to one run only.
    """
    # A zombie has no command line, so a stub that has ended is never found here.
    return [stat for stat in _all_processes() if stat.is_stub and _started_below(stat.pid, folder)]


def _started_below(pid: int, folder: Path) -> bool:
    arguments = command_line(pid)
    return bool(arguments) and Path(arguments[0]).is_relative_to(folder)


def _children(pid: int) -> Iterator[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - a server has dozens of threads
    except _GONE:
        return
    for task in tasks:
        yield from map(int, (_read(f"/proc/{pid}/task/{task}/children") or b"").split())


def _all_processes() -> Iterator[ProcessStat]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only
        stat = read_stat(int(name)) if name.isdigit() else None
        if stat is not None:
            yield stat


# --- ending one ----------------------------------------------------------------------------------


def end(pid: int, start_ticks: int, signal_number: signal.Signals) -> bool:
    """Signal a process, but only the one that was meant: its number may have been given to another since.

    Returns:
        True if the signal was sent; False if that process has ended or may not be signalled.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # The handle was taken first, so what is compared here is what gets the signal.
        if not is_running(pid, start_ticks):
            return False
        signal.pidfd_send_signal(handle, signal_number)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


# --- shared memory -------------------------------------------------------------------------------


def shared_memory(prefix: str) -> list[SharedMemory]:
    """List the names in /dev/shm that begin with a prefix, in alphabetical order.

    Raises:
        ValueError: The prefix is empty: it would mean everybody's.
    """
    if not prefix:
        raise ValueError("the prefix of shared memory names must not be empty")
    found = []
    try:
        with os.scandir(SHARED_MEMORY) as entries:
            for entry in entries:
                if entry.name.startswith(prefix):
                    found.append(SharedMemory(entry.name, _taken_bytes(entry)))
    except _GONE:
        return []
    return sorted(found, key=lambda memory: memory.name)


def remove_shared_memory(prefix: str) -> list[SharedMemory]:
    """Remove the names in /dev/shm that begin with a prefix and return what was there."""
    found = shared_memory(prefix)
    for memory in found:
        (SHARED_MEMORY / memory.name).unlink(missing_ok=True)
    return found


def _taken_bytes(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    except _GONE:
        return 0


def _read(path: str) -> bytes | None:
    try:
        # Unbuffered and through os: these files are read 50 times a second beside a server under test.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except _GONE:
        return None
    try:
        parts = []
        while part := os.read(handle, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(handle)
