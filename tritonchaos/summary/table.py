"""The post-unload table: one row per cycle, with what the load and unload answered and what stayed in use."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, overload

from tritonchaos.expectation import error_text
from tritonchaos.observations import Answer, Arm, History, Reply, StepFinished
from tritonchaos.post_unload import CycleReading, baseline, primary_metrics
from tritonchaos.verdict import Verdict

REPLIES: Final = "reply_texts"
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


def shown_metrics(history: History, verdict: Verdict, readings: Sequence[CycleReading]) -> tuple[str, ...]:
    """Choose the metrics of the table: those that memory_growth decides by, and those that a finding is about."""
    available = {metric for reading in readings for metric in reading.values}
    judged = [a.metric for a in verdict.assessments if a.checker == "memory_growth" and a.counts and a.metric]
    found = [finding.metric for finding in verdict.findings if finding.metric]
    primary = judged or list(history.facts.metrics) or primary_metrics(history.facts.uses_gpu, available)
    return tuple(metric for metric in dict.fromkeys([*primary, *found]) if metric in available)


def table_rows(history: History, readings: Sequence[CycleReading]) -> Sequence[TableRow]:
    """Make one row of each finished cycle; of a long run each when it is asked for."""
    rows = TableRows(history, readings)
    return rows if history.is_long else tuple(rows)


class TableRows(Sequence[TableRow]):
    """The rows of a run, each made of its reading and its replies when it is asked for."""

    def __init__(self, history: History, readings: Sequence[CycleReading]) -> None:
        self._history = history
        self._readings = readings
        self._replies = history.followed(REPLIES, ReplyTexts)

    def __len__(self) -> int:
        return len(self._readings)

    @overload
    def __getitem__(self, at: int) -> TableRow: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[TableRow]: ...

    def __getitem__(self, at: int | slice) -> TableRow | Sequence[TableRow]:
        if isinstance(at, slice):
            return [self._row(reading) for reading in self._readings[at]]
        return self._row(self._readings[at])

    def __iter__(self) -> Iterator[TableRow]:
        return map(self._row, self._readings)

    def _row(self, reading: CycleReading) -> TableRow:
        at_start = baseline(self._history, reading.start_number)
        return TableRow(
            phase=reading.phase,
            arm=reading.arm,
            cycle=reading.cycle,
            is_warm_up=reading.is_warm_up,
            load_reply=self._replies.of(reading.phase, reading.cycle, "load"),
            unload_reply=self._replies.of(reading.phase, reading.cycle, "unload"),
            used=reading.values,
            delta={metric: value - at_start[metric] for metric, value in reading.values.items() if metric in at_start},
            mismatch=reading.mismatch,
            unsettled=reading.unsettled,
            start_number=reading.start_number,
        )


class ReplyTexts:
    """Collects the texts of the replies to load and unload steps of each cycle; different ones are joined."""

    kinds = (StepFinished,)

    def __init__(self) -> None:
        # (phase, step name) -> for each cycle the number of what it was answered, 0 if nothing.
        self._numbers: dict[tuple[str, str], array[int]] = {}
        self._texts: list[tuple[str, ...]] = [()]
        self._with: dict[tuple[int, str], int] = {}

    def see(self, step: StepFinished) -> None:
        """Take the next step."""
        cycle = step.position.cycle
        if step.spec.name not in ("load", "unload") or step.position.track != "main" or cycle is None:
            return
        numbers = self._numbers.setdefault((step.position.phase, step.spec.name), array("I"))
        if cycle >= len(numbers):
            numbers.extend([0] * (cycle + 1 - len(numbers)))
        numbers[cycle] = self._number(numbers[cycle], reply_text(step.reply))

    def _number(self, before: int, text: str) -> int:
        key = (before, text)
        if key not in self._with:
            texts = self._texts[before]
            self._with[key] = before if text in texts else len(self._texts)
            if text not in texts:
                self._texts.append((*texts, text))
        return self._with[key]

    def of(self, phase: str, cycle: int, step: str) -> str:
        """Return what the steps of one name were answered in a cycle."""
        numbers = self._numbers.get((phase, step), ())
        return "; ".join(self._texts[numbers[cycle]]) if cycle < len(numbers) else ""


def table_blocks(rows: Iterable[TableRow]) -> tuple[TableBlock, ...]:
    """Shorten the table to what can be read; everything is in the results document."""
    groups: dict[tuple[str, Arm], _Growing] = {}
    for row in rows:
        key = (row.phase, row.arm)
        if key not in groups:
            groups[key] = _Growing()
        groups[key].append(row)
    return tuple(groups[key].block(*key) for key in in_order(groups))


class _Growing:
    """The rows of one arm of a phase, of which only the first and last are kept."""

    def __init__(self) -> None:
        self._count = 0
        self._first: list[TableRow] = []
        self._last: deque[TableRow] = deque(maxlen=_SHOWN_ROWS)
        self._least: dict[str, int] = {}
        self._most: dict[str, int] = {}

    def append(self, row: TableRow) -> None:
        self._count += 1
        if len(self._first) <= 2 * _SHOWN_ROWS:
            self._first.append(row)
        if self._count > _SHOWN_ROWS:
            if len(self._last) == _SHOWN_ROWS:
                self._leave_out(self._last[0])
            self._last.append(row)

    def _leave_out(self, row: TableRow) -> None:
        for metric, value in row.used.items():
            if metric not in self._least:
                self._least[metric] = self._most[metric] = value
            elif value < self._least[metric]:
                self._least[metric] = value
            elif value > self._most[metric]:
                self._most[metric] = value

    def block(self, phase: str, arm: Arm) -> TableBlock:
        if self._count <= 2 * _SHOWN_ROWS + 1:
            return TableBlock(phase, arm, tuple(self._first), None, ())
        left_out = LeftOut(self._count - 2 * _SHOWN_ROWS, self._least, self._most)
        return TableBlock(phase, arm, tuple(self._first[:_SHOWN_ROWS]), left_out, tuple(self._last))


def reply_text(reply: Reply | None) -> str:
    """Print a reply at a glance: "200", "400: unexpected datatype ...", "no answer (deadline)"."""
    if reply is None:
        return "skipped"
    if not isinstance(reply, Answer):
        return f"no answer ({reply.reason})"
    if reply.status < 400:
        return str(reply.status)
    return _refusal(reply.status, reply.body)


@lru_cache(maxsize=256)  # the same refusal comes back cycle after cycle
def _refusal(status: int, body: bytes) -> str:
    return f"{status}: {' '.join(error_text(Answer(status, body, 0)).split())}"


def phase_counts(readings: Iterable[CycleReading]) -> tuple[PhaseCount, ...]:
    """Count the matching cycles of each arm of each phase, in the order in which they ran."""
    counts: dict[tuple[str, Arm], Counter[tuple[bool, bool]]] = {}
    firsts: dict[tuple[str, Arm], str] = {}
    for reading in readings:
        key = (reading.phase, reading.arm)
        if key not in counts:
            counts[key] = Counter()
        counts[key][reading.is_warm_up, reading.mismatch is None] += 1
        if reading.mismatch and not reading.is_warm_up:
            firsts.setdefault(key, reading.mismatch)
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
