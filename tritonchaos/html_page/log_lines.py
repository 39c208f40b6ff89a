"""The lines of server.log that the page carries: all of a short log, of a long one what somebody would look for."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from tritonchaos.html_page.markup import shown

_MOST_BYTES: Final = 600_000
_FIRST_LINES: Final = 200
_LAST_LINES: Final = 400
_LONGEST_LINE: Final = 2000


class LogLines:
    """Finds lines by byte offset and collects those that are to be shown.

    Args:
        log: The bytes of server.log.
    """

    def __init__(self, log: bytes) -> None:
        self._log = log
        self._starts = array("Q", [0])
        at = log.find(b"\n")
        while at >= 0 and at + 1 < len(log):
            self._starts.append(at + 1)
            at = log.find(b"\n", at + 1)
        self.total = len(self._starts) if log else 0

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return (first line, line after the last) of the lines that begin between two byte offsets."""
        first, after = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return min(first, self.total), min(max(first, after), self.total)

    def chosen(self, wanted: Iterable[tuple[int, int]]) -> list[tuple[int, list[str]]]:
        """Return pieces of the log, as (number of the first line from 0, lines).

        Args:
            wanted: (first line, line after the last) of what must be there if there is room, the dearest first.
        """
        if len(self._log) <= _MOST_BYTES:
            return [(0, self._lines(0, self.total))] if self.total else []
        taken = [(0, min(_FIRST_LINES, self.total)), (max(0, self.total - _LAST_LINES), self.total)]
        left = _MOST_BYTES - sum(self._bytes(*piece) for piece in taken)
        for piece in wanted:
            left -= self._bytes(*piece)
            if left < 0:
                break
            taken.append(piece)
        return [(first, self._lines(first, after)) for first, after in _merged(taken)]

    def line_at(self, offset: int) -> int:
        """Return the number of the line that a byte belongs to."""
        return bisect_right(self._starts, offset) - 1

    def _bytes(self, first: int, after: int) -> int:
        return (
            (self._starts[after] if after < self.total else len(self._log)) - self._starts[first]
            if first < after
            else 0
        )

    def _lines(self, first: int, after: int) -> list[str]:
        end = self._starts[after] if after < self.total else len(self._log)
        text = self._log[self._starts[first] : end].decode("utf-8", "replace")
        return [_shortened(shown(line)) for line in text.removesuffix("\n").split("\n")]


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE} more)"


def _merged(pieces: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, after in sorted(piece for piece in pieces if piece[0] < piece[1]):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(after, merged[-1][1]))
        else:
            merged.append((first, after))
    return merged
