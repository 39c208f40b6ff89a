"""Who is writing a run; asked of the kernel, so that a process that was killed is never named."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import Final

from tritonchaos.store.layout import DATABASE

# The bytes of a database file that SQLite locks (https://www.sqlite.org/fileformat2.html, "The Lock-Byte Page").
_LOCK_BYTES: Final = (0x4000_0000, 512)

# Databases that this process writes. Asking for the locks of a file means opening and closing it, and closing any
# descriptor of a file drops all POSIX locks that the process has on it (fcntl(2), "Record locks").
_WRITTEN_HERE: Final[set[Path]] = set()


def mark_written_here(folder: Path) -> None:
    """Say that a store of this process is open on a run directory."""
    _WRITTEN_HERE.add((folder / DATABASE).resolve())


def unmark_written_here(folder: Path) -> None:
    """Say that it was closed."""
    _WRITTEN_HERE.discard((folder / DATABASE).resolve())


def running_pid(folder: Path) -> int | None:
    """Return the process that is writing a run, or None if nobody is. Known on Linux only."""
    path = folder / DATABASE
    if path.resolve() in _WRITTEN_HERE:
        return os.getpid()
    if sys.platform != "linux" or not path.is_file():
        return None
    import fcntl

    # struct flock of Linux on 64 bits: l_type, l_whence, l_start, l_len, l_pid (fcntl(2)).
    question = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, *_LOCK_BYTES, 0)
    try:
        with path.open("rb") as file:
            answer = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, question))
    except OSError:
        return None
    return None if answer[0] == fcntl.F_UNLCK else int(answer[4])
