"""A process whose files in /proc stay open, to be read many times a second beside a server under test.

A file that is kept open belongs to the process it was opened for: once that one has ended it gives nothing, also when
its pid is in use again. Source of the formats: see `processes`; the size of /proc/PID/fd is the number of open files
from Linux 6.2 on and 0 before (filesystems/proc of the kernel documentation).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from tritonchaos.processes import PAGE_BYTES, MemoryRollup, ProcessStat, parse_rollup, parse_stat, read_stat

_ROLLUP: Final = "smaps_rollup"
_PART_BYTES: Final = 8192
_SHORT_BYTES: Final = 2048


class OpenProcess:
    """One process; a reading of an ended process, or of what may not be read, is None.

    Args:
        pid: It may be absent; then every reading is None.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._stat, self._statm, self._rollup = (_keep(f"/proc/{pid}/{name}") for name in ("stat", "statm", _ROLLUP))
        self._open_files = _keep(f"/proc/{pid}/fd")
        self._tasks = _keep(f"/proc/{pid}/task", os.O_DIRECTORY)
        self._threads: dict[tuple[int, int], _Threads] = {}

    def stat(self) -> ProcessStat | None:
        """Read /proc/PID/stat; None once it has been reaped."""
        text = _read(self._stat)
        return parse_stat(self.pid, text) if text else None

    def rss_bytes(self) -> int | None:
        """Resident set size from statm, in bytes."""
        text = _read(self._statm)
        pages = int(text.split(maxsplit=2)[1]) if text else 0
        return pages * PAGE_BYTES if pages else None

    def memory_rollup(self) -> MemoryRollup | None:
        """Exact memory from smaps_rollup."""
        text = _read(self._rollup)
        return parse_rollup(text) if text else None

    def fd_count(self) -> int | None:
        """Number of open file descriptors."""
        if self._open_files is None:
            return None
        try:
            return os.fstat(self._open_files).st_size or len(os.listdir(self._open_files))  # noqa: PTH208 - by handle
        except OSError:
            return None

    def thread_count(self) -> int | None:
        """Number of threads: /proc/PID/task has a link for each, beside its own two.

        Reading `stat` instead makes the kernel add up the times of all threads.
        """
        if self._tasks is None:
            return None
        try:
            links = os.fstat(self._tasks).st_nlink
            return links - 2 if links > 2 else len(os.listdir(self._tasks))  # noqa: PTH208 - by handle
        except OSError:
            return None

    def descendants(self) -> list[ProcessStat]:
        """Children and their children, zombies included, the process itself not."""
        found: list[ProcessStat] = []
        kept, self._threads = self._threads, {}
        waiting = [(self.pid, 0)]
        while waiting:
            key = waiting.pop()
            threads = self._threads[key] = kept.pop(key) if key in kept else _Threads(key[0])
            for stat in filter(None, map(read_stat, threads.children())):
                found.append(stat)
                waiting.append((stat.pid, stat.start_ticks))
        _close_all(kept.values())
        return found

    def close(self) -> None:
        """Close every file; harmless when repeated."""
        handles = (self._stat, self._statm, self._rollup, self._open_files, self._tasks)
        self._stat = self._statm = self._rollup = self._open_files = self._tasks = None
        for handle in filter(None, handles):
            os.close(handle)
        _close_all(self._threads.values())
        self._threads = {}


class _Threads:
    """The files `children` of all threads of a process, of which each names what that thread started.

    A thread id that is given to another thread between two readings would go unnoticed; ids are given out in turn, so
    that takes as many new threads and processes as the machine has ids (32768 or more).
    """

    def __init__(self, pid: int) -> None:
        self._folder = _keep(f"/proc/{pid}/task", os.O_DIRECTORY)
        self._files: dict[str, int] = {}

    def children(self) -> Iterator[int]:
        """Yield the pids of the children of all threads."""
        self._follow()
        for file in self._files.values():
            text = _read(file)
            if text:
                yield from map(int, text.split())

    def _follow(self) -> None:
        """Open the files of new threads and close those of ended ones."""
        threads = _names(self._folder)
        for ended in self._files.keys() - threads:
            os.close(self._files.pop(ended))
        for new in threads - self._files.keys():
            file = _keep(f"{new}/children", folder=self._folder)
            if file is not None:
                self._files[new] = file

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None


def _close_all(kept: Iterable[_Threads]) -> None:
    for threads in kept:
        threads.close()


def _keep(path: str, flags: int = 0, folder: int | None = None) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags, dir_fd=folder)
    except OSError:
        return None


def _names(folder: int | None) -> set[str]:
    try:
        return set() if folder is None else set(os.listdir(folder))  # noqa: PTH208 - by handle
    except OSError:
        return set()


def _read(file: int | None) -> bytes:
    """Read a file from its start; nothing of an ended process."""
    if file is None:
        return b""
    try:
        text = os.pread(file, _PART_BYTES, 0)
        # The kernel may give less than there is, but never less than half a page of it.
        while len(text) >= _SHORT_BYTES and (more := os.pread(file, _PART_BYTES, len(text))):
            text += more
        return text
    except OSError:
        return b""
