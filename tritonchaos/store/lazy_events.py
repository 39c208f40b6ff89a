"""The events of a long run, made again each time they are asked for; what is kept is which row is of which kind."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, overload

from tritonchaos.observations import CycleFinished, CycleStarted, Event, Probe, Reading, SettleWindow, StepFinished
from tritonchaos.store.compiled import EventReader
from tritonchaos.store.stored_stretches import StoredStretches

_ROWS_AT_ONCE: Final = 500
# Fetching a row by its number costs about as much as walking over so many.
_WORTH_FETCHING: Final = 8
# What happens in cycles that are alike (see `likeness`).
_IN_ALIKE: Final = frozenset({CycleStarted, CycleFinished, StepFinished, Probe, Reading, SettleWindow})


class LazyEvents(Sequence[Event]):
    """Events in the order in which they were recorded.

    Args:
        database: Stays open as long as these are used.
        guard: Turns what a damaged database raises into `StoreError`.
        stretches: Which cycles are alike; None where the store does not say.
        is_kept: A record of each is kept once all have been asked for.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        reader: EventReader,
        count: int,
        guard: Callable[[], AbstractContextManager[object]],
        stretches: StoredStretches | None = None,
        *,
        is_kept: bool = False,
    ) -> None:
        self.stretches = stretches
        self._are_mostly_alike = stretches is not None and stretches.are_mostly_alike
        self._is_kept = is_kept
        self._kept: tuple[Event, ...] | None = None
        self._database = database
        self._reader = reader
        self._count = count
        self._guard = guard
        # Kind -> numbers of its rows, ascending; filled by the first walk over all.
        self._numbers: dict[type, array[int]] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Event: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Event]: ...

    def __getitem__(self, at: int | slice) -> Event | Sequence[Event]:
        if self._kept is not None:
            return self._kept[at]
        if isinstance(at, slice):
            return tuple(self._fetched(list(range(self._count)[at])))
        return next(self._fetched([range(self._count)[at]]))

    def __iter__(self) -> Iterator[Event]:
        if self._is_kept and self._kept is None:
            self._kept = tuple(self.of_kinds(tuple(self._reader.kinds)))
        return self.of_kinds(tuple(self._reader.kinds)) if self._kept is None else iter(self._kept)

    def of_kinds(self, kinds: tuple[type, ...]) -> Iterator[Event]:
        """Yield the events of some kinds, in order; rows of other kinds are not unpacked."""
        if self._kept is not None:
            return (event for event in self._kept if isinstance(event, kinds))
        if self.stretches is not None and self._are_mostly_alike and not _IN_ALIKE.intersection(kinds):
            return self._unlike(self.stretches, kinds)
        if self._numbers is None:
            return self._walked(kinds, {})
        numbers = [self._numbers[kind] for kind in kinds if kind in self._numbers]
        if _WORTH_FETCHING * sum(map(len, numbers)) < self._count:
            return self._fetched(sorted(number for some in numbers for number in some))
        return self._walked(kinds, None)

    def _unlike(self, stretches: StoredStretches, kinds: tuple[type, ...]) -> Iterator[Event]:
        """Look only where something else happened than in every other cycle."""
        if self._numbers is not None:
            numbers = (self._numbers[kind] for kind in kinds if kind in self._numbers)
            yield from self._fetched(sorted(number for some in numbers for number in some))
            return
        for first, end in stretches.unlike_events():
            yield from stretches.events_between(first, end, kinds)

    def _walked(self, kinds: tuple[type, ...], index: dict[type, array[int]] | None) -> Iterator[Event]:
        kind_of, read = self._reader.kind_of, self._reader.read
        with self._guard():
            rows = self._database.execute("SELECT number, packed FROM events ORDER BY number")
            for number, stored in rows:
                kind = kind_of(stored)
                if index is not None:
                    index.setdefault(kind, array("I")).append(number)
                if kind in kinds:
                    yield read(stored)
        if index is not None:
            self._numbers = index

    def _fetched(self, numbers: Sequence[int]) -> Iterator[Event]:
        with self._guard():
            for at in range(0, len(numbers), _ROWS_AT_ONCE):
                some = numbers[at : at + _ROWS_AT_ONCE]
                yield from (self._reader.read(stored) for stored in self._rows(some))

    def _rows(self, numbers: Sequence[int]) -> list[bytes]:
        marks = ",".join("?" * len(numbers))
        found = dict(self._database.execute(f"SELECT number, packed FROM events WHERE number IN ({marks})", numbers))
        rows: list[Any] = [found[number] for number in numbers]
        return rows
