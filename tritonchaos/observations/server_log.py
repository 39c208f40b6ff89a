"""The server's log as bytes of which only the pieces that are asked for are read: after a long run it is long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from tritonchaos.units import KIB, MIB

_BLOCK_BYTES: Final = 1 * MIB
_LONGEST_LINE: Final = 64 * KIB


class ServerLog(Protocol):
    """Bytes that may lie in a file; plain `bytes` are one, too."""

    def __len__(self) -> int: ...

    def __getitem__(self, piece: slice, /) -> bytes: ...


def blocks(log: ServerLog, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Read a log in blocks of at most 1 MiB, each as (byte offset, bytes).

    Args:
        start, end: Byte offsets; without an end up to that of the log.
    """
    end = len(log) if end is None else min(end, len(log))
    for at in range(start, end, _BLOCK_BYTES):
        yield at, log[at : min(at + _BLOCK_BYTES, end)]


def places_of(log: ServerLog, wanted: bytes) -> Iterator[int]:
    """Yield the byte offset of each occurrence of some bytes, in order; they may lie across two blocks."""
    before = b""
    for start, block in blocks(log):
        text, first = before + block, start - len(before)
        at = text.find(wanted)
        while at >= 0:
            yield first + at
            at = text.find(wanted, at + 1)
        before = text[len(text) - len(wanted) + 1 :] if len(wanted) > 1 else b""


def line_starts(log: ServerLog, wanted: bytes) -> Iterator[int]:
    """Yield the byte offset of each line that has some bytes in it, in order; of a line over 64 KiB where it is cut."""
    before = -1
    for offset in places_of(log, wanted):
        head = log[max(0, offset - _LONGEST_LINE) : offset]
        start = offset - len(head) + head.rfind(b"\n") + 1
        if start > before:
            yield start
        before = start


def lines_from(log: ServerLog, start: int, count: int) -> list[str]:
    """Return lines from a byte offset on, undecodable bytes replaced.

    Args:
        count: How many at most; together they are cut after so many times 64 KiB.
    """
    piece = b""
    for _, block in blocks(log, start, start + count * _LONGEST_LINE):
        piece += block
        if piece.count(b"\n") >= count:
            break
    return piece.decode("utf-8", "replace").splitlines()[:count]
