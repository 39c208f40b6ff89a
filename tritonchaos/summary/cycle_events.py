"""Everything that happened in one cycle, or between the cycles of a phase."""

from __future__ import annotations

from collections.abc import Iterator
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
        cycle: Of this number only.
    """
    open_cycle: CycleEvents | None = None
    for event in history.events:
        if isinstance(event, CycleStarted):
            if open_cycle is not None:
                yield open_cycle
            is_wanted = phase in (None, event.phase) and cycle in (None, event.cycle)
            open_cycle = _opened(event) if is_wanted else None
        elif open_cycle is not None and _belongs(event, open_cycle):
            open_cycle.take(event)
        elif open_cycle is not None:
            open_cycle.is_over = True
    if open_cycle is not None:
        yield open_cycle


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
    for event in history.events:
        if not _is_at(event, phase, cycle, track):
            continue
        t_ns = event.times_ns[-1] if isinstance(event, SettleWindow) else event.t_ns
        if found is None:
            found = CycleEvents(phase, None, cycle, getattr(event, "started_ns", t_ns), t_ns, is_finished=True)
        found.events.append(event)
        found.ended_ns = max(found.ended_ns, t_ns)
    return found


def _is_at(event: Event, phase: str, cycle: int | None, track: str) -> bool:
    if isinstance(event, SettleWindow):
        return (event.phase, event.cycle, "main") == (phase, cycle, track) and bool(event.times_ns)
    position: Position | None = getattr(event, "position", None)
    return position is not None and (position.phase, position.cycle, position.track) == (phase, cycle, track)
