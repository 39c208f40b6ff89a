"""The stretches of a stored run: which cycles are alike, where their events are, and their numbers in columns."""

from __future__ import annotations

import sqlite3
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Final

from tritonchaos.observations import CycleStarted, CycleTable, Event
from tritonchaos.observations.cycle_table import Column
from tritonchaos.store.column_packing import unpack_column
from tritonchaos.store.compiled import EventReader
from tritonchaos.store.cycle_blocks import EVENTS, SHAPE
from tritonchaos.store.interning import Interned
from tritonchaos.store.packing import Cursor

_COLUMNS: Final = frozenset({SHAPE, EVENTS})


class _Block:
    """Columns of up to so many stretches.

    Attributes:
        first: Number of its first stretch.
        crc: CRC-32 of the rows of its events.
        alike: How many of its stretches are like others; its columns have a number for each of these.
        unlike: Which of its stretches are not.
    """

    def __init__(self, first: int, crc: int, packed: dict[str, bytes]) -> None:
        self.first = first
        self.crc = crc
        self.packed = packed
        self.shapes = unpack_column(packed[SHAPE]).values
        self.end = first + len(self.shapes)
        self.unlike = [first + at for at, shape in enumerate(self.shapes) if not shape] if 0 in self.shapes else []
        self.alike = len(self.shapes) - len(self.unlike)

    def column(self, name: str) -> Column:
        """Unpack one of its columns."""
        column = unpack_column(self.packed[name]) if name in self.packed else Column()
        column.skip(self.alike - len(column.values))
        if len(column.values) != self.alike:
            raise ValueError(f"{len(column.values)} numbers in column {name}, expected {self.alike}")
        return column


class StoredStretches:
    """What `observations.skimming.Stretches` asks for, from run.db.

    Args:
        database: Stays open as long as these are used.
        count: How many events there are.
        guard: Turns what a damaged database raises into `StoreError`.

    Raises:
        ValueError, LookupError: The blocks are damaged, or do not fit the events.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        reader: EventReader,
        interned: Interned,
        count: int,
        guard: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._database = database
        self._reader = reader
        self._guard = guard
        self._blocks: list[_Block] = []
        self.shapes = array("I")
        # Number of the first event of each stretch, and of the one that would come next.
        self.firsts = array("q", [0])
        self._is_checked = False
        rows = database.execute("SELECT number, first_event, crc, packed FROM cycles ORDER BY number")
        for number, (stored_number, first_event, crc, packed) in enumerate(rows):
            if (number, self.firsts[-1]) != (stored_number, first_event):
                raise LookupError(
                    f"block {stored_number} at event {first_event}, expected {number} at {self.firsts[-1]}"
                )
            self._add(_Block(len(self.shapes), crc, dict(_columns(packed, interned))))
        if self.firsts[-1] > count:
            raise LookupError(f"{count} events are there, expected {self.firsts[-1]}")
        self._add_rest(count)

    def _add(self, block: _Block) -> None:
        counts = unpack_column(block.packed[EVENTS]).values
        if len(counts) != len(block.shapes):
            raise ValueError(f"{len(counts)} stretches, expected {len(block.shapes)}")
        self._blocks.append(block)
        self.shapes.extend(iter(block.shapes))
        self.firsts.extend(array("q", accumulate(counts, initial=self.firsts[-1]))[1:])

    def _add_rest(self, count: int) -> None:
        """Cut what is in no block, as the run was killed or goes on; nobody knows what these are like."""
        begin = self.firsts[-1]
        rows = self._database.execute("SELECT number, packed FROM events WHERE number > ? ORDER BY number", (begin,))
        starts = [number for number, stored in rows if self._reader.kind_of(stored) is CycleStarted]
        if begin < count:
            self.firsts.extend([*starts, count])
            self.shapes.extend([0] * (len(starts) + 1))

    def check(self) -> None:
        """Compare the events of all blocks with their checksums, as most of them will not be looked at; done once.

        Raises:
            StoreError: An event is not what it was.
        """
        query = "SELECT packed FROM events WHERE number >= ? AND number < ? ORDER BY number"
        with self._guard():
            for block in () if self._is_checked else self._blocks:
                between = (self.firsts[block.first], self.firsts[block.end])
                found = zlib.crc32(b"".join([row for (row,) in self._database.execute(query, between)]))
                if found != block.crc:
                    raise ValueError(f"events {between[0]} to {between[1] - 1} have checksum {found}, not {block.crc}")
        self._is_checked = True

    def __len__(self) -> int:
        return len(self.shapes)

    def events(self, at: int) -> list[Event]:
        """Return the events of one stretch."""
        return list(self.events_between(self.firsts[at], self.firsts[at + 1]))

    def events_between(self, first: int, end: int, kinds: tuple[type, ...] | None = None) -> Iterator[Event]:
        """Yield the events with some numbers, those of some kinds only if any are named."""
        query = "SELECT packed FROM events WHERE number >= ? AND number < ? ORDER BY number"
        with self._guard():
            for (stored,) in self._database.execute(query, (first, end)):
                if kinds is None or self._reader.kind_of(stored) in kinds:
                    yield self._reader.read(stored)

    @property
    def are_mostly_alike(self) -> bool:
        """Say whether most events are in stretches that are like others; else it is no gain to know which are."""
        return 2 * sum(end - first for first, end in self.unlike_events()) < self.firsts[-1]

    def unlike_events(self) -> Iterator[tuple[int, int]]:
        """Yield the first number, and the one after the last, of events in stretches that are like no other."""
        first = end = 0
        for at in self.unlike:
            if self.firsts[at] != end:
                if first < end:
                    yield first, end
                first = self.firsts[at]
            end = self.firsts[at + 1]
        if first < end:
            yield first, end

    @property
    def unlike(self) -> Iterator[int]:
        """Stretches that are like no other, ascending."""
        for block in self._blocks:
            yield from block.unlike
        yield from range(self._blocks[-1].end if self._blocks else 0, len(self.shapes))

    # --- columns ---------------------------------------------------------------------------------

    @property
    def names(self) -> Sequence[str]:
        """Names of all columns."""
        return list(dict.fromkeys(name for block in self._blocks for name in block.packed if name not in _COLUMNS))

    def column(self, name: str, others: CycleTable, places: Sequence[int]) -> Column:
        """Put together a column: what is in the blocks, and the cycles that are like no other between them."""
        out, other = Column(), others.column(name)
        taken = 0
        with self._guard():
            for block in self._blocks:
                column = block.column(name)
                end = bisect_left(places, block.end)
                if taken == end:
                    out.extend(column)
                else:
                    self._merge(out, block, column, places[taken:end], other.part(taken, end))
                taken = end
        out.extend(other.part(taken, len(places)))
        return out

    @staticmethod
    def _merge(out: Column, block: _Block, column: Column, places: Sequence[int], other: Column) -> None:
        """Append the numbers of one block, with those of other cycles where they belong."""
        begin = 0
        for number, place in enumerate(places):
            end = place - block.first - bisect_left(block.unlike, place)  # so many that are alike come before it
            out.extend(column.part(begin, end))
            out.append(other.at(number))
            begin = end
        out.extend(column.part(begin, block.alike))


def _columns(packed: bytes, interned: Interned) -> Iterator[tuple[str, bytes]]:
    cursor = Cursor(packed)
    while not cursor.is_at_end:
        name = interned.text(cursor.count())
        yield name, cursor.take(cursor.count())
