"""Takes the space of a folder on a small file system, so that whoever writes there finds none."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

_NAME: Final = "tritonchaos-takes-all-space"
_BLOCK: Final = b"\0" * 65536
# On a larger one it would take this machine's memory or disk.
_LARGEST_BYTES: Final = 64 << 30


class Filler:
    """A file without a name that takes space; the kernel gives it back when it is closed, however this process ends.

    Args:
        largest_bytes: Where more is free, nothing is taken.
    """

    def __init__(self, largest_bytes: int = _LARGEST_BYTES) -> None:
        self._largest_bytes = largest_bytes
        self._handles: list[int] = []

    def fill(self, folder: Path, leave_bytes: int) -> str:
        """Take all free space but some; return why it cannot be taken, "" if it was."""
        free_bytes = _free_bytes(folder)
        if free_bytes > self._largest_bytes:
            return f"{free_bytes} bytes are free: that is no scratch space of a container"
        path = folder / _NAME
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            self._handles.append(handle)
            path.unlink()
            self._take(handle, folder, leave_bytes)
        except OSError as error:
            return f"its space cannot be taken: {error.strerror}"
        return ""

    def free(self) -> None:
        """Give all of it back; harmless if nothing was taken."""
        while self._handles:
            os.close(self._handles.pop())

    def _take(self, handle: int, folder: Path, leave_bytes: int) -> None:
        """Others write meanwhile: take until no more is there, or only what is to be left."""
        while (wanted := _free_bytes(folder) - leave_bytes) > 0:
            try:
                if not os.write(handle, _BLOCK[:wanted]):
                    return
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
