"""The post-unload curve of a metric as drawings show it: readings in the order of the run, and the estimate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tritonchaos.observations import Arm
from tritonchaos.observations.cycle_table import CycleKind, CycleTable
from tritonchaos.post_unload import baseline, cycle_table
from tritonchaos.summary.finished import FinishedRun
from tritonchaos.verdict import Assessment, Finding

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GROWTH_CHECKS: Final = frozenset({"memory_growth", "leftovers"})


@dataclass(frozen=True, slots=True)
class Line:
    """A growth per cycle or per load, drawn through the readings that it is about.

    Attributes:
        is_growth: It was found; otherwise it is the smallest leak that the run would have found.
        per: What the rates are stated per: "cycle", or "load" where cycles repeated their loads.
        rate, low, high: Growth of its arm and its 95 % interval, in the metric's unit.
        places: Places of its cycles among all finished ones, ascending, shape [cycles].
        clock: How many cycles, or loads, of its arm there had been after each of them, shape [cycles].
        anchor: Where all three lines cross: (clock, value).
    """

    is_growth: bool
    arm: Arm
    per: str
    rate: float
    low: float
    high: float
    places: NDArray[Any]
    clock: NDArray[Any]
    anchor: tuple[float, float]

    def at(self, number: int) -> tuple[float, float, float]:
        """Return estimate, low and high at one of its cycles; the lower one is never above the other."""
        past = float(self.clock[number]) - self.anchor[0]
        low, high = sorted((self.anchor[1] + self.low * past, self.anchor[1] + self.high * past))
        return self.anchor[1] + self.rate * past, low, high

    def corners(self) -> list[int]:
        """Return its cycles between which it is straight, ascending, and the middle one.

        They are where a run of its cycles begins or ends, and where cycles begin to do their loads more often.
        """
        import numpy

        is_break = (numpy.diff(self.places) != 1) | (numpy.diff(self.clock, n=2, prepend=self.clock[0] - 1) != 0)
        breaks = numpy.flatnonzero(is_break)
        ends = numpy.array([0, len(self.places) // 2, len(self.places) - 1])  # the interval is narrowest in the middle
        found: list[int] = numpy.unique(numpy.concatenate((breaks, breaks + 1, ends))).tolist()
        return found


# What is marked of a reading.
TREATMENT, WARM_UP, EXCLUDED, UNSETTLED = 1, 2, 4, 8
_NOT_JUDGED: Final = WARM_UP | EXCLUDED


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric over all finished cycles in which it was read.

    Attributes:
        places: Their places among all finished cycles, ascending; shape [readings], as the four that follow.
        values: Median post-unload readings, in bytes, or as a count.
        marks: TREATMENT, WARM_UP, EXCLUDED (a step was not as expected), UNSETTLED, added up.
        starts: Which start of the server was read.
        times: How often a cycle did its loads for each time that the first judged ones of its phase and arm did theirs.
        baseline: What was in use with the server ready and no model loaded; None if unknown or not always the same.
        assessment: What the check of growth said of it, if it was judged.
        line: What was found, drawn; None where there is nothing to draw.
    """

    metric: str
    places: NDArray[Any]
    values: NDArray[Any]
    marks: NDArray[Any]
    starts: NDArray[Any]
    times: NDArray[Any]
    baseline: int | None
    assessment: Assessment | None
    line: Line | None

    def of_arm(self, arm: Arm) -> NDArray[Any]:
        """Return where the readings of one arm are, ascending."""
        import numpy

        found: NDArray[Any] = numpy.flatnonzero((self.marks & TREATMENT) == (TREATMENT if arm is Arm.TREATMENT else 0))
        return found

    def is_judged(self, at: NDArray[Any]) -> NDArray[Any]:
        """Say which of some readings count."""
        judged: NDArray[Any] = (self.marks[at] & _NOT_JUDGED) == 0
        return judged


def curves(run: FinishedRun) -> Iterator[Curve]:
    """Make a curve of each metric that was read, those that the table shows first, one after the other."""
    table = cycle_table(run.history)
    judged = {a.metric for a in run.verdict.assessments if a.checker == "memory_growth" and a.metric}
    every = sorted(table.metrics)
    order = [*run.metrics, *(metric for metric in every if metric in judged), *every]
    return (curve(run, metric) for metric in dict.fromkeys(order) if metric in table.metrics)


def judged_curves(run: FinishedRun) -> list[Curve]:
    """Make a curve of each metric of the table: those that decide, and those that a finding is about."""
    return [curve(run, metric) for metric in run.metrics]


def curve(run: FinishedRun, metric: str) -> Curve:
    """Make the curve of one metric."""
    import numpy

    table = cycle_table(run.history)
    column = table.values(metric)
    every = numpy.arange(len(table), dtype=numpy.uint32)
    places = every if column.has is None else every[numpy.frombuffer(column.has, numpy.uint8) != 0]
    kinds = numpy.asarray(table.kinds)[places]
    of_kind = table.kind_list
    starts = numpy.array([kind.start_number for kind in of_kind], numpy.uint32)[kinds]
    baselines = {baseline(run.history, start).get(metric) for start in numpy.unique(starts).tolist()}
    assessment = _assessment(run.verdict.assessments, metric)
    made = Curve(
        metric=metric,
        places=places,
        values=numpy.asarray(column.values)[places],
        marks=numpy.array([_marks(kind, metric) for kind in of_kind], numpy.uint8)[kinds],
        starts=starts,
        times=numpy.array(_times(table, run.history.facts.amplified), numpy.uint32)[kinds],
        baseline=baselines.pop() if len(baselines) == 1 else None,
        assessment=assessment,
        line=None,
    )
    return replace(made, line=_line(made, assessment, run.verdict.findings))


def _marks(kind: CycleKind, metric: str) -> int:
    mark = TREATMENT if kind.arm is Arm.TREATMENT else 0
    mark |= WARM_UP if kind.is_warm_up else 0
    mark |= EXCLUDED if kind.mismatch is not None else 0
    return mark | (UNSETTLED if metric in kind.unsettled else 0)


def _times(table: CycleTable, amplified: frozenset[str]) -> list[int]:
    """Say for each kind of cycle how often it repeats its loads, as the growth test counts them."""
    first: dict[tuple[str, Arm], int] = {}
    for kind in table.kind_list:  # numbered in the order in which they came first
        if kind.is_judged:
            first.setdefault((kind.phase, kind.arm), kind.loads)
    return [
        max(1, kind.loads // (first.get((kind.phase, kind.arm)) or kind.loads or 1)) if kind.phase in amplified else 1
        for kind in table.kind_list
    ]


def _assessment(assessments: Sequence[Assessment], metric: str) -> Assessment | None:
    found = (a for a in assessments if a.metric == metric and a.checker in _GROWTH_CHECKS)
    return next(found, None)


def _line(drawn: Curve, assessment: Assessment | None, findings: Sequence[Finding]) -> Line | None:
    of_metric = (f for f in findings if f.metric == drawn.metric and f.bytes_per_cycle is not None)
    finding = next(of_metric, None)
    if finding is not None and finding.bytes_per_cycle is not None:
        arm = (finding.position.arm if finding.position else None) or Arm.TREATMENT
        low, high = finding.interval_bytes_per_cycle or (finding.bytes_per_cycle, finding.bytes_per_cycle)
        return _through(drawn, arm, finding.per, (finding.bytes_per_cycle, low, high), is_growth=True)
    if assessment is None or assessment.excluded_bytes_per_cycle is None:
        return None
    excluded = assessment.excluded_bytes_per_cycle
    return _through(drawn, Arm.TREATMENT, assessment.per, (excluded,) * 3, is_growth=False)


def _judged(drawn: Curve, arm: Arm) -> NDArray[Any]:
    """Return where the readings of one arm that count are, of the last start of the server that has any."""
    of_arm = drawn.of_arm(arm)
    found: NDArray[Any] = of_arm[drawn.is_judged(of_arm)]
    return found[drawn.starts[found] == drawn.starts[found[-1]]] if len(found) else found


def _through(drawn: Curve, arm: Arm, per: str, rates: tuple[float, float, float], *, is_growth: bool) -> Line | None:
    """Lay a growth through the middle of its readings; one that was ruled out begins where the readings begin."""
    import numpy

    judged = _judged(drawn, arm)
    if len(judged) < 2:
        return None
    values = drawn.values[judged]
    clock = numpy.cumsum(drawn.times[judged], dtype=numpy.int64) if per == "load" else numpy.arange(len(judged))
    middle = (float(clock.mean()), float(values.mean()))
    anchor = middle if is_growth else (float(clock[0]), float(values[0]))
    return Line(is_growth, arm, per, *rates, places=drawn.places[judged], clock=clock, anchor=anchor)


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


def outline(table: CycleTable) -> Outline:
    """Tell the parts of a run from its cycles."""
    import numpy

    if not len(table):
        return Outline([], [], is_interleaved=False)
    kinds, of_kind = numpy.asarray(table.kinds), table.kind_list
    names = {name: number for number, name in enumerate(dict.fromkeys(kind.phase for kind in of_kind))}
    phases = numpy.array([names[kind.phase] for kind in of_kind])[kinds]
    starts = numpy.array([kind.start_number for kind in of_kind])[kinds]
    ends = [*numpy.flatnonzero(phases[1:] != phases[:-1]).tolist(), len(table) - 1]
    firsts = [0, *(end + 1 for end in ends)]
    stretches = [(first, last, of_kind[kinds[first]].phase) for first, last in zip(firsts, ends, strict=False)]
    restarts = (numpy.flatnonzero(starts[1:] != starts[:-1]) + 1).tolist()
    arms: dict[str, set[Arm]] = {}
    for kind in of_kind:
        arms.setdefault(kind.phase, set()).add(kind.arm)
    is_interleaved = any(len(found) == 2 for found in arms.values())
    return Outline(stretches, [(place, int(starts[place])) for place in restarts], is_interleaved)
