"""The post-unload curve of a metric as drawings show it: readings in the order of the run, and the estimate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tritonchaos.observations import Arm
from tritonchaos.summary.finished import FinishedRun
from tritonchaos.summary.table import TableRow
from tritonchaos.verdict import Assessment, Finding

_GROWTH_CHECKS: Final = frozenset({"memory_growth", "leftovers"})


@dataclass(frozen=True, slots=True)
class Line:
    """A growth per cycle, drawn through the readings that it is about.

    Attributes:
        is_growth: It was found; otherwise it is the smallest leak that the run would have found.
        per_cycle, low, high: Growth per cycle of its arm and its 95 % interval, in the metric's unit.
        places: Places of its cycles among all finished ones, ascending, shape [cycles].
        anchor: Where all three lines cross: (cycles of its arm before it, value).
    """

    is_growth: bool
    arm: Arm
    per_cycle: float
    low: float
    high: float
    places: Sequence[int]
    anchor: tuple[float, float]

    def at(self, clock: int) -> tuple[float, float, float]:
        """Return estimate, low and high after so many cycles of its arm; the lower one is never above the other."""
        past = clock - self.anchor[0]
        low, high = sorted((self.anchor[1] + self.low * past, self.anchor[1] + self.high * past))
        return self.anchor[1] + self.per_cycle * past, low, high


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric over all finished cycles in which it was read.

    Attributes:
        places: Their places among all finished cycles, ascending; shape [readings], as the two that follow.
        values: Median post-unload readings, in bytes, or as a count.
        rows: The cycles themselves.
        assessment: What the check of growth said of it, if it was judged.
        line: What was found, drawn; None where there is nothing to draw.
    """

    metric: str
    places: Sequence[int]
    values: Sequence[int]
    rows: Sequence[TableRow]
    assessment: Assessment | None
    line: Line | None


def curves(run: FinishedRun) -> tuple[Curve, ...]:
    """Make a curve of each metric that was read, those that the table shows first."""
    every = sorted({metric for row in run.rows for metric in row.used})
    judged = {a.metric for a in run.verdict.assessments if a.checker == "memory_growth" and a.metric}
    order = [*run.metrics, *(m for m in every if m in judged), *every]
    return tuple(curve(run, metric) for metric in dict.fromkeys(order) if metric in every)


def judged_curves(run: FinishedRun) -> tuple[Curve, ...]:
    """Make a curve of each metric of the table: those that decide, and those that a finding is about."""
    return tuple(curve(run, metric) for metric in run.metrics)


def curve(run: FinishedRun, metric: str) -> Curve:
    """Make the curve of one metric."""
    read = [(place, row) for place, row in enumerate(run.rows) if metric in row.used]
    assessment = _assessment(run.verdict.assessments, metric)
    return Curve(
        metric=metric,
        places=[place for place, _ in read],
        values=[row.used[metric] for _, row in read],
        rows=[row for _, row in read],
        assessment=assessment,
        line=_line(read, metric, assessment, run.verdict.findings),
    )


def _assessment(assessments: Sequence[Assessment], metric: str) -> Assessment | None:
    found = (a for a in assessments if a.metric == metric and a.checker in _GROWTH_CHECKS)
    return next(found, None)


def _line(
    read: Sequence[tuple[int, TableRow]], metric: str, assessment: Assessment | None, findings: Sequence[Finding]
) -> Line | None:
    of_metric = (f for f in findings if f.metric == metric and f.per == "cycle")
    finding = next((f for f in of_metric if f.bytes_per_cycle is not None), None)
    if finding is not None and finding.bytes_per_cycle is not None:
        arm = (finding.position.arm if finding.position else None) or Arm.TREATMENT
        low, high = finding.interval_bytes_per_cycle or (finding.bytes_per_cycle, finding.bytes_per_cycle)
        return _through(_judged(read, arm), metric, arm, (finding.bytes_per_cycle, low, high), is_growth=True)
    excluded = assessment.excluded_bytes_per_cycle if assessment and assessment.per == "cycle" else None
    if excluded is None:
        return None
    return _through(_judged(read, Arm.TREATMENT), metric, Arm.TREATMENT, (excluded,) * 3, is_growth=False)


def _judged(read: Sequence[tuple[int, TableRow]], arm: Arm) -> list[tuple[int, TableRow]]:
    """Return the cycles of one arm that count, of the last start of the server that has any."""
    cycles = [(place, row) for place, row in read if row.arm is arm and row.mismatch is None and not row.is_warm_up]
    last = cycles[-1][1].start_number if cycles else 0
    return [(place, row) for place, row in cycles if row.start_number == last]


def _through(
    cycles: Sequence[tuple[int, TableRow]], metric: str, arm: Arm, rates: tuple[float, float, float], is_growth: bool
) -> Line | None:
    """Lay a growth through the middle of its readings; one that was ruled out begins where the readings begin."""
    if len(cycles) < 2:
        return None
    values = [row.used[metric] for _, row in cycles]
    middle = ((len(cycles) - 1) / 2, sum(values) / len(values))
    anchor = middle if is_growth else (0.0, float(values[0]))
    return Line(is_growth, arm, *rates, places=[place for place, _ in cycles], anchor=anchor)


def stretches(rows: Sequence[TableRow]) -> Iterator[tuple[int, int, str]]:
    """Yield (first place, last place, phase) of each run of cycles of one phase."""
    first = 0
    for place, row in enumerate(rows):
        if place + 1 == len(rows) or rows[place + 1].phase != row.phase:
            yield first, place, row.phase
            first = place + 1


def restarts(rows: Sequence[TableRow]) -> list[tuple[int, int]]:
    """Return (place, start number) of each first cycle after another start of the server."""
    return [
        (place, row.start_number)
        for place, row in enumerate(rows)
        if place and rows[place - 1].start_number != row.start_number
    ]


def is_interleaved(rows: Sequence[TableRow]) -> bool:
    """Say whether control and treatment cycles come in pairs within a phase."""
    arms: dict[str, set[Arm]] = {}
    for row in rows:
        arms.setdefault(row.phase, set()).add(row.arm)
    return any(len(found) == 2 for found in arms.values())
