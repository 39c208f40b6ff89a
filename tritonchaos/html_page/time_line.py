"""Every step on a time line, and the steps of the cycles that the page can show one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tritonchaos.html_page.lanes import Lanes, Mark
from tritonchaos.html_page.step_replies import OK, UNMET, outcome_and_reply
from tritonchaos.observations import (
    CycleFinished,
    CycleStarted,
    Event,
    ServerExited,
    ServerStarted,
    ServerStopped,
    StepFinished,
    TrafficSummary,
)
from tritonchaos.summary import FinishedRun
from tritonchaos.summary.faults import faults_of
from tritonchaos.summary.stretches import stretches_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEPS_OUTSIDE: Final = 1000
_FEW_CYCLES: Final = 1000
_EDGE_CYCLES: Final = 40
_ODD_CYCLES: Final = 200
# Cycles that are alike are looked at one by one as long as they are no more than this in all.
_LOOKED_AT: Final = 4000
_SPREAD_AT_ONCE: Final = 50_000


@dataclass(slots=True)
class Cycle:
    """A cycle that was begun, with its steps on the main track.

    Attributes:
        place: Its number among all that were begun.
        at: Its number among the finished ones; -1: it was not finished.
        log: Byte offsets in server.log of what was logged during its steps.
    """

    phase: str
    number: int
    place: int
    at: int = -1
    faults: tuple[str, ...] = ()
    log: tuple[int, int] | None = None
    steps: list[StepFinished] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Marks:
    """What a lane shows.

    Attributes:
        is_exact: Each step has a mark of its own.
    """

    marks: Sequence[Mark]
    is_exact: bool


@dataclass(frozen=True, slots=True)
class TimeLine:
    """What the page shows of a run's steps.

    Attributes:
        started: How many cycles were begun.
        lanes: Label -> marks in the order of time.
        outside: Steps outside of cycles, the first of them.
        cycles: What can be shown one by one: all cycles of a short run, of a long one the first and last of each phase,
            those of findings and the first odd ones.
    """

    started: int
    lanes: Mapping[str, Marks]
    outside: Sequence[StepFinished]
    cycles: Sequence[Cycle]


def read_time_line(run: FinishedRun) -> TimeLine:
    """Read the steps of a run; of cycles that are alike one is looked at, and the times of all."""
    return _Reading(run).read()


class _Reading:
    def __init__(self, run: FinishedRun) -> None:
        self._run = run
        self._stretches = stretches_of(run.history)
        self._cut, self._table = self._stretches.cut, self._stretches.table
        self._lanes = Lanes()
        self._outside: list[StepFinished] = []
        self._spread_shapes: set[int] = set()

    def read(self) -> TimeLine:
        alone, groups = self._split()
        for at in alone:
            self._walk(at)
        for group in groups:
            self._spread(group)
        cycles = [self._cycle(at) for at in self._chosen()]
        lanes = {label: Marks(lane.marks(), lane.width_ns == 0) for label, lane in self._lanes.by_label.items()}
        for label, found in lanes.items():
            self._look_closer(label, found.marks)
        return TimeLine(self._stretches.cycles, lanes, self._outside, cycles)

    def _split(self) -> tuple[list[int], list[NDArray[Any]]]:
        """Part what is walked over, in order, from groups of cycles that are alike."""
        import numpy

        shapes = numpy.asarray(self._cut.shapes)
        alone: list[NDArray[Any]] = [numpy.flatnonzero(shapes == 0)]
        groups: list[NDArray[Any]] = []
        found, sizes = numpy.unique(shapes[shapes != 0], return_counts=True)
        looked_at = 0
        for number in numpy.argsort(sizes, kind="stable").tolist():
            group = numpy.flatnonzero(shapes == found[number])
            looked_at += len(group)
            (alone if looked_at <= _LOOKED_AT else groups).append(group)
        walked: list[int] = numpy.sort(numpy.concatenate(alone)).tolist()
        return walked, groups

    def _walk(self, at: int) -> None:
        """Look at all events of a stretch."""
        cycle: CycleStarted | None = None
        for event in self._cut.events(at):
            if isinstance(event, CycleStarted):
                cycle = event
            elif isinstance(event, CycleFinished):
                cycle = None
            elif isinstance(event, StepFinished):
                is_inside = cycle is not None and _is_of(event, cycle.phase, cycle.cycle)
                self._step(event, at - 1 if is_inside else -1)
            else:
                self._other(event)

    def _step(self, step: StepFinished, place: int) -> None:
        label, mark = _mark(step, place)
        self._lanes.of(label).add(mark)
        if place < 0 and step.position.track == "main" and len(self._outside) < _STEPS_OUTSIDE:
            self._outside.append(step)

    def _other(self, event: Event) -> None:
        if isinstance(event, TrafficSummary):
            outcome = OK if event.ok == event.count else UNMET
            text = f"{event.count} requests within a second, {event.count - event.ok} not as expected"
            mark = Mark(event.started_ns, event.t_ns, outcome, event.count, text, -1)
            self._lanes.of(f"{event.spec.label()} ({event.track})").add(mark)
        elif isinstance(event, ServerStarted | ServerStopped | ServerExited):
            self._lanes.of("tritonserver", is_always_shown=True).add(_server_mark(event))

    def _spread(self, group: NDArray[Any]) -> None:
        """Look at one of many cycles that are alike; of the others the times at which they began are known."""
        import numpy

        self._spread_shapes.add(self._cut.shapes[int(group[0])])
        places = numpy.searchsorted(numpy.asarray(self._stretches.finished), group)
        started_ns = numpy.asarray(self._table.started_ns)[places]
        shifts_ns = started_ns - started_ns[0]
        for event in self._cut.events(int(group[0])):
            if isinstance(event, StepFinished):
                label, mark = _mark(event, int(group[0]) - 1)
                lane = self._lanes.of(label)
                for at in range(0, len(group), _SPREAD_AT_ONCE):
                    some = slice(at, at + _SPREAD_AT_ONCE)
                    lane.spread(mark, shifts_ns[some], group[some] - 1)

    def _look_closer(self, label: str, marks: Sequence[Mark]) -> None:
        """Put what a cycle itself says in place of what one like it says, where a mark is about that cycle alone."""
        for mark in marks:
            at = mark.place + 1
            if at == 0 or self._cut.shapes[at] not in self._spread_shapes or (mark.count > 1 and mark.outcome != UNMET):
                continue
            steps = [event for event in self._cut.events(at) if isinstance(event, StepFinished)]
            own = [its for name, its in (_mark(step, mark.place) for step in steps) if name == label]
            same = next((its for its in own if its.outcome == mark.outcome), None)
            if same is not None:
                mark.text = same.text
                if mark.count == 1:
                    mark.start_ns, mark.end_ns = same.start_ns, same.end_ns

    def _chosen(self) -> list[int]:
        """Choose the stretches whose cycles are shown one by one."""
        import numpy

        finished, unfinished = numpy.asarray(self._stretches.finished), self._stretches.unfinished
        if len(finished) + len(unfinished) <= _FEW_CYCLES:
            return sorted([*finished.tolist(), *unfinished])
        kinds = numpy.asarray(self._table.kinds)
        chosen = set(self._of_findings())
        for numbers in _numbers_by_phase([kind.phase for kind in self._table.kind_list]):
            of_phase = finished[numpy.isin(kinds, numbers)]
            chosen.update(of_phase[:_EDGE_CYCLES].tolist(), of_phase[-_EDGE_CYCLES:].tolist())
        unmet = [number for number, kind in enumerate(self._table.kind_list) if kind.mismatch is not None]
        odd = sorted([*finished[numpy.isin(kinds, unmet)][: 2 * _ODD_CYCLES].tolist(), *unfinished])
        chosen.update([at for at in odd if at not in chosen][:_ODD_CYCLES])
        return sorted(chosen)

    def _of_findings(self) -> Iterator[int]:
        for finding in self._run.verdict.findings:
            position = finding.position
            if position is not None and position.cycle is not None and position.track == "main":
                yield from self._stretches.numbered(position.phase, position.cycle)

    def _cycle(self, at: int) -> Cycle:
        begun, faults = self._stretches.begun(at), faults_of(self._run.history).of_stretch(at)
        cycle = Cycle(begun.phase, begun.cycle, at - 1, self._stretches.place_of(at), faults)
        for event in self._cut.events(at):
            if isinstance(event, CycleFinished):
                break
            is_main = isinstance(event, StepFinished) and event.position.track == "main"
            if isinstance(event, StepFinished) and is_main and _is_of(event, begun.phase, begun.cycle):
                start, end = cycle.log or (event.log_start, event.log_end)
                cycle.log = (min(start, event.log_start), max(end, event.log_end))
                cycle.steps.append(event)
        return cycle


def _is_of(step: StepFinished, phase: str, cycle: int) -> bool:
    return (step.position.phase, step.position.cycle) == (phase, cycle)


def _mark(step: StepFinished, place: int) -> tuple[str, Mark]:
    """Return the label of a step's lane, and its mark."""
    outcome, reply = outcome_and_reply(step)
    track = "" if step.position.track == "main" else f" ({step.position.track})"
    return f"{step.spec.label()}{track}", Mark(step.started_ns, step.t_ns, outcome, 1, reply, place)


def _server_mark(event: ServerStarted | ServerStopped | ServerExited) -> Mark:
    if isinstance(event, ServerStarted):
        return Mark(event.t_ns - event.boot_ns, event.t_ns, OK, 1, f"start {event.start_number}: live", -1)
    if isinstance(event, ServerStopped):
        refused = event.forced or event.exit_timeout_expired
        text = f"stopped with {event.signal or 'no signal'}, exit code {event.exit_code}"
        return Mark(event.t_ns - event.elapsed_ns, event.t_ns, UNMET if refused else OK, 1, text, -1)
    return Mark(event.t_ns, event.t_ns, UNMET, 1, f"ended unasked, exit code {event.exit_code}", -1)


def _numbers_by_phase(phases: Sequence[str]) -> list[list[int]]:
    """Put the numbers of the kinds of each phase together."""
    return [[number for number, phase in enumerate(phases) if phase == one] for one in Counter(phases)]
