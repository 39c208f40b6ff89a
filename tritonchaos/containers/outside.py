"""What this machine sees of a running container: its processes, its temp folder and shared memory, its cgroup."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from tritonchaos.containers.cgroups import MemoryKills, PidsLimit, find_cgroups
from tritonchaos.processes import Process, ProcessStat, descendants, end, is_running, read_stat

SERVER: Final = "tritonserver"
_BLOCK_BYTES: Final = 512


class Outside:
    """A container's processes and folders as the host sees them.

    Folders are held open: they can still be read for a moment after the container's end, when no path leads there.

    Args:
        pid: Of the container's first process, as the engine says.
        container_id: To see that this process is really the container's: the engine may be in another PID namespace.
        temp: Path in the container.
        mounted: Paths in the container that are mounts: the engine makes an empty file or folder for each, which no
            server left.
    """

    def __init__(self, pid: int, container_id: str, temp: str, mounted: Collection[str] = ()) -> None:
        self._mounted = frozenset(mounted)
        first = read_stat(pid) if pid > 0 else None
        self.why_not = "" if first is not None and _belongs(pid, container_id) else _NOT_SEEN
        self._first = first if not self.why_not else None
        self._folders: dict[str, int] = {}
        self._names = {"temp": temp, "shm": "/dev/shm"}
        self._server: ProcessStat | None = None
        self.cgroups: Mapping[str, Path] = {} if self._first is None else find_cgroups(pid)
        self.pids_limit = PidsLimit(self.cgroups)
        self.memory_kills = MemoryKills(self.cgroups, container_id)
        for name in self._names:
            self.folder(name)

    @property
    def server(self) -> ProcessStat | None:
        """The server's process; None where it is not seen."""
        if self._server is None and self._first is not None:
            self._server = _find_server(self._first)
        return self._server

    def processes(self) -> list[Process]:
        """The server, its stubs and whatever else it started; empty when it does not run, or is not seen."""
        server = self.server
        if server is None or not is_running(server.pid, server.start_ticks):
            return []
        below = [stat for stat in descendants(server.pid) if not stat.is_zombie]
        return [Process(server.pid, "server"), *(Process(s.pid, "stub" if s.is_stub else "other") for s in below)]

    def ticks(self, pid: int) -> int | None:
        """Start ticks of one of the server's processes; None for any other."""
        known = {process.pid for process in self.processes()}
        stat = read_stat(pid) if pid in known else None
        return None if stat is None else stat.start_ticks

    def folder(self, name: str) -> Path | None:
        """The container's "temp" or "shm" as a path of this process; None where it may not be read."""
        if name not in self._folders and self._first is not None:
            path = f"/proc/{self._first.pid}/root{self._names[name]}"
            try:
                self._folders[name] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                return None
        handle = self._folders.get(name)
        return None if handle is None else Path(f"/proc/self/fd/{handle}")

    def files(self, name: str) -> list[tuple[str, int]]:
        """(path below the folder, bytes taken) of what is in "temp" or "shm"."""
        folder = self.folder(name)
        if folder is None:
            return []
        found = []
        for path in sorted(folder.rglob("*")):
            try:
                status = path.lstat()
            except OSError:
                continue
            below = str(path.relative_to(folder))
            if not path.is_dir() and f"{self._names[name]}/{below}" not in self._mounted:
                found.append((below, status.st_blocks * _BLOCK_BYTES))
        return found

    def left_behind(self, prefix: str) -> list[tuple[str, str, int]]:
        """Kind, name and bytes of shared memory of a run and of temp files; they end with the container."""
        shared = [("shm", name, taken) for name, taken in self.files("shm") if name.startswith(prefix)]
        return shared + [("temp", name, taken) for name, taken in self.files("temp")]

    def kill(self, signal_number: int, pid: int, signal_first: Callable[[str], None]) -> bool:
        """Signal the server or one of its processes; False if it has ended.

        Args:
            signal_first: Signals the container's first process, which passes it on to the server.
        """
        ticks = self.ticks(pid)
        if ticks is None:
            return False
        if end(pid, ticks, signal.Signals(signal_number)):
            return True
        server = self.server
        if server is None or server.pid != pid:
            return False
        signal_first(signal.Signals(signal_number).name)  # another user's process: only the engine may
        return True

    def close(self) -> None:
        """Let the folders go; harmless when repeated."""
        self.pids_limit.close()
        self.memory_kills.close()
        while self._folders:
            os.close(self._folders.popitem()[1])


_NOT_SEEN: Final = (
    "the container's processes are not seen from here: the engine is in another PID namespace (run tritonchaos on the "
    "host, or with --pid=host)"
)


def _belongs(pid: int, container_id: str) -> bool:
    """Does a process belong to a container? Engines name its cgroup by the id, rootless ones perhaps not."""
    try:
        if container_id in Path(f"/proc/{pid}/cgroup").read_text():
            return True
        return container_id in Path(f"/proc/{pid}/mountinfo").read_text()
    except OSError:
        return False


def _find_server(first: ProcessStat) -> ProcessStat | None:
    """The process named tritonserver; else the one child of the init, or the first process itself."""
    below = descendants(first.pid)
    named = [stat for stat in (first, *below) if stat.command == SERVER]
    if named:
        return named[0]
    children = [stat for stat in below if stat.parent_pid == first.pid]
    return children[0] if children else first
