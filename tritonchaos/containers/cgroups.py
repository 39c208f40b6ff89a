"""A container's cgroups: their folders, the memory that they count, and whether their limits were reached.

What is read in every cycle is kept open: finding and opening it anew takes twenty times as long as reading it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_MEMORY_FILES: Final = ("memory.current", "memory.usage_in_bytes")
_PIDS_FILE: Final = "pids.events"
_MEMORY_EVENTS_FILE: Final = "memory.events"
_PART_BYTES: Final = 4096


def find_cgroups(pid: int, root: Path = Path("/")) -> dict[str, Path]:
    """Folders of a process's cgroups: controller -> folder; "" for the one of cgroup v2.

    Args:
        root: Where the machine's /proc and /sys are.

    Source: cgroups(7), "/proc/[pid]/cgroup".
    """
    mounted = root / "sys" / "fs" / "cgroup"
    try:
        lines = (root / "proc" / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            folder = mounted / controller / path.lstrip("/")
            if "=" not in controller and folder.is_dir():
                found[controller] = folder
    return found


class _KeptFile:
    """A small file of the kernel, read from its start each time; nothing once what it tells of is gone."""

    def __init__(self, path: Path) -> None:
        self._handle: int | None = None
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return

    def read(self) -> bytes:
        if self._handle is None:
            return b""
        try:
            return os.pread(self._handle, _PART_BYTES, 0)
        except OSError:  # the cgroup has been removed
            return b""

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


class MemoryCount:
    """Memory that the cgroup of a container uses, page cache included: what its limit counts.

    Args:
        cgroups: What `find_cgroups` gave.
    """

    def __init__(self, cgroups: Mapping[str, Path]) -> None:
        self._file: _KeptFile | None = None
        folders = [cgroups[name] for name in ("memory", "") if name in cgroups]
        for path in (folder / name for folder in folders for name in _MEMORY_FILES):
            self._file = _KeptFile(path)
            if self.bytes() is not None:
                return
            self.close()

    def bytes(self) -> int | None:
        """Bytes in use; None where nothing counts them, or it cannot be read."""
        text = b"" if self._file is None else self._file.read()
        return int(text) if text.strip().isdigit() else None

    def close(self) -> None:
        """Let the file go; harmless when repeated."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


class PidsLimit:
    """How often a container reached its limit of processes and threads.

    Args:
        cgroups: What `find_cgroups` gave.
    """

    def __init__(self, cgroups: Mapping[str, Path]) -> None:
        self._files = [_KeptFile(cgroups[name] / _PIDS_FILE) for name in ("pids", "") if name in cgroups]

    def times_reached(self) -> int:
        """Times that a process or thread was refused; 0 where that is not known."""
        for file in self._files:
            words = file.read().split()
            if b"max" in words:
                return int(words[words.index(b"max") + 1])
        return 0

    def close(self) -> None:
        """Let the files go; harmless when repeated."""
        for file in self._files:
            file.close()


class MemoryKills:
    """Whether a container was killed at its memory limit, as the cgroup above its own counts what happens below it.

    With cgroup v2 the engine may miss it: it looks into the container's cgroup, which goes with its last process. A
    cgroup's counts hold those of all below it and stay. Nothing is known with cgroup v1, whose engine is told.

    Args:
        cgroups: What `find_cgroups` gave.
        container_id: Names the container's own cgroups, such as docker-ID.scope; the first above them counts.

    Source: kernel documentation, "Control Group v2", memory.events; containerd pull request 12714.
    """

    def __init__(self, cgroups: Mapping[str, Path], container_id: str) -> None:
        own = cgroups.get("")
        above = next((folder for folder in own.parents if container_id not in str(folder)), None) if own else None
        self._file = None if above is None or own == above else _KeptFile(above / _MEMORY_EVENTS_FILE)
        self._before = self._counts()

    def is_new(self) -> bool:
        """Say whether a limit was reached and a process was killed for it since this was made."""
        now = self._counts()
        return all(now.get(name, 0) > self._before.get(name, 0) for name in (b"oom", b"oom_kill"))

    def _counts(self) -> dict[bytes, int]:
        words = [] if self._file is None else self._file.read().split()
        return {name: int(count) for name, count in zip(words[::2], words[1::2], strict=False) if count.isdigit()}

    def close(self) -> None:
        """Let the file go; harmless when repeated."""
        if self._file is not None:
            self._file.close()
