"""Cuts what is recorded into cycles, and packs what they are like and their numbers in blocks of columns.

A block is made of the events themselves and written in one transaction with them, so that the two cannot differ. The
cycle that goes on, and those since the last whole block, are in no block yet: a reader takes their events.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from tritonchaos.cycle_reader import BEFORE_NEXT, CycleReader
from tritonchaos.observations import CycleStarted, Event, Reading, StepSpec
from tritonchaos.observations.cycle_table import SeenCycle
from tritonchaos.store.column_packing import pack_column
from tritonchaos.store.interning import Interner
from tritonchaos.store.likeness import Likeness
from tritonchaos.store.packing import write_count

CYCLES_PER_BLOCK: Final = 1024
# Of a run whose cycles are all different no more are remembered; it then starts over with new numbers.
_MOST_SHAPES: Final = 1024
_WIDTH: Final = 1 << 63
SHAPE, EVENTS = "shape", "events"


@dataclass(frozen=True, slots=True)
class Block:
    """A row to be written.

    Attributes:
        first_event: Number of the first event of its first stretch.
        crc: CRC-32 of the rows of its events, one after the other.
    """

    number: int
    first_event: int
    crc: int
    packed: bytes


class _Stretch:
    """The events from the start of a cycle to the start of the next."""

    def __init__(self, started: CycleStarted | None) -> None:
        self.started = started
        self.events = 0
        self.likeness: list[Hashable] | None = None if started is None else []
        self.seen: SeenCycle | None = None
        self.later: Reading | None = None

    def take(self, event: Event, alike: Hashable | None) -> None:
        self.events += 1
        if alike is None or self.likeness is None:
            self.likeness = None
        else:
            self.likeness.append(alike)
        if isinstance(event, Reading) and event.name == BEFORE_NEXT:
            if self.seen is None or self.later is not None:
                self.likeness = None
            self.later = event

    def shape(self) -> Hashable | None:
        """Return what another one must have in common with it, or None if none can."""
        if self.likeness is None or self.seen is None:
            return None
        # A reading that had no value has none in the columns.
        return (tuple(self.likeness), tuple(self.seen.reading.values))

    def whole(self) -> SeenCycle | None:
        if self.seen is None or self.later is None:
            return self.seen
        return replace(self.seen, later=self.later.values)


class CycleBlocks:
    """Takes events in order; gives a block whenever there are enough cycles for one.

    Args:
        sample_count: Number of readings whose median is the post-unload reading.
        interner: Numbers the names of columns.
        number: Numbers each different step.
    """

    def __init__(self, sample_count: int, interner: Interner, number: Callable[[StepSpec], int]) -> None:
        self._reader = CycleReader(sample_count)
        self._interner = interner
        self._likeness = Likeness(number)
        self._shapes: dict[Hashable, int] = {}
        self._shape_count = 0
        self._block_count = self._first_event = 0
        self._open = _Stretch(None)
        self._shape_of: list[int] = []
        self._events_of: list[int] = []
        self._alike = self._crc = 0
        self._columns: dict[str, list[int | None]] = {}

    def see(self, event: Event, row: bytes) -> Block | None:
        """Take the next event; return the block that has become whole before it.

        Args:
            row: The event as it is stored.
        """
        block = None
        if isinstance(event, CycleStarted):
            self._close()
            self._open = _Stretch(event)
            if len(self._shape_of) >= CYCLES_PER_BLOCK:
                block = self._pack()
        self._crc = zlib.crc32(row, self._crc)
        stretch = self._open
        seen = self._reader.see_whole(event)
        if seen is not None:
            # Two cycles cannot end in one.
            stretch.likeness = stretch.likeness if stretch.seen is None else None
            stretch.seen = seen
        stretch.take(event, None if stretch.likeness is None else self._alike_of(event, stretch))
        return block

    def _alike_of(self, event: Event, stretch: _Stretch) -> Hashable | None:
        return None if stretch.started is None else self._likeness.of(event, stretch.started)

    def finish(self) -> Block | None:
        """Return what is left, as the run is over."""
        self._close()
        self._open = _Stretch(None)
        return self._pack() if self._shape_of else None

    def _close(self) -> None:
        stretch, whole = self._open, self._open.whole()
        if stretch.events == 0:
            return
        shape, numbers = stretch.shape(), dict(whole.numbers()) if whole is not None else {}
        is_alike = shape is not None and all(-_WIDTH <= number < _WIDTH for number in numbers.values())
        self._shape_of.append(self._shape_number(shape) if is_alike else 0)
        self._events_of.append(stretch.events)
        if is_alike:
            self._add(numbers)

    def _shape_number(self, shape: Hashable) -> int:
        number = self._shapes.get(shape)
        if number is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            self._shape_count += 1
            number = self._shapes[shape] = self._shape_count
        return number

    def _add(self, numbers: dict[str, int]) -> None:
        for name, number in numbers.items():
            column = self._columns.setdefault(name, [])
            column.extend([None] * (self._alike - len(column)))
            column.append(number)
        self._alike += 1

    def _pack(self) -> Block:
        out = bytearray()
        for name, packed in self._packed_columns():
            write_count(self._interner.number(name.encode("utf-8", "surrogatepass")), out)
            write_count(len(packed), out)
            out += packed
        block = Block(self._block_count, self._first_event, self._crc, bytes(out))
        self._block_count += 1
        self._first_event += sum(self._events_of)
        self._shape_of, self._events_of, self._columns = [], [], {}
        self._alike = self._crc = 0
        return block

    def _packed_columns(self) -> Iterator[tuple[str, bytes]]:
        yield SHAPE, pack_column(self._shape_of)
        yield EVENTS, pack_column(self._events_of)
        for name, column in self._columns.items():
            yield name, pack_column([*column, *[None] * (self._alike - len(column))])
