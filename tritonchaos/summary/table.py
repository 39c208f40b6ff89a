"""The post-unload table: one row per cycle, with what the load and unload answered and what stayed in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from tritonchaos.expectation import error_text
from tritonchaos.observations import Answer, Arm, History, Reply, StepFinished
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


_CycleT = TypeVar("_CycleT", CycleReading, TableRow)


def shown_metrics(history: History, verdict: Verdict, readings: Sequence[CycleReading]) -> tuple[str, ...]:
    """Choose the metrics of the table: those that memory_growth decides by, and those that a finding is about."""
    available = {metric for reading in readings for metric in reading.values}
    judged = [a.metric for a in verdict.assessments if a.checker == "memory_growth" and a.counts and a.metric]
    found = [finding.metric for finding in verdict.findings if finding.metric]
    primary = judged or list(history.facts.metrics) or primary_metrics(history.facts.uses_gpu, available)
    return tuple(metric for metric in dict.fromkeys([*primary, *found]) if metric in available)


def table_rows(history: History, readings: Sequence[CycleReading]) -> tuple[TableRow, ...]:
    """Make one row of each finished cycle."""
    replies = _replies(history)
    baselines = {number: baseline(history, number) for number in {reading.start_number for reading in readings}}
    return tuple(_row(reading, replies, baselines[reading.start_number]) for reading in readings)


def table_blocks(rows: Sequence[TableRow]) -> tuple[TableBlock, ...]:
    """Shorten the table to what can be read; everything is in the results document."""
    return tuple(_block(phase, arm, group) for phase, arm, group in by_phase_and_arm(rows))


def _block(phase: str, arm: Arm, rows: Sequence[TableRow]) -> TableBlock:
    if len(rows) <= 2 * _SHOWN_ROWS + 1:
        return TableBlock(phase, arm, tuple(rows), None, ())
    middle = rows[_SHOWN_ROWS:-_SHOWN_ROWS]
    values: dict[str, list[int]] = {}
    for row in middle:
        for metric, value in row.used.items():
            values.setdefault(metric, []).append(value)
    left_out = LeftOut(len(middle), {m: min(v) for m, v in values.items()}, {m: max(v) for m, v in values.items()})
    return TableBlock(phase, arm, tuple(rows[:_SHOWN_ROWS]), left_out, tuple(rows[-_SHOWN_ROWS:]))


def _row(reading: CycleReading, replies: Mapping[tuple[str, int, str], str], at_start: Mapping[str, int]) -> TableRow:
    return TableRow(
        phase=reading.phase,
        arm=reading.arm,
        cycle=reading.cycle,
        is_warm_up=reading.is_warm_up,
        load_reply=replies.get((reading.phase, reading.cycle, "load"), ""),
        unload_reply=replies.get((reading.phase, reading.cycle, "unload"), ""),
        used=reading.values,
        delta={metric: value - at_start[metric] for metric, value in reading.values.items() if metric in at_start},
        mismatch=reading.mismatch,
        unsettled=reading.unsettled,
        start_number=reading.start_number,
    )


def _replies(history: History) -> dict[tuple[str, int, str], str]:
    """Texts of the replies to load and unload steps, by phase, cycle and step name; different ones joined."""
    texts: dict[tuple[str, int, str], dict[str, None]] = {}
    for step in history.of(StepFinished):
        if step.spec.name in ("load", "unload") and step.position.track == "main" and step.position.cycle is not None:
            key = (step.position.phase, step.position.cycle, step.spec.name)
            texts.setdefault(key, {})[reply_text(step.reply)] = None
    return {key: "; ".join(found) for key, found in texts.items()}


def reply_text(reply: Reply | None) -> str:
    """Print a reply at a glance: "200", "400: unexpected datatype ...", "no answer (deadline)"."""
    if reply is None:
        return "skipped"
    if not isinstance(reply, Answer):
        return f"no answer ({reply.reason})"
    if reply.status < 400:
        return str(reply.status)
    return f"{reply.status}: {' '.join(error_text(reply).split())}"


def phase_counts(readings: Sequence[CycleReading]) -> tuple[PhaseCount, ...]:
    """Count the matching cycles of each arm of each phase, in the order in which they ran."""
    return tuple(_counted(phase, arm, group) for phase, arm, group in by_phase_and_arm(readings))


def by_phase_and_arm(cycles: Sequence[_CycleT]) -> Iterator[tuple[str, Arm, list[_CycleT]]]:
    """Group cycles by phase in the order in which they ran, and within it by arm, control first."""
    groups: dict[tuple[str, Arm], list[_CycleT]] = {}
    for cycle in cycles:
        groups.setdefault((cycle.phase, cycle.arm), []).append(cycle)
    phases = list(dict.fromkeys(phase for phase, _ in groups))
    for phase, arm in sorted(groups, key=lambda key: (phases.index(key[0]), key[1].value)):
        yield phase, arm, groups[phase, arm]


def _counted(phase: str, arm: Arm, readings: Sequence[CycleReading]) -> PhaseCount:
    counts = Counter((reading.is_warm_up, reading.mismatch is None) for reading in readings)
    return PhaseCount(
        phase=phase,
        arm=arm,
        warm_up=counts[True, True] + counts[True, False],
        cycles=counts[False, True] + counts[False, False],
        matched=counts[False, True],
        first_mismatch=next((r.mismatch for r in readings if r.mismatch and not r.is_warm_up), None),
    )
