"""The readings of finished cycles, and a form of them that takes about a hundred bytes a cycle."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from tritonchaos.observations.replies import Arm


@dataclass(frozen=True, slots=True)
class CycleReading:
    """One finished cycle: what was still in use when its models were gone, and whether it counts.

    Attributes:
        start_number: Which start of the server was read; a change breaks every series.
        values: Metric -> median of the last `sample_count` readings; a metric without a reading is absent.
        unsettled: Metrics whose last readings did not lie within one quantum.
        mismatch: The first unmet expectation of its main-track steps, with the step's label; None: the cycle counts.
        loads: Number of load steps on the main track.
        loaded: Values of the cycle's last "loaded" reading; empty where there is none.
        latencies: latency_<NAME>_ns -> latency of the steps with `record: NAME`, the median if there were several.
    """

    phase: str
    arm: Arm
    cycle: int
    is_warm_up: bool
    start_number: int
    values: Mapping[str, int]
    unsettled: frozenset[str] = frozenset()
    mismatch: str | None = None
    loads: int = 0
    loaded: Mapping[str, int] = field(default_factory=dict)
    latencies: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_judged(self) -> bool:
        """It is no warm-up cycle and all its main-track steps did what they should."""
        return self.mismatch is None and not self.is_warm_up


class PackedReadings(Sequence[CycleReading]):
    """Readings of many cycles, each made anew when it is asked for."""

    def __init__(self) -> None:
        self._cycles = array("q")
        self._starts = array("q")
        self._loads = array("q")
        self._facts = _Numbered()
        self._values, self._loaded, self._latencies = _Columns(), _Columns(), _Columns()

    def append(self, reading: CycleReading) -> None:
        """Take the reading of the next cycle."""
        self._cycles.append(reading.cycle)
        self._starts.append(reading.start_number)
        self._loads.append(reading.loads)
        self._facts.append((reading.phase, reading.arm, reading.is_warm_up, reading.unsettled, reading.mismatch))
        self._values.append(reading.values)
        self._loaded.append(reading.loaded)
        self._latencies.append(reading.latencies)

    def __len__(self) -> int:
        return len(self._cycles)

    @overload
    def __getitem__(self, at: int) -> CycleReading: ...

    @overload
    def __getitem__(self, at: slice) -> list[CycleReading]: ...

    def __getitem__(self, at: int | slice) -> CycleReading | list[CycleReading]:
        if isinstance(at, slice):
            return [self._at(one) for one in range(len(self))[at]]
        return self._at(range(len(self))[at])

    def __iter__(self) -> Iterator[CycleReading]:
        return map(self._at, range(len(self)))

    def _at(self, at: int) -> CycleReading:
        phase, arm, is_warm_up, unsettled, mismatch = self._facts[at]
        return CycleReading(
            phase=phase,
            arm=arm,
            cycle=self._cycles[at],
            is_warm_up=is_warm_up,
            start_number=self._starts[at],
            values=self._values[at],
            unsettled=unsettled,
            mismatch=mismatch,
            loads=self._loads[at],
            loaded=self._loaded[at],
            latencies=self._latencies[at],
        )


class _Numbered(Sequence[Any]):
    """Values most of which are the same as others; each different one is held once."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._values: list[Any] = []
        self._at = array("I")

    def append(self, value: Any) -> None:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
        self._at.append(number)

    def __len__(self) -> int:
        return len(self._at)

    def __getitem__(self, at: Any) -> Any:
        return self._values[self._at[at]]


class _Columns:
    """One column of integers for each name, with gaps."""

    def __init__(self) -> None:
        self._columns: dict[str, tuple[array[int], bytearray]] = {}
        self._count = 0

    def append(self, row: Mapping[str, int]) -> None:
        for name, value in row.items():
            if name not in self._columns:
                self._columns[name] = (array("q"), bytearray())
            values, has = self._columns[name]
            if len(has) < self._count:  # it was not read in the rows before this one
                values.extend([0] * (self._count - len(has)))
                has.extend(bytes(self._count - len(has)))
            values.append(value)
            has.append(1)
        self._count += 1

    def __getitem__(self, at: int) -> dict[str, int]:
        return {name: values[at] for name, (values, has) in self._columns.items() if at < len(has) and has[at]}


class ChosenReadings(Sequence[CycleReading]):
    """Some of many packed readings; what is held of each is its place."""

    def __init__(self, readings: Sequence[CycleReading], places: Sequence[int]) -> None:
        self._readings = readings
        self._places = array("I", places)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> CycleReading: ...

    @overload
    def __getitem__(self, at: slice) -> list[CycleReading]: ...

    def __getitem__(self, at: int | slice) -> CycleReading | list[CycleReading]:
        if isinstance(at, slice):
            return [self._readings[place] for place in self._places[at]]
        return self._readings[self._places[at]]

    def __iter__(self) -> Iterator[CycleReading]:
        return (self._readings[place] for place in self._places)


def pick(readings: Sequence[CycleReading], wanted: Callable[[CycleReading], bool]) -> Sequence[CycleReading]:
    """Return the readings that are wanted; of packed ones none is kept unpacked."""
    if isinstance(readings, list | tuple):
        return list(filter(wanted, readings))
    return ChosenReadings(readings, array("I", (at for at, reading in enumerate(readings) if wanted(reading))))
