"""Every step on a time line, and the steps of the cycles that the page can show one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

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
from tritonchaos.observations.following import of_kinds
from tritonchaos.summary import FinishedRun
from tritonchaos.summary.faults import FaultFollower

KINDS: Final = (
    StepFinished,
    CycleStarted,
    CycleFinished,
    TrafficSummary,
    ServerStarted,
    ServerStopped,
    ServerExited,
)
_LANES: Final = 24
_MARKS: Final = 600
_STEPS: Final = 4000
_EDGE_CYCLES: Final = 40
_ODD_CYCLES: Final = 200


@dataclass(slots=True)
class Mark:
    """One or more steps of a lane.

    Attributes:
        outcome: OK, REFUSED (as expected) or UNMET, the worst of them.
        count: How many steps.
        place: Cycle of the worst of them, as a number among all cycles that were started; -1 outside cycles.
    """

    start_ns: int
    end_ns: int
    outcome: int
    count: int
    text: str
    place: int

    def take(self, other: Mark) -> None:
        """Put a later one into this one."""
        if other.outcome > self.outcome:
            self.outcome, self.text, self.place = other.outcome, other.text, other.place
        self.end_ns = max(self.end_ns, other.end_ns)
        self.count += other.count


@dataclass(slots=True)
class _Lane:
    """Marks of one kind of step; when there are too many, neighbours in time are put together."""

    marks: list[Mark] = field(default_factory=list)
    width_ns: int = 0

    def add(self, mark: Mark) -> None:
        last = self.marks[-1] if self.marks else None
        if last is not None and self.width_ns and mark.end_ns - last.start_ns <= self.width_ns:
            last.take(mark)
            return
        self.marks.append(mark)
        if len(self.marks) > 2 * _MARKS:
            self._coarsen()

    def _coarsen(self) -> None:
        span = self.marks[-1].end_ns - self.marks[0].start_ns
        self.width_ns = max(2 * self.width_ns, 2 * span // _MARKS)
        marks, self.marks = self.marks, []
        for mark in marks:
            last = self.marks[-1] if self.marks else None
            if last is not None and mark.end_ns - last.start_ns <= self.width_ns:
                last.take(mark)
            else:
                self.marks.append(mark)


@dataclass(slots=True)
class Cycle:
    """A cycle that was begun, with its steps on the main track.

    Attributes:
        place: Its number among all that were begun.
        at: Its number among the finished ones; -1: it was not finished.
        is_odd: One of its steps was not as expected.
        log: Byte offsets in server.log of what was logged during its steps.
    """

    phase: str
    number: int
    place: int
    at: int = -1
    faults: tuple[str, ...] = ()
    is_odd: bool = False
    log: tuple[int, int] | None = None
    steps: list[StepFinished] = field(default_factory=list)


class TimeLine:
    """Takes all events of a run once.

    Attributes:
        cycles: What can be shown one by one: all cycles of a short run, of a long one the first and last of each phase,
            those of findings and the first odd ones.
        started: How many cycles were begun.
        faults: Which edits were in force.
    """

    def __init__(self, run: FinishedRun) -> None:
        self.started = self._finished = 0
        self.faults = FaultFollower()
        self.lanes: dict[str, _Lane] = {}
        self.outside: list[StepFinished] = []
        self.cycles: list[Cycle] = []
        self._wanted = {(f.position.phase, f.position.cycle) for f in run.verdict.findings if f.position}
        self._open: Cycle | None = None
        self._keep_all = sum(count.cycles + count.warm_up for count in run.counts) <= _STEPS // 4
        self._of_phase: dict[str, int] = {}
        self._tail: dict[str, list[Cycle]] = {}
        self._odd = 0

    def see(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, CycleStarted):
            self._close()
        self.faults.see(event)
        if isinstance(event, StepFinished):
            self._see_step(event)
        elif isinstance(event, CycleStarted):
            self._open = Cycle(event.phase, event.cycle, self.started)
            self.started += 1
        elif isinstance(event, CycleFinished) and self._open is not None:
            self._open.at = self._finished
            self._finished += 1
            self._close()
        elif isinstance(event, TrafficSummary):
            self._see_traffic(event)
        elif isinstance(event, ServerStarted | ServerStopped | ServerExited):
            self._see_server(event)

    def finish(self) -> None:
        """Say that there are no more events."""
        self._close()
        for kept in self._tail.values():
            self.cycles += kept
        self.cycles.sort(key=lambda cycle: cycle.place)

    def _lane(self, label: str) -> _Lane:
        if label not in self.lanes and len(self.lanes) >= _LANES:
            label = "other steps"
        return self.lanes.setdefault(label, _Lane())

    def _see_step(self, step: StepFinished) -> None:
        at, cycle = step.position, self._open
        inside = cycle is not None and (at.phase, at.cycle) == (cycle.phase, cycle.number)
        outcome, reply = outcome_and_reply(step)
        label = step.spec.label() if at.track == "main" else f"{step.spec.label()} ({at.track})"
        place = cycle.place if inside and cycle else -1
        self._lane(label).add(Mark(step.started_ns, step.t_ns, outcome, 1, reply, place))
        if at.track != "main":
            return
        if inside and cycle:
            cycle.is_odd |= outcome == UNMET
            cycle.steps.append(step)
            start, end = cycle.log or (step.log_start, step.log_end)
            cycle.log = (min(start, step.log_start), max(end, step.log_end))
        elif len(self.outside) < _STEPS // 4:
            self.outside.append(step)

    def _see_traffic(self, event: TrafficSummary) -> None:
        outcome = OK if event.ok == event.count else UNMET
        text = f"{event.count} requests within a second, {event.count - event.ok} not as expected"
        mark = Mark(event.started_ns, event.t_ns, outcome, event.count, text, -1)
        self._lane(f"{event.spec.label()} ({event.track})").add(mark)

    def _see_server(self, event: ServerStarted | ServerStopped | ServerExited) -> None:
        if isinstance(event, ServerStarted):
            mark = Mark(event.t_ns - event.boot_ns, event.t_ns, OK, 1, f"start {event.start_number}: live", -1)
        elif isinstance(event, ServerStopped):
            refused = event.forced or event.exit_timeout_expired
            text = f"stopped with {event.signal or 'no signal'}, exit code {event.exit_code}"
            mark = Mark(event.t_ns - event.elapsed_ns, event.t_ns, UNMET if refused else OK, 1, text, -1)
        else:
            mark = Mark(event.t_ns, event.t_ns, UNMET, 1, f"ended unasked, exit code {event.exit_code}", -1)
        self.lanes.setdefault("tritonserver", _Lane()).add(mark)

    def _close(self) -> None:
        cycle, self._open = self._open, None
        if cycle is None:
            return
        cycle.faults = self.faults.in_cycle
        number = self._of_phase[cycle.phase] = self._of_phase.get(cycle.phase, 0) + 1
        if self._keep_all or number <= _EDGE_CYCLES or (cycle.phase, cycle.number) in self._wanted:
            self.cycles.append(cycle)
        elif self._is_odd(cycle):
            self._odd += 1
            self.cycles.append(cycle)
        else:
            tail = self._tail.setdefault(cycle.phase, [])
            tail.append(cycle)
            del tail[:-_EDGE_CYCLES]

    def _is_odd(self, cycle: Cycle) -> bool:
        if self._odd >= _ODD_CYCLES:
            return False
        return cycle.at < 0 or cycle.is_odd


def read_time_line(run: FinishedRun) -> TimeLine:
    """Walk the events of a run."""
    line = TimeLine(run)
    for event in of_kinds(run.history.events, KINDS):
        line.see(event)
    line.finish()
    return line
