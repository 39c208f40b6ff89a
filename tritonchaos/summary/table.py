"""The post-unload table: one row per cycle, with what the load and unload answered and what stayed in use."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, overload

from tritonchaos.expectation import reply_text as reply_text
from tritonchaos.observations import Arm, CycleKind, CycleTable, History
from tritonchaos.post_unload import CycleReading, baseline, primary_metrics
from tritonchaos.verdict import Verdict

_SHOWN_ROWS: Final = 10


@dataclass(frozen=True, slots=True)
class TableRow:
    """One finished cycle as reports show it.

    Attributes:
        load_reply: What came back, such as "200" or "400: unexpected datatype ..."; "" without such a step.
        unload_reply: The same of the unload.
        used: Metric -> median post-unload reading in bytes; a metric that was not read is absent.
        delta: Metric -> the same minus the baseline of this start of the server, in bytes; absent without a baseline.
        mismatch: The first unmet expectation, or None.
        unsettled: Metrics whose reading had not settled.
        start_number: Which start of the server it ran on, from 1.
    """

    phase: str
    arm: Arm
    cycle: int
    is_warm_up: bool
    load_reply: str
    unload_reply: str
    used: Mapping[str, int]
    delta: Mapping[str, int]
    mismatch: str | None
    unsettled: frozenset[str]
    start_number: int = 1


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Rows in the middle of a long block, in short.

    Attributes:
        rows: How many.
        least, most: Metric -> smallest and largest post-unload reading among them, in bytes.
    """

    rows: int
    least: Mapping[str, int]
    most: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TableBlock:
    """The rows of one arm of a phase; of a long one the first and last ten.

    Attributes:
        left_out: What stands between `first` and `last`; None: nothing, and `last` is empty.
    """

    phase: str
    arm: Arm
    first: tuple[TableRow, ...]
    left_out: LeftOut | None
    last: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True)
class PhaseCount:
    """How many cycles of one arm of a phase did what they should.

    Attributes:
        cycles: Finished cycles without the warm-up.
        matched: Those of them whose steps all met their expectations.
        first_mismatch: The first unmet expectation, or None.
    """

    phase: str
    arm: Arm
    warm_up: int
    cycles: int
    matched: int
    first_mismatch: str | None


def shown_metrics(history: History, verdict: Verdict, table: CycleTable) -> tuple[str, ...]:
    """Choose the metrics of the table: those that memory_growth decides by, and those that a finding is about."""
    available = frozenset(table.metrics)
    judged = [a.metric for a in verdict.assessments if a.checker == "memory_growth" and a.counts and a.metric]
    found = [finding.metric for finding in verdict.findings if finding.metric]
    primary = judged or list(history.facts.metrics) or primary_metrics(history.facts.uses_gpu, available)
    return tuple(metric for metric in dict.fromkeys([*primary, *found]) if metric in available)


class TableRows(Sequence[TableRow]):
    """The rows of a run, each made when it is asked for."""

    def __init__(self, history: History, table: CycleTable) -> None:
        self._history = history
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, at: int) -> TableRow: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[TableRow]: ...

    def __getitem__(self, at: int | slice) -> TableRow | Sequence[TableRow]:
        if isinstance(at, slice):
            return list(self.at(range(len(self))[at]))
        return next(self.at([range(len(self))[at]]))

    def __iter__(self) -> Iterator[TableRow]:
        return self.at(range(len(self)))

    def at(self, places: Sequence[int]) -> Iterator[TableRow]:
        """Yield some rows."""
        kinds, kind_list = self.table.kinds, self.table.kind_list
        for place, reading in zip(places, self.table.readings(places), strict=True):
            yield self._row(reading, kind_list[kinds[place]])

    def _row(self, reading: CycleReading, kind: CycleKind) -> TableRow:
        at_start = baseline(self._history, reading.start_number)
        return TableRow(
            phase=reading.phase,
            arm=reading.arm,
            cycle=reading.cycle,
            is_warm_up=reading.is_warm_up,
            load_reply=kind.load_reply,
            unload_reply=kind.unload_reply,
            used=reading.values,
            delta={metric: value - at_start[metric] for metric, value in reading.values.items() if metric in at_start},
            mismatch=reading.mismatch,
            unsettled=reading.unsettled,
            start_number=reading.start_number,
        )


def table_blocks(rows: TableRows) -> tuple[TableBlock, ...]:
    """Shorten the table to what can be read; everything is in the results document."""
    groups = groups_of(rows.table)
    return tuple(_block(rows, *key, groups[key]) for key in in_order(groups))


def groups_of(table: CycleTable) -> dict[tuple[str, Arm], array[int]]:
    """Return the places of the cycles of each arm of each phase, as they came first."""
    keys = [(kind.phase, kind.arm) for kind in table.kind_list]
    order = dict.fromkeys(keys[number] for number in dict.fromkeys(table.kinds))
    return {key: table.select(lambda kind, key=key: (kind.phase, kind.arm) == key) for key in order}  # type: ignore[misc]


def _block(rows: TableRows, phase: str, arm: Arm, places: array[int]) -> TableBlock:
    if len(places) <= 2 * _SHOWN_ROWS + 1:
        return TableBlock(phase, arm, tuple(rows.at(places)), None, ())
    first, middle, last = places[:_SHOWN_ROWS], places[_SHOWN_ROWS:-_SHOWN_ROWS], places[-_SHOWN_ROWS:]
    return TableBlock(phase, arm, tuple(rows.at(first)), _left_out(rows.table, middle), tuple(rows.at(last)))


def _left_out(table: CycleTable, places: array[int]) -> LeftOut:
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for metric in table.metrics:
        column = table.values(metric)
        values = column.values
        has = column.has
        found = [values[place] for place in places] if has is None else [values[p] for p in places if has[p]]
        if found:
            least[metric], most[metric] = min(found), max(found)
    return LeftOut(len(places), least, most)


def phase_counts(table: CycleTable) -> tuple[PhaseCount, ...]:
    """Count the matching cycles of each arm of each phase, in the order in which they ran."""
    counts: dict[tuple[str, Arm], Counter[tuple[bool, bool]]] = {}
    firsts: dict[tuple[str, Arm], str] = {}
    # A counter keeps the order in which its keys came first.
    for number, count in Counter(table.kinds).items():
        kind = table.kind_list[number]
        key = (kind.phase, kind.arm)
        counts.setdefault(key, Counter())[kind.is_warm_up, kind.mismatch is None] += count
        if kind.mismatch and not kind.is_warm_up:
            firsts.setdefault(key, kind.mismatch)
    return tuple(_counted(*key, counts[key], firsts.get(key)) for key in in_order(counts))


def in_order(groups: Iterable[tuple[str, Arm]]) -> list[tuple[str, Arm]]:
    """Sort phases as they came first, and within each its arms, control first."""
    phases = {phase: None for phase, _ in groups}
    order = {phase: number for number, phase in enumerate(phases)}
    return sorted(groups, key=lambda key: (order[key[0]], key[1].value))


def _counted(phase: str, arm: Arm, counts: Counter[tuple[bool, bool]], first_mismatch: str | None) -> PhaseCount:
    return PhaseCount(
        phase=phase,
        arm=arm,
        warm_up=counts[True, True] + counts[True, False],
        cycles=counts[False, True] + counts[False, False],
        matched=counts[False, True],
        first_mismatch=first_mismatch,
    )
