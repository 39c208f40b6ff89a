"""server.log of a run directory, read piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonchaos.errors import StoreError


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file as bytes of which a slice is read when it is asked for.

    Attributes:
        size: Its length in bytes when it was looked at first.
    """

    path: Path
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, piece: slice) -> bytes:
        start, end, step = piece.indices(self.size)
        if step != 1:
            raise ValueError(f"found a slice with step {step}, expected one without")
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                return file.read(max(0, end - start))
        except OSError as error:
            raise _unreadable(self.path, error) from error


def open_log(path: Path) -> LogFile | bytes:
    """Return the log of a run; b"" where it is missing.

    Raises:
        StoreError: It cannot be read.
    """
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return LogFile(path, file.seek(0, 2))
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"cannot read {path}: {error.strerror}", hint="check its permissions")
