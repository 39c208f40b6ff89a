"""Steps at their positions: how a list of entries is numbered, with `repeat`, `together` and `every`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeAlias

from tritonchaos.observations import Arm, Position, StepSpec
from tritonchaos.scenario import Entry, RepeatEntry, StepEntry, TogetherEntry

MAIN_TRACK: Final = "main"


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """A step at its position, with what is expected of it."""

    position: Position
    step: Any
    spec: StepSpec
    seed: int

    def random(self) -> Random:
        """Random numbers of this very step: the same in each run with this seed, whatever ran before."""
        return random_of(self.seed, self.position)


@dataclass(frozen=True, slots=True)
class ScheduledTogether:
    """Steps that are started at the same moment, or each `gap_s` after the one before it, without waiting for any."""

    steps: tuple[ScheduledStep, ...]
    gap_s: float


Scheduled: TypeAlias = ScheduledStep | ScheduledTogether


def plain(steps: Iterable[Scheduled]) -> Iterator[ScheduledStep]:
    """The steps themselves, those that are started together one by one."""
    for scheduled in steps:
        if isinstance(scheduled, ScheduledTogether):
            yield from scheduled.steps
        else:
            yield scheduled


@dataclass(frozen=True, slots=True)
class Place:
    """A cycle or block that steps are numbered in.

    Attributes:
        turn: What `every` counts, from 0; None outside cycles.
    """

    seed: int
    phase: str
    arm: Arm | None
    cycle: int | None
    track: str
    turn: int | None = None

    def steps(self, entries: Iterable[Entry], first: int = 0) -> Iterator[Scheduled]:
        """Number the steps; those that `every` leaves out keep their numbers, so that the others have theirs."""
        number = first
        for entry in entries:
            count = count_steps([entry])
            if self.turn is None or (self.turn + 1) % entry.every == 0:
                yield from self._expanded(entry, number)
            number += count

    def _expanded(self, entry: Entry, number: int) -> Iterator[Scheduled]:
        if isinstance(entry, RepeatEntry):
            length = count_steps(entry.steps)
            for time in range(entry.times):
                yield from self.steps(entry.steps, number + time * length)
        elif isinstance(entry, TogetherEntry):
            yield ScheduledTogether(tuple(plain(self.steps(entry.steps, number))), entry.gap_s)
        else:
            position = Position(self.phase, self.arm, self.cycle, self.track, number)
            yield ScheduledStep(position, entry.step, entry.spec, self.seed)


def count_steps(entries: Iterable[Entry]) -> int:
    """Count the steps of a list with every `repeat` written out."""
    return sum(_size_of(entry) for entry in entries)


def _size_of(entry: Entry) -> int:
    if isinstance(entry, StepEntry):
        return 1
    return count_steps(entry.steps) * (entry.times if isinstance(entry, RepeatEntry) else 1)


def random_of(seed: int, position: Position) -> Random:
    """Random numbers that belong to a position."""
    at = position
    return Random(f"{seed}/{at.phase}/{at.track}/{at.cycle}/{at.step_number}")
