"""Everything that happened in one cycle, or between the cycles of a phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tritonchaos.observations import (
    Arm,
    CycleFinished,
    CycleStarted,
    Event,
    History,
    PhaseSkipped,
    PhaseStopped,
    Position,
    Reading,
    SettleWindow,
    StepFinished,
)
from tritonchaos.summary.stretches import stretches_of


@dataclass(slots=True)
class CycleEvents:
    """One cycle, or what a phase did outside of its cycles.

    Attributes:
        cycle: None for what lies outside cycles (`before`, `after` and `steps` blocks).
        started_ns, ended_ns: Since the run's start.
        is_finished: False for the cycle in which a run broke off.
        is_over: What comes now is no longer of it, but for what says so itself.
    """

    phase: str
    arm: Arm | None
    cycle: int | None
    started_ns: int
    ended_ns: int
    is_warm_up: bool = False
    is_finished: bool = False
    is_over: bool = False
    events: list[Event] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Add an event."""
        self.events.append(event)
        if not self.is_over:
            self.ended_ns = max(self.ended_ns, getattr(event, "t_ns", 0))
        if isinstance(event, CycleFinished):
            self.is_finished = self.is_over = True

    def steps(self, step_number: int | None = None) -> list[StepFinished]:
        """Return the steps, main track and others, in the order in which they ended."""
        steps = (event for event in self.events if isinstance(event, StepFinished))
        return [step for step in steps if step_number in (None, step.position.step_number)]

    def log_span(self) -> tuple[int, int]:
        """Return the byte offsets in server.log between which its steps ran; (0, 0) without steps."""
        steps = self.steps()
        return min((step.log_start for step in steps), default=0), max((step.log_end for step in steps), default=0)


def cycles_of(history: History, phase: str | None = None, cycle: int | None = None) -> Iterator[CycleEvents]:
    """Yield cycles in the order in which they ran, each with its events.

    Args:
        phase: Of this phase only.
        cycle: Of this number only. Nothing but these cycles is read then.
    """
    stretches = stretches_of(history)
    every = range(1, stretches.cycles + 1) if cycle is None else stretches.numbered(phase, cycle)
    for at in every:
        first, *others = stretches.cut.events(at)
        if not isinstance(first, CycleStarted) or phase not in (None, first.phase):
            continue
        found = _opened(first)
        for event in others:
            if _belongs(event, found):
                found.take(event)
            else:
                found.is_over = True
        yield found


def cycle_counts(history: History) -> dict[str, int]:
    """Count the cycles of each phase, finished or not; the phases in the order in which they ran."""
    stretches = stretches_of(history)
    counts: Counter[str] = Counter()
    for number, count in sorted(Counter(stretches.table.kinds).items()):
        counts[stretches.table.kind_list[number].phase] += count
    counts.update(stretches.begun(at).phase for at in stretches.unfinished)
    scheduled = [phase.name for phase in history.facts.phases if phase.name in counts]
    return {phase: counts[phase] for phase in dict.fromkeys([*scheduled, *counts])}


def _opened(event: CycleStarted) -> CycleEvents:
    return CycleEvents(event.phase, event.arm, event.cycle, event.t_ns, event.t_ns, event.is_warm_up)


def _belongs(event: Event, cycle: CycleEvents) -> bool:
    """Say whether an event is one of a cycle's. Tracks beside the main one count rounds of their own: time decides."""
    if isinstance(event, PhaseStopped | PhaseSkipped):
        return False
    position: Position | None = getattr(event, "position", None)
    if position is not None and position.track == "main":
        return (position.phase, position.cycle) == (cycle.phase, cycle.cycle)
    # The reading just before the next cycle says what was left of the last one.
    return not cycle.is_over or (isinstance(event, Reading) and event.name == "before_next" and cycle.is_finished)


def at_position(history: History, phase: str, cycle: int | None = None, track: str = "main") -> CycleEvents | None:
    """Return what happened at a position: outside the cycles of a phase, or in a round of a track beside them.

    Args:
        cycle: Number of the track's round; None: outside of cycles.

    Returns:
        None if nothing happened there.
    """
    found: CycleEvents | None = None
    for event in _outside_of_alike(history, lambda event: _is_at(event, phase, cycle, track)):
        t_ns = event.times_ns[-1] if isinstance(event, SettleWindow) else event.t_ns
        if found is None:
            found = CycleEvents(phase, None, cycle, getattr(event, "started_ns", t_ns), t_ns, is_finished=True)
        found.events.append(event)
        found.ended_ns = max(found.ended_ns, t_ns)
    return found


def _outside_of_alike(history: History, is_wanted: Callable[[Event], bool]) -> Iterator[Event]:
    """Yield wanted events; of stretches that are alike one is looked at, and the others if there is one in it."""
    cut = stretches_of(history).cut
    has: dict[int, bool] = {}
    for at, shape in enumerate(cut.shapes):
        if shape and not has.get(shape, True):
            continue
        found = [event for event in cut.events(at) if is_wanted(event)]
        has.setdefault(shape, bool(found))
        yield from found


def _is_at(event: Event, phase: str, cycle: int | None, track: str) -> bool:
    if isinstance(event, SettleWindow):
        return (event.phase, event.cycle, "main") == (phase, cycle, track) and bool(event.times_ns)
    position: Position | None = getattr(event, "position", None)
    return position is not None and (position.phase, position.cycle, position.track) == (phase, cycle, track)
