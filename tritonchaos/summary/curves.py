"""The post-unload curve of a metric as drawings show it: readings in the order of the run, and the estimate."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tritonchaos.observations import Arm
from tritonchaos.post_unload import baseline
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


# What is marked of a reading.
TREATMENT, WARM_UP, EXCLUDED, UNSETTLED = 1, 2, 4, 8


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric over all finished cycles in which it was read.

    Attributes:
        places: Their places among all finished cycles, ascending; shape [readings], as the three that follow.
        values: Median post-unload readings, in bytes, or as a count.
        marks: TREATMENT, WARM_UP, EXCLUDED (a step was not as expected), UNSETTLED, added up.
        starts: Which start of the server was read.
        baseline: What was in use with the server ready and no model loaded; None if unknown or not always the same.
        assessment: What the check of growth said of it, if it was judged.
        line: What was found, drawn; None where there is nothing to draw.
    """

    metric: str
    places: Sequence[int]
    values: Sequence[int]
    marks: Sequence[int]
    starts: Sequence[int]
    baseline: int | None
    assessment: Assessment | None
    line: Line | None

    def of_arm(self, arm: Arm) -> list[int]:
        """Return where the readings of one arm are, ascending."""
        wanted = TREATMENT if arm is Arm.TREATMENT else 0
        return [at for at, mark in enumerate(self.marks) if mark & TREATMENT == wanted]

    def is_judged(self, at: int) -> bool:
        """Say whether a reading counts."""
        return not self.marks[at] & (WARM_UP | EXCLUDED)


class _Columns:
    """What a curve is made of, collected cycle by cycle."""

    def __init__(self) -> None:
        self.places, self.values = array("I"), array("q")
        self.marks, self.starts = bytearray(), array("I")

    def append(self, place: int, row: TableRow, metric: str, value: int) -> None:
        self.places.append(place)
        self.values.append(value)
        self.starts.append(row.start_number)
        mark = TREATMENT if row.arm is Arm.TREATMENT else 0
        mark |= WARM_UP if row.is_warm_up else 0
        mark |= EXCLUDED if row.mismatch is not None else 0
        self.marks.append(mark | (UNSETTLED if metric in row.unsettled else 0))


def curves(run: FinishedRun) -> tuple[Curve, ...]:
    """Make a curve of each metric that was read, those that the table shows first."""
    columns = _columns(run)
    judged = {a.metric for a in run.verdict.assessments if a.checker == "memory_growth" and a.metric}
    order = [*run.metrics, *(m for m in sorted(columns) if m in judged), *sorted(columns)]
    return tuple(_curve(run, metric, columns[metric]) for metric in dict.fromkeys(order) if metric in columns)


def judged_curves(run: FinishedRun) -> tuple[Curve, ...]:
    """Make a curve of each metric of the table: those that decide, and those that a finding is about."""
    columns = _columns(run)
    return tuple(_curve(run, metric, columns[metric]) for metric in run.metrics)


def curve(run: FinishedRun, metric: str) -> Curve:
    """Make the curve of one metric."""
    return _curve(run, metric, _columns(run)[metric])


def _columns(run: FinishedRun) -> dict[str, _Columns]:
    columns: dict[str, _Columns] = {}
    for place, row in enumerate(run.rows):
        for metric, value in row.used.items():
            if metric not in columns:
                columns[metric] = _Columns()
            columns[metric].append(place, row, metric, value)
    return columns


def _curve(run: FinishedRun, metric: str, columns: _Columns) -> Curve:
    assessment = _assessment(run.verdict.assessments, metric)
    baselines = {baseline(run.history, start).get(metric) for start in set(columns.starts)}
    made = Curve(
        metric=metric,
        places=columns.places,
        values=columns.values,
        marks=columns.marks,
        starts=columns.starts,
        baseline=baselines.pop() if len(baselines) == 1 else None,
        assessment=assessment,
        line=None,
    )
    return replace(made, line=_line(made, assessment, run.verdict.findings))


def _assessment(assessments: Sequence[Assessment], metric: str) -> Assessment | None:
    found = (a for a in assessments if a.metric == metric and a.checker in _GROWTH_CHECKS)
    return next(found, None)


def _line(drawn: Curve, assessment: Assessment | None, findings: Sequence[Finding]) -> Line | None:
    of_metric = (f for f in findings if f.metric == drawn.metric and f.per == "cycle")
    finding = next((f for f in of_metric if f.bytes_per_cycle is not None), None)
    if finding is not None and finding.bytes_per_cycle is not None:
        arm = (finding.position.arm if finding.position else None) or Arm.TREATMENT
        low, high = finding.interval_bytes_per_cycle or (finding.bytes_per_cycle, finding.bytes_per_cycle)
        return _through(drawn, arm, (finding.bytes_per_cycle, low, high), is_growth=True)
    excluded = assessment.excluded_bytes_per_cycle if assessment and assessment.per == "cycle" else None
    return None if excluded is None else _through(drawn, Arm.TREATMENT, (excluded,) * 3, is_growth=False)


def _judged(drawn: Curve, arm: Arm) -> list[int]:
    """Return where the readings of one arm that count are, of the last start of the server that has any."""
    found = [at for at in drawn.of_arm(arm) if drawn.is_judged(at)]
    return [at for at in found if drawn.starts[at] == drawn.starts[found[-1]]]


def _through(drawn: Curve, arm: Arm, rates: tuple[float, float, float], is_growth: bool) -> Line | None:
    """Lay a growth through the middle of its readings; one that was ruled out begins where the readings begin."""
    judged = _judged(drawn, arm)
    if len(judged) < 2:
        return None
    values = [drawn.values[at] for at in judged]
    middle = ((len(judged) - 1) / 2, sum(values) / len(values))
    anchor = middle if is_growth else (0.0, float(values[0]))
    return Line(is_growth, arm, *rates, places=array("I", [drawn.places[at] for at in judged]), anchor=anchor)


@dataclass(frozen=True, slots=True)
class Outline:
    """The parts of a run, in the order of its finished cycles.

    Attributes:
        stretches: (first place, last place, phase) of each run of cycles of one phase.
        restarts: (place, start number) of each first cycle after another start of the server.
        is_interleaved: Control and treatment cycles come in pairs within a phase.
    """

    stretches: list[tuple[int, int, str]]
    restarts: list[tuple[int, int]]
    is_interleaved: bool


def outline(rows: Iterable[TableRow]) -> Outline:
    """Tell the parts of a run from its cycles."""
    parts: list[tuple[int, int, str]] = []
    restarts: list[tuple[int, int]] = []
    arms: dict[str, set[Arm]] = {}
    before: TableRow | None = None
    for place, row in enumerate(rows):
        if before is None or row.phase != before.phase:
            parts.append((place, place, row.phase))
            arms.setdefault(row.phase, set())
        elif row.start_number == before.start_number and row.arm is before.arm:
            before = row
            continue
        if before is not None and row.start_number != before.start_number:
            restarts.append((place, row.start_number))
        arms[row.phase].add(row.arm)
        before = row
    starts = [first for first, _, _ in parts[1:]]
    ends = [*starts, place + 1] if parts else []
    stretches = [(first, end - 1, phase) for (first, _, phase), end in zip(parts, ends, strict=True)]
    return Outline(stretches, restarts, any(len(found) == 2 for found in arms.values()))
