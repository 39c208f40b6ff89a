"""The finished cycles of a run in columns: about a hundred bytes a cycle, and no object for each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, overload

from tritonchaos.observations.columns import Column as Column
from tritonchaos.observations.cycle_readings import CycleReading
from tritonchaos.observations.replies import Arm

_NOTHING: Final[Mapping[str, int]] = {}
# Names of columns; those of readings and latencies have the metric behind them.
CYCLE, STARTED, ENDED, LOG_START, LOG_END = "cycle", "started_ns", "ended_ns", "log_start", "log_end"
VALUE, LOADED, LATENCY, LATER = "value:", "loaded:", "latency:", "later:"


@dataclass(frozen=True, slots=True)
class CycleKind:
    """What many cycles have in common.

    Attributes:
        start_number, unsettled, mismatch, loads: As of `CycleReading`.
        load_reply, unload_reply: What came back, such as "200" or "400: unexpected datatype ..."; different ones of a
            cycle are joined; "" without such a step.
    """

    phase: str
    arm: Arm
    is_warm_up: bool
    start_number: int
    loads: int = 0
    unsettled: frozenset[str] = frozenset()
    mismatch: str | None = None
    load_reply: str = ""
    unload_reply: str = ""

    @property
    def is_judged(self) -> bool:
        """As of `CycleReading`."""
        return self.mismatch is None and not self.is_warm_up


@dataclass(frozen=True, slots=True)
class SeenCycle:
    """A finished cycle with all that the table keeps of it.

    Attributes:
        started_ns, ended_ns: Of its `CycleStarted` and `CycleFinished`.
        log_start, log_end: Byte offsets in server.log between which the steps of its main track ran; 0 without steps.
        later: Values of the reading just before the next cycle.
    """

    reading: CycleReading
    load_reply: str = ""
    unload_reply: str = ""
    started_ns: int = 0
    ended_ns: int = 0
    log_start: int = 0
    log_end: int = 0
    later: Mapping[str, int] = field(default_factory=dict)

    def kind(self) -> CycleKind:
        """Return what it may have in common with others."""
        reading = self.reading
        return CycleKind(
            reading.phase,
            reading.arm,
            reading.is_warm_up,
            reading.start_number,
            reading.loads,
            reading.unsettled,
            reading.mismatch,
            self.load_reply,
            self.unload_reply,
        )

    def numbers(self) -> Iterator[tuple[str, int]]:
        """Yield its columns with their values."""
        yield from ((CYCLE, self.reading.cycle), (STARTED, self.started_ns), (ENDED, self.ended_ns))
        yield from ((LOG_START, self.log_start), (LOG_END, self.log_end))
        for name, row in (
            (VALUE, self.reading.values),
            (LOADED, self.reading.loaded),
            (LATENCY, self.reading.latencies),
            (LATER, self.later),
        ):
            yield from ((name + key, value) for key, value in row.items())


class CycleTable(Sequence[CycleReading]):
    """The finished cycles of a run in order; as a sequence their readings, each made when it is asked for.

    Attributes:
        kinds: Number of each cycle's kind, shape [cycles].
        kind_list: Kinds by number.
        stretches: Where the events of each cycle are (see `skimming.Stretches`), shape [cycles]; empty where the table
            was made of all events.

    Args:
        kinds, kind_list: Of cycles that somebody else keeps.
        names: Their columns.
        load: Makes one of their columns.
    """

    def __init__(
        self,
        kinds: array[int] | None = None,
        kind_list: list[CycleKind] | None = None,
        names: Sequence[str] = (),
        load: Callable[[str], Column] | None = None,
        stretches: array[int] | None = None,
    ) -> None:
        self.kinds = array("I") if kinds is None else kinds
        self.kind_list = kind_list or []
        self.stretches = array("I") if stretches is None else stretches
        self._numbers = {kind: number for number, kind in enumerate(self.kind_list)}
        self._names = dict.fromkeys(names)
        self._load = load
        self._columns: dict[str, Column] = {}

    # --- writing ---------------------------------------------------------------------------------

    def append(self, reading: CycleReading) -> None:
        """Take the reading of the next cycle."""
        self.add(SeenCycle(reading))

    def add(self, seen: SeenCycle) -> None:
        """Take the next cycle."""
        kind = seen.kind()
        number = self._numbers.setdefault(kind, len(self.kind_list))
        if number == len(self.kind_list):
            self.kind_list.append(kind)
        for name, value in seen.numbers():
            self._fill(name).append(value)
        self.kinds.append(number)

    def add_later(self, values: Mapping[str, int]) -> None:
        """Take the reading just before the cycle that comes after the last one."""
        for metric, value in values.items():
            column = self._fill(LATER + metric, missing=1)
            if len(column.values) < len(self.kinds):
                column.append(value)

    def _fill(self, name: str, missing: int = 0) -> Column:
        """Return a column that reaches up to the next cycle."""
        self._names.setdefault(name)
        column = self._columns.setdefault(name, Column())
        column.skip(max(0, len(self.kinds) - missing - len(column.values)))
        return column

    # --- columns ---------------------------------------------------------------------------------

    def column(self, name: str) -> Column:
        """Return a column by its name; all absent if there is no such one."""
        if name not in self._columns:
            self._columns[name] = self._load(name) if self._load and name in self._names else Column()
        column = self._columns[name]
        column.skip(len(self.kinds) - len(column.values))
        return column

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self._names)

    def _named(self, prefix: str) -> tuple[str, ...]:
        return tuple(name[len(prefix) :] for name in self._names if name.startswith(prefix))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics with a post-unload reading."""
        return self._named(VALUE)

    @property
    def latencies(self) -> tuple[str, ...]:
        """Names of latencies that were recorded."""
        return self._named(LATENCY)

    @property
    def later_metrics(self) -> tuple[str, ...]:
        """Metrics that were read just before the next cycle."""
        return self._named(LATER)

    def values(self, metric: str) -> Column:
        """Median post-unload readings of a metric."""
        return self.column(VALUE + metric)

    def loaded(self, metric: str) -> Column:
        """Values of the last "loaded" reading of each cycle."""
        return self.column(LOADED + metric)

    def latency(self, name: str) -> Column:
        """Latencies, in nanoseconds."""
        return self.column(LATENCY + name)

    def later(self, metric: str) -> Column:
        """Values of the reading just before the next cycle."""
        return self.column(LATER + metric)

    @property
    def cycles(self) -> array[int]:
        """Number of each cycle within its phase."""
        return self.column(CYCLE).values

    @property
    def started_ns(self) -> array[int]:
        """When each cycle began."""
        return self.column(STARTED).values

    @property
    def ended_ns(self) -> array[int]:
        """When each cycle was finished."""
        return self.column(ENDED).values

    @property
    def log_starts(self) -> array[int]:
        """Where in server.log the first step of each cycle's main track began."""
        return self.column(LOG_START).values

    @property
    def log_ends(self) -> array[int]:
        """Where in server.log the last step of each cycle's main track ended."""
        return self.column(LOG_END).values

    def kind_of(self, place: int) -> CycleKind:
        """Return the kind of one cycle."""
        return self.kind_list[self.kinds[place]]

    def select(self, wanted: Callable[[CycleKind], bool]) -> array[int]:
        """Return the places of the cycles whose kind is wanted, ascending."""
        chosen = {number for number, kind in enumerate(self.kind_list) if wanted(kind)}
        if len(chosen) == len(self.kind_list):
            return array("I", range(len(self.kinds)))
        return array("I", (place for place, number in enumerate(self.kinds) if number in chosen))

    def places_of(self, phase: str, cycle: int | None) -> list[int]:
        """Return the places of the cycles with one number in a phase."""
        numbers, found, start = self.cycles, [], 0
        while cycle is not None:
            try:
                start = numbers.index(cycle, start) + 1
            except ValueError:
                break
            found.append(start - 1)
        return [place for place in found if self.kind_list[self.kinds[place]].phase == phase]

    # --- readings --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.kinds)

    @overload
    def __getitem__(self, at: int) -> CycleReading: ...

    @overload
    def __getitem__(self, at: slice) -> list[CycleReading]: ...

    def __getitem__(self, at: int | slice) -> CycleReading | list[CycleReading]:
        if isinstance(at, slice):
            return list(self.readings(range(len(self))[at]))
        return next(self.readings([range(len(self))[at]]))

    def __iter__(self) -> Iterator[CycleReading]:
        return self.readings(range(len(self)))

    def readings(self, places: Sequence[int]) -> Iterator[CycleReading]:
        """Yield the readings of some cycles."""
        values, loaded, latencies = (self._rows(prefix, places) for prefix in (VALUE, LOADED, LATENCY))
        kinds, kind_list, cycles = self.kinds, self.kind_list, self.cycles
        for place, value, load, latency in zip(places, values, loaded, latencies, strict=True):
            kind = kind_list[kinds[place]]
            yield CycleReading(
                kind.phase,
                kind.arm,
                cycles[place],
                kind.is_warm_up,
                kind.start_number,
                value,
                kind.unsettled,
                kind.mismatch,
                kind.loads,
                load,
                latency,
            )

    def _rows(self, prefix: str, places: Sequence[int]) -> Iterator[Mapping[str, int]]:
        """Yield what the columns of one prefix hold of some cycles."""
        names = self._named(prefix)
        if not names:
            return (_NOTHING for _ in places)
        columns = [self.column(prefix + name) for name in names]
        if all(column.has is None for column in columns):
            return (dict(zip(names, (c.values[place] for c in columns), strict=True)) for place in places)
        named = list(zip(names, columns, strict=True))
        return ({name: c.values[place] for name, c in named if c.has is None or c.has[place]} for place in places)
