"""Finds the steps of a clean series: when the floor rose, on which arm, by how much, and up to where that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from tritonchaos.growth.cleaning import CleanSeries
from tritonchaos.observations import Arm

_SINGLE_ARM_START: Final = 2  # the first cycles of a series hold what is set up once


@dataclass(frozen=True, slots=True)
class FloorStep:
    """The floor rose at a cycle.

    Attributes:
        cycle: Index in the series.
        clock: Loads on treatment cycles since the start of the series, this cycle's included.
        size: Rise above the level of the step before, in bytes.
        arm: Arm of that cycle.
    """

    cycle: int
    clock: int
    size: int
    arm: Arm


@dataclass(frozen=True, slots=True)
class Staircase:
    """The steps of a series, in order.

    Attributes:
        start: Index of the cycle from whose level growth is counted.
        known_to: Number of cycles whose floor is trusted.
        clock: Loads on treatment cycles since the start up to each cycle, shape [cycles].
        loads: Loads of each cycle, shape [cycles].
        steps: Believed steps on both arms.
        falls: Number of believed falls, when they make a sawtooth; else 0.
    """

    start: int
    known_to: int
    clock: tuple[int, ...]
    loads: Sequence[int]
    steps: tuple[FloorStep, ...]
    falls: int

    @property
    def now(self) -> int:
        """Loads on treatment cycles from the start to the last trusted cycle."""
        return self.clock[self.known_to - 1] if self.known_to > self.start else 0

    def on(self, arm: Arm) -> list[FloorStep]:
        """Return the steps that happened on one arm's cycles."""
        return [step for step in self.steps if step.arm is arm]


def control_block(arms: Sequence[Arm], interleaved: bool) -> int:
    """Return the number of control cycles before the first treatment cycle; 0 where the arms are interleaved."""
    if interleaved or Arm.TREATMENT not in arms:
        return 0
    return arms.index(Arm.TREATMENT)


def find_steps(series: CleanSeries, arms: Sequence[Arm], loads: Sequence[int], interleaved: bool) -> Staircase:
    """Find where the floor rose.

    Growth counts from the third cycle of a series, or from the second treatment cycle after a control block: what is
    set up once by the first cycles is no leak.

    Args:
        arms: Arm of each cycle, shape [cycles].
        loads: Loads of each cycle, shape [cycles].
        interleaved: Control and treatment cycles alternate in coin-ordered pairs.
    """
    block = control_block(arms, interleaved)
    start = min(block + 1 if block else _SINGLE_ARM_START, len(arms) - 1)
    counts = (arm is Arm.TREATMENT and at > start for at, arm in enumerate(arms))
    clock = tuple(accumulate(load * counted for load, counted in zip(loads, counts, strict=True)))
    falls = _falls(series, start)
    known_to = falls[-1] if falls else max(len(arms) - series.tail, start + 1)
    return Staircase(
        start=start,
        known_to=known_to,
        clock=clock,
        loads=loads,
        steps=tuple(_rises(series, arms, clock, start, known_to)),
        falls=len(falls),
    )


def _rises(
    series: CleanSeries, arms: Sequence[Arm], clock: Sequence[int], start: int, known_to: int
) -> list[FloorStep]:
    level = series.floor[start]
    steps = []
    for at in range(start + 1, known_to):
        if series.floor[at] - level >= series.step:
            steps.append(FloorStep(at, clock[at], series.floor[at] - level, arms[at]))
            level = series.floor[at]
    return steps


def _falls(series: CleanSeries, start: int) -> list[int]:
    """Return where the readings fell, if they keep falling: two falls or more, and the next is not overdue."""
    smooth = series.smooth
    falls = [at for at in range(start + 1, len(smooth)) if smooth[at - 1] - smooth[at] >= series.step]
    if len(falls) < 2:
        return []
    longest = max(after - before for before, after in zip([start, *falls], falls, strict=False))
    return falls if len(smooth) - 1 - falls[-1] <= 2 * longest else []
