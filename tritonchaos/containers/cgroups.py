"""A container's cgroups: their folders, the memory that they count, and how often their limit of processes was reached.

What is read in every cycle is kept open: finding and opening it anew takes twenty times as long as reading it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")
_MEMORY_FILES: Final = ("memory.current", "memory.usage_in_bytes")
_PIDS_FILE: Final = "pids.events"
_PART_BYTES: Final = 4096


def find_cgroups(pid: int) -> dict[str, Path]:
    """Folders of a process's cgroups: controller -> folder; "" for the one of cgroup v2.

    Source: cgroups(7), "/proc/[pid]/cgroup".
    """
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            folder = _CGROUPS / controller / path.lstrip("/") if controller else _CGROUPS / path.lstrip("/")
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
