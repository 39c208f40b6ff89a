"""The lines of server.log that the page carries: all of a short log, of a long one what somebody would look for."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from tritonchaos.html_page.markup import shown
from tritonchaos.observations.server_log import ServerLog, blocks

_MOST_BYTES: Final = 600_000
_FIRST_LINES: Final = 200
_LAST_LINES: Final = 400
_LONGEST_LINE: Final = 2000
_BREAK: Final = re.compile(b"\n")


class LogLines:
    """Finds lines by byte offset and collects those that are to be shown.

    What is kept is how many lines each block of the log has; a block is read again when a line of it is looked for.

    Args:
        log: server.log.
    """

    def __init__(self, log: ServerLog) -> None:
        self._log = log
        self._block_starts, self._breaks_before = array("Q"), array("Q", [0])
        for at, block in blocks(log):
            self._block_starts.append(at)
            self._breaks_before.append(self._breaks_before[-1] + block.count(b"\n"))
        self._block, self._breaks = -1, array("Q")
        self.total = self._begun_before(len(log))

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return (first line, line after the last) of the lines that begin between two byte offsets."""
        first = self._begun_before(start)
        return first, max(first, self._begun_before(end))

    def _begun_before(self, offset: int) -> int:
        """Count the lines that begin before a byte offset; what ends the log begins no line."""
        before = min(offset, len(self._log)) - 1
        if before < 0:
            return 0
        block = bisect_right(self._block_starts, before) - 1
        return 1 + self._breaks_before[block] + bisect_left(self._breaks_of(block), before)

    def _breaks_of(self, block: int) -> array[int]:
        """Return the byte offsets at which a block has line breaks; that of the block asked for last is kept."""
        if block != self._block:
            start = self._block_starts[block]
            _, text = next(blocks(self._log, start))
            self._block, self._breaks = block, array("Q", (start + found.start() for found in _BREAK.finditer(text)))
        return self._breaks

    def _start_of(self, line: int) -> int:
        """Return the byte offset at which a line begins; the one after the last begins where the log ends."""
        if not 0 < line < self.total:
            return 0 if line <= 0 else len(self._log)
        block = bisect_left(self._breaks_before, line) - 1
        return self._breaks_of(block)[line - 1 - self._breaks_before[block]] + 1

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

    def _bytes(self, first: int, after: int) -> int:
        return self._start_of(after) - self._start_of(first) if first < after else 0

    def _lines(self, first: int, after: int) -> list[str]:
        text = self._log[self._start_of(first) : self._start_of(after)].decode("utf-8", "replace")
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
