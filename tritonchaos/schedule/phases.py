"""Phases of a schedule, their cycles and the tracks beside them; made one by one as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tritonchaos.observations import Arm, Position
from tritonchaos.scenario import ArmSteps, Entry, Phase, RepeatEntry, StepEntry, TrackEntry
from tritonchaos.schedule.numbering import MAIN_TRACK, Place, Scheduled, ScheduledStep, count_steps, plain, random_of

_COIN_TRACK: Final = "coin"


@dataclass(frozen=True, slots=True)
class Cycle:
    """One round of a phase.

    Attributes:
        number: From 0 within the phase, over both arms, warm-up cycles first.
        steps: In coin-ordered pairs these begin with the other arm's `after` and this arm's `before` where the arm
            changes.
        repeats: How many times the steps of `each` are in `steps`.
    """

    number: int
    arm: Arm
    is_warm_up: bool
    steps: tuple[Scheduled, ...]
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class ScheduledTrack:
    """Steps that are repeated beside the main track; `entry` says by how many workers, how often and how long."""

    name: str
    entry: TrackEntry
    phase: str
    arm: Arm | None
    seed: int

    def iteration(self, number: int) -> tuple[Scheduled, ...]:
        """Steps of one round, counted from 0; the round stands in `Position.cycle`."""
        place = Place(self.seed, self.phase, self.arm, number, self.name, number)
        return tuple(place.steps(self.entry.each))


@dataclass(frozen=True, slots=True)
class ScheduledPhase:
    """One phase of the schedule.

    Attributes:
        kind: "cycles", or "steps" for plain steps once.
        arm: None for plain steps and for coin-ordered pairs.
        when: The phase is run only after this was seen.
        at_least, at_most: Judged cycles; in coin-ordered pairs, treatment cycles. 0 for plain steps.
        until: What can end the cycles before `at_most`.
        warm_up_cycles: Cycles in front that are not judged; in coin-ordered pairs over both arms.
        amplify: Measured cycles may do their steps more than once before they are read.
        fresh, fresh_cycle: Restart of the server before the phase, and before each of its cycles.
    """

    name: str
    kind: Literal["cycles", "steps"]
    arm: Arm | None
    when: Literal["leak", "crash", "hang"] | None
    at_least: int
    at_most: int
    until: Literal["verdict", "flat"] | None
    warm_up_cycles: int
    tracks: tuple[ScheduledTrack, ...]
    seed: int
    phase: Phase
    amplify: bool = False
    fresh: StepEntry | None = None
    fresh_cycle: StepEntry | None = None

    def restart(self) -> Iterator[ScheduledStep]:
        """The restart of the server that comes before all else (tracks too), or nothing."""
        entries = [self.fresh] if self.fresh is not None else []
        return (step for step in plain(self._place(self.arm).steps(entries)))

    def before(self) -> Iterator[Scheduled]:
        """Steps once before the first cycle; coin-ordered pairs have them in their cycles."""
        return self._place(self.arm).steps(self.phase.before, self._first())

    def steps(self) -> Iterator[Scheduled]:
        """Steps of a phase of plain steps."""
        return self._place(None).steps(self.phase.steps, self._first())

    def after(self, last_arm: Arm | None = None) -> Iterator[Scheduled]:
        """Steps once after the last cycle; their numbers go on from those of `before`.

        Args:
            last_arm: In coin-ordered pairs, the arm of the last cycle that was run; None: all cycles were run.
        """
        if self.phase.arms is None:
            return self._place(self.arm).steps(self.phase.after, self._first() + count_steps(self.phase.before))
        arm = last_arm or self._arm_of(self.warm_up_cycles + 2 * self.at_most - 1)
        return self._place(arm).steps(self._of(arm).after)

    def cycles(self, repeats: Callable[[], int] = lambda: 1) -> Iterator[Cycle]:
        """All cycles that may be run, made one by one.

        Args:
            repeats: Says before each measured cycle how many times its steps are to be done; the two cycles of a
                coin-ordered pair do them equally often.
        """
        if self.kind == "steps":
            return
        arms = 1 if self.phase.arms is None else 2
        previous: Arm | None = None
        times = 1
        for number in range(self.warm_up_cycles + arms * self.at_most):
            arm = self._arm_of(number)
            is_warm_up = number < self.warm_up_cycles
            if not is_warm_up and (number - self.warm_up_cycles) % arms == 0:
                times = repeats()
            entries = self._entries(arm, previous, times)
            steps = tuple(self._place(arm, number).steps(entries))
            yield Cycle(number, arm, is_warm_up, steps, times)
            previous = arm

    def is_last(self, cycle: Cycle) -> bool:
        """Say whether no cycle can come after this one."""
        return cycle.number + 1 >= self.warm_up_cycles + self.at_most * (1 if self.phase.arms is None else 2)

    def _place(self, arm: Arm | None, cycle: int | None = None) -> Place:
        return Place(self.seed, self.name, arm, cycle, MAIN_TRACK, self._turn(cycle))

    def _first(self) -> int:
        return 0 if self.fresh is None else 1

    def _turn(self, cycle: int | None) -> int | None:
        """Number of a cycle among those of its arm, from 0; warm-up cycles are counted apart."""
        if cycle is None:
            return None
        counted = cycle if cycle < self.warm_up_cycles else cycle - self.warm_up_cycles
        return counted if self.phase.arms is None else counted // 2

    def _entries(self, arm: Arm, previous: Arm | None, times: int) -> Sequence[Entry]:
        fresh = () if self.fresh_cycle is None else (self.fresh_cycle,)
        if self.phase.arms is None:
            return (*fresh, *_repeated(self.phase.each, times))
        own = self._of(arm)
        each = _repeated(own.each, times)
        if arm is previous:
            return (*fresh, *each)
        left = self._of(previous).after if previous is not None else ()
        return (*left, *fresh, *own.before, *each)

    def _of(self, arm: Arm) -> ArmSteps:
        assert self.phase.arms is not None
        return self.phase.arms.control if arm is Arm.CONTROL else self.phase.arms.treatment

    def _arm_of(self, number: int) -> Arm:
        """Arm of a cycle: the phase's own, or in pairs the warm-up cycles by turns and then as the coin says."""
        if self.arm is not None:
            return self.arm
        if number < self.warm_up_cycles:
            return (Arm.CONTROL, Arm.TREATMENT)[number % 2]
        is_second = (number - self.warm_up_cycles) % 2
        coin = Position(self.name, None, number - is_second, _COIN_TRACK, 0)
        control_first = random_of(self.seed, coin).random() < 0.5
        return Arm.CONTROL if control_first is not bool(is_second) else Arm.TREATMENT


def _repeated(each: tuple[Entry, ...], times: int) -> tuple[Entry, ...]:
    return each if times == 1 else (RepeatEntry(times, each),)


@dataclass(frozen=True, slots=True)
class Schedule:
    """All phases of a scenario, in order."""

    scenario: str
    seed: int
    phases: tuple[ScheduledPhase, ...]
