"""Host metrics: memory, fds, threads and children of the server, its shared memory and its temp files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from tritonchaos.open_process import OpenProcess
from tritonchaos.plugins import SAMPLERS, Group, SampleScope
from tritonchaos.processes import PAGE_BYTES, SHARED_MEMORY, SharedMemory, memory_rollup
from tritonchaos.units import format_bytes

_EXACT_MEMORY: Final = ("host_private_bytes", "host_pss_bytes")
_OF_CHILDREN: Final = (
    "stub_private_bytes",
    "stub_rss_bytes",
    "stub_pss_bytes",
    "server_children",
    "server_zombies",
)
_OF_PROCESS: Final = ("host_rss_bytes", *_EXACT_MEMORY, "server_fds", "server_threads", *_OF_CHILDREN)
_FILE_BYTES: Final = ("shm_bytes", "shm_other_bytes", "temp_bytes")

# Every run of tritonchaos marks its shared memory with a prefix that begins like this.
_ANY_RUN: Final = "tc_"
# st_blocks counts 512 bytes whatever the block of the file system is (inode(7)).
_BLOCK_BYTES: Final = 512
_YOUNG_NS: Final = 50_000_000


@SAMPLERS.register
@dataclass(slots=True)
class HostSampler:
    """Read memory, fds, threads, children, shared memory and temp files of the server from /proc and /dev/shm.

    The fast group is what costs little: resident memory, fds, threads and this run's shared memory. What a process that
    has ended would have shown is absent; shared memory and temp files outlive it and are still read.
    """

    name: ClassVar[str] = "host"

    _scope: SampleScope = field(default_factory=lambda: SampleScope(pid=None), init=False)
    _server: OpenProcess | None = field(default=None, init=False)
    _shared: _SharedNames | None = field(default=None, init=False)
    _uid: int = field(default_factory=os.geteuid, init=False)
    _unavailable: dict[str, str] = field(default_factory=dict, init=False)
    _before: frozenset[tuple[str, int]] | None = field(default=None, init=False)

    def open(self, scope: SampleScope) -> Mapping[str, str]:
        self.close()
        self._scope = scope
        self._server = None if scope.pid is None else OpenProcess(scope.pid)
        folder = scope.shared_memory or SHARED_MEMORY
        self._shared = _SharedNames(scope.shm_prefix, folder) if scope.shm_prefix else None
        self._uid = _user_of(scope.pid)
        if self._before is None:
            # Of the first opening, before the server: what it leaves there stays new after a restart.
            self._before = frozenset((entry.name, entry.inode()) for entry in _entries(os.fspath(folder)))
        self._unavailable = _why_not_process(self._server) | _why_not_files(scope)
        return dict(self._unavailable)

    def read(self, group: Group) -> Mapping[str, int]:
        values = self._read_files(group)
        if self._server is not None:
            values.update(_read_process(self._server, group))
        for metric in self._unavailable:
            values.pop(metric, None)
        return values

    def quanta(self) -> Mapping[str, int]:
        sizes = dict.fromkeys((*_OF_PROCESS, *_FILE_BYTES), 1)
        return {metric: PAGE_BYTES if metric.endswith("_bytes") else count for metric, count in sizes.items()}

    def notes(self) -> Sequence[str]:
        others = self._new_others()
        if not others:
            return ()
        names = ", ".join(f"{memory.name} ({format_bytes(memory.bytes)})" for memory in others)
        return (
            f"in /dev/shm appeared without this run's prefix: {names}; "
            "a model of this server or another program of the same user made it",
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server = None

    def _read_files(self, group: Group) -> dict[str, int]:
        values = {}
        if self._shared is not None:
            values["shm_bytes"] = self._shared.taken_bytes()
        if group is Group.ALL:
            values["shm_other_bytes"] = sum(memory.bytes for memory in self._new_others())
            if self._scope.temp is not None:
                values["temp_bytes"] = allocated_bytes(self._scope.temp)
        return values

    def _new_others(self) -> list[SharedMemory]:
        """Names of the server's user that appeared since the first opening and carry no run's prefix."""
        before = self._before or frozenset()
        prefixes = (_ANY_RUN, self._scope.shm_prefix or _ANY_RUN)
        found = []
        for entry in _entries(os.fspath(self._scope.shared_memory or SHARED_MEMORY)):
            if entry.name.startswith(prefixes) or (entry.name, entry.inode()) in before:
                continue
            status = _status(entry)
            if status is not None and status.st_uid == self._uid:
                found.append(SharedMemory(entry.name, status.st_blocks * _BLOCK_BYTES))
        return sorted(found, key=lambda memory: memory.name)


# --- what can be read at all ---------------------------------------------------------------------


def _why_not_process(server: OpenProcess | None) -> dict[str, str]:
    if server is None:
        return dict.fromkeys(_OF_PROCESS, "not applicable: no server process is known on this machine")
    pid, stat = server.pid, server.stat()
    if stat is None or stat.is_zombie:
        return dict.fromkeys(_OF_PROCESS, f"process {pid} has ended")
    why: dict[str, str] = {}
    if server.memory_rollup() is None:
        reason = f"/proc/{pid}/smaps_rollup cannot be read: another user's process, or Linux before 4.14"
        why.update(dict.fromkeys(_EXACT_MEMORY, reason))
    if server.fd_count() is None:
        why["server_fds"] = f"/proc/{pid}/fd cannot be read: another user's process"
    if not Path(f"/proc/{pid}/task/{pid}/children").exists():
        why.update(dict.fromkeys(_OF_CHILDREN, "this kernel does not list children (CONFIG_PROC_CHILDREN)"))
    return why


def _why_not_files(scope: SampleScope) -> dict[str, str]:
    why: dict[str, str] = {}
    folder = scope.shared_memory or SHARED_MEMORY
    if not folder.is_dir():
        why.update(dict.fromkeys(("shm_bytes", "shm_other_bytes"), f"there is no {folder}"))
    elif not scope.shm_prefix:
        why["shm_bytes"] = "not applicable: the server's shared memory carries no prefix of this run"
    if scope.temp is None:
        why["temp_bytes"] = "not applicable: the server's temp folder is not on this machine"
    return why


# --- readings ------------------------------------------------------------------------------------


def _read_process(server: OpenProcess, group: Group) -> dict[str, int]:
    """Read the server's process; nothing of one that has ended, also when its pid is in use again."""
    rss_bytes = server.rss_bytes()
    if rss_bytes is None:
        return {}
    read = {"host_rss_bytes": rss_bytes, "server_fds": server.fd_count(), "server_threads": server.thread_count()}
    values = {metric: value for metric, value in read.items() if value is not None}
    if group is Group.ALL:
        values.update(_read_exact_memory(server))
        values.update(_read_children(server))
    return values


def _read_exact_memory(server: OpenProcess) -> dict[str, int]:
    """Read smaps_rollup, whose resident size replaces that of statm.

    statm may lag behind by some pages per CPU, as the kernel counts on each CPU apart (Linux 6.2 and later).
    """
    rollup = server.memory_rollup()
    if rollup is None:
        return {}
    return {
        "host_private_bytes": rollup.private_bytes,
        "host_rss_bytes": rollup.rss_bytes,
        "host_pss_bytes": rollup.pss_bytes,
    }


def _read_children(server: OpenProcess) -> dict[str, int]:
    """Sum over the stubs that run; a server without stubs has 0 bytes in stubs."""
    below = server.descendants()
    alive = [process for process in below if not process.is_zombie]
    rollups = [rollup for stub in alive if stub.is_stub and (rollup := memory_rollup(stub.pid)) is not None]
    return {
        "stub_private_bytes": sum(rollup.private_bytes for rollup in rollups),
        "stub_rss_bytes": sum(rollup.rss_bytes for rollup in rollups),
        "stub_pss_bytes": sum(rollup.pss_bytes for rollup in rollups),
        "server_children": len(alive),
        "server_zombies": len(below) - len(alive),
    }


class _SharedNames:
    """The names in /dev/shm with one prefix; listed again only when something was added there or removed."""

    def __init__(self, prefix: str, folder: Path = SHARED_MEMORY) -> None:
        self._prefix = prefix
        self._folder = os.fspath(folder)
        self._changed_ns = 0
        self._names: list[str] = []

    def taken_bytes(self) -> int:
        """Bytes that are taken under these names."""
        self._follow()
        total = 0
        for name in self._names:
            try:
                total += os.stat(f"{self._folder}/{name}").st_blocks * _BLOCK_BYTES  # noqa: PTH116 - 50 times a second
            except OSError:
                continue  # removed meanwhile
        return total

    def _follow(self) -> None:
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns  # noqa: PTH116
            if changed_ns != self._changed_ns:
                self._names = [name for name in os.listdir(self._folder) if name.startswith(self._prefix)]  # noqa: PTH208
        except OSError:
            changed_ns, self._names = 0, []
        # The stamp moves in ticks of up to 10 ms, so one that is as young may stand for a later change too.
        self._changed_ns = changed_ns if time.time_ns() - changed_ns > _YOUNG_NS else 0


def allocated_bytes(folder: Path) -> int:
    """Bytes that the files below a folder really take, a file with several names once.

    A file that was deleted while open has no name any more and does not count; folders themselves do not either.
    """
    total = 0
    seen: set[tuple[int, int]] = set()
    waiting = [os.fspath(folder)]
    while waiting:
        for entry in _entries(waiting.pop()):
            status = _status(entry)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif status is not None and (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                total += status.st_blocks * _BLOCK_BYTES
    return total


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        # Removed while it was being read, or not ours to read.
        return


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _user_of(pid: int | None) -> int:
    if pid is None:
        return os.geteuid()
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return os.geteuid()
