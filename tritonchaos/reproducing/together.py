"""Which steps of a run were started together; a recorded step does not say it, but its scenario does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tritonchaos.observations import Position
from tritonchaos.scenario import Entry, Phase, RepeatEntry, Scenario, TogetherEntry
from tritonchaos.schedule import Cycle, Scheduled, ScheduledPhase, ScheduledTogether, expand

_Cycles: TypeAlias = tuple[Iterator[Cycle], list[Cycle]]


@dataclass(frozen=True, slots=True)
class Group:
    """Steps that were started together.

    Attributes:
        first: Number of the first of them.
        gap_s: How long after the one before it each was started.
    """

    first: int
    gap_s: float


class Groups:
    """Finds the group of a step of the main track by its position.

    Args:
        scenario: The scenario as run; None: nothing was started together.
    """

    def __init__(self, scenario: Scenario | None) -> None:
        grouped = {p.phase for p in scenario.phases if _has_together(p)} if scenario is not None else set()
        phases = expand(scenario).phases if scenario is not None and grouped else ()
        self._phases = {phase.name: phase for phase in phases if phase.name in grouped}
        self._cycles: dict[str, _Cycles] = {}

    def of(self, position: Position) -> Group | None:
        """The group that the step at a position was started in; None: it was started alone."""
        phase = self._phases.get(position.phase)
        if phase is None or position.track != "main":
            return None
        number, first = position.step_number, 0
        if position.cycle is None:
            steps = [*phase.before(), *phase.steps(), *phase.after()]
        else:
            steps = list(self._cycle(phase, position.cycle))
            length = max((_last(step) for step in steps), default=-1) + 1
            if phase.amplify and length:  # the cycle's steps are done several times, numbered on
                first = number - number % length
        return next((group for step in steps if (group := _group(step, number, first)) is not None), None)

    def _cycle(self, phase: ScheduledPhase, number: int) -> tuple[Scheduled, ...]:
        coming, known = self._cycles.setdefault(phase.name, (phase.cycles(), []))
        while len(known) <= number:
            following = next(coming, None)
            if following is None:
                return ()
            known.append(following)
        return known[number].steps


def _group(step: Scheduled, number: int, first: int) -> Group | None:
    if not isinstance(step, ScheduledTogether):
        return None
    numbers = [one.position.step_number + first for one in step.steps]
    return Group(numbers[0], step.gap_s) if number in numbers else None


def _last(step: Scheduled) -> int:
    steps = step.steps if isinstance(step, ScheduledTogether) else (step,)
    return max(one.position.step_number for one in steps)


def _has_together(phase: Phase) -> bool:
    arms = (phase.arms.control, phase.arms.treatment) if phase.arms is not None else ()
    lists = [phase.before, phase.each, phase.steps, phase.after]
    lists += [entries for arm in arms for entries in (arm.before, arm.each, arm.after)]
    return any(_is_together(entries) for entries in lists)


def _is_together(entries: Iterable[Entry]) -> bool:
    return any(
        isinstance(entry, TogetherEntry) or (isinstance(entry, RepeatEntry) and _is_together(entry.steps))
        for entry in entries
    )
