"""Some of the readings of a run."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from tritonchaos.observations.cycle_readings import CycleReading
from tritonchaos.observations.cycle_table import CycleTable


class ChosenReadings(Sequence[CycleReading]):
    """The readings of some cycles of a table; what is held of each is its place."""

    def __init__(self, table: CycleTable, places: array[int]) -> None:
        self.table = table
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, at: int) -> CycleReading: ...

    @overload
    def __getitem__(self, at: slice) -> list[CycleReading]: ...

    def __getitem__(self, at: int | slice) -> CycleReading | list[CycleReading]:
        if isinstance(at, slice):
            return list(self.table.readings(self.places[at]))
        return self.table[self.places[at]]

    def __iter__(self) -> Iterator[CycleReading]:
        return self.table.readings(self.places)


def pick(readings: Sequence[CycleReading], wanted: Callable[[CycleReading], bool]) -> Sequence[CycleReading]:
    """Return the readings that are wanted; of a table none is kept."""
    if isinstance(readings, CycleTable):
        return ChosenReadings(readings, array("I", (at for at, one in enumerate(readings) if wanted(one))))
    if isinstance(readings, ChosenReadings):
        chosen = (place for place, one in zip(readings.places, readings, strict=True) if wanted(one))
        return ChosenReadings(readings.table, array("I", chosen))
    return list(filter(wanted, readings))
