"""The rules that turn a staircase into LEAK or STABLE, each as one small question."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tritonchaos.growth.cleaning import CleanSeries
from tritonchaos.growth.estimate import Rate, are_irregular, gaps, growth_rate
from tritonchaos.growth.steps import FloorStep, Staircase, control_block
from tritonchaos.observations import Arm
from tritonchaos.post_unload import Channel
from tritonchaos.units import MIB

ALPHA: Final = 0.01  # chance to blame the treatment for growth that does not depend on the arm
BETA: Final = 0.01  # chance that STABLE misses a leak of the rate that it excludes
_FLAT_CYCLES: Final = 44  # a leak in 1 of 10 cycles passes 44 in a row with chance 0.9**44 = BETA
_NEED_WITH_CONTROL: Final = 8
_NEED_ALONE: Final = 24
_NEED_IRREGULAR: Final = 36
_DECELERATING_FROM: Final = 64
_SMALL_HOST_PAGES: Final = 16  # host growth below 64 KiB per cycle looks like code touched for the first time
_CAP: Final = 3  # one step counts at most as three median steps
_CONTROL_JUDGED_FROM: Final = 4  # control cycles before their own growth means anything


@dataclass(frozen=True)
class Trial:
    """Everything the rules look at, for one series up to now.

    Attributes:
        quantum: Granularity of the readings, in bytes (1 for counts).
        footprint: Bytes that a loaded model takes, if known; else 0.
        planned_share: Share of treatment cycles in coin-ordered pairs.
    """

    quantum: int
    footprint: int
    channel: Channel
    interleaved: bool
    planned_share: float
    arms: Sequence[Arm]
    series: CleanSeries
    stairs: Staircase

    @cached_property
    def steps(self) -> list[FloorStep]:
        """Steps on treatment cycles, each counting at most as three median ones."""
        return _capped(self.stairs.on(Arm.TREATMENT))

    @cached_property
    def rate(self) -> Rate | None:
        """Growth per treatment cycle."""
        return growth_rate(self.stairs.on(Arm.TREATMENT))

    @cached_property
    def block(self) -> int:
        """Control cycles before the first treatment cycle."""
        return control_block(self.arms, self.interleaved)

    @cached_property
    def end(self) -> int:
        """Clock at which growth ended, or now if a step is at most one cycle old."""
        if not self.steps:
            return self.stairs.now
        last = self.steps[-1].clock
        return last if self.stairs.now - last <= 1 else self.stairs.now

    def grown(self, begin: float, end: float) -> int:
        """Return the growth on treatment cycles in the clock interval (begin, end], in bytes."""
        return sum(step.size for step in self.steps if begin < step.clock <= end)


def _capped(steps: Sequence[FloorStep]) -> list[FloorStep]:
    if not steps:
        return []
    cap = int(_CAP * statistics.median(step.size for step in steps))
    return [FloorStep(s.cycle, s.clock, min(s.size, cap), s.arm) for s in steps]


# --- LEAK ----------------------------------------------------------------------------------------


def leak_rule(trial: Trial) -> str | None:
    """Name the rule by which the series is a leak, or None."""
    if not _goes_on_throughout(trial) or not _is_the_treatments(trial):
        return None
    if (trial.channel is Channel.HOST or trial.series.is_noisy) and (trial.rate is None or trial.rate.low <= 0):
        return None
    if _keeps_pace(trial, halves=0.75, thirds=0.6):
        if trial.stairs.now >= cycles_needed(trial):
            return "steady"
        if _outgrows_footprint(trial):
            return "footprint"
    return "decelerating" if _decelerates(trial) else None


def cycles_needed(trial: Trial) -> int:
    """Return the treatment cycles that the steady rule waits for, so that bounded growth has time to end."""
    if trial.interleaved or (_control_went_flat(trial) and not _may_be_first_touch(trial)):
        return _NEED_WITH_CONTROL
    return _NEED_IRREGULAR if are_irregular(trial.steps) else _NEED_ALONE


def steps_needed(trial: Trial) -> int:
    """Return the number of steps below which growth is not yet a pattern."""
    return 8 if are_irregular(trial.steps) else 4


def _goes_on_throughout(trial: Trial) -> bool:
    """Enough steps, some in each third, none of them most of it, and the next one not overdue."""
    steps, end = trial.steps, trial.end
    if len(steps) < steps_needed(trial):
        return False
    if any(trial.grown(end * third / 3, end * (third + 1) / 3) == 0 for third in range(3)):
        return False
    total = sum(step.size for step in steps)
    if any(2 * step.size > total for step in steps):
        return False
    return trial.stairs.now - steps[-1].clock <= 1.5 * max(gaps(steps)) + 1


def _keeps_pace(trial: Trial, halves: float, thirds: float) -> bool:
    """The second half grew by at least this share of the first, and the last third by this share of the first."""
    end = trial.end
    first_half, second_half = trial.grown(0, end / 2), trial.grown(end / 2, end)
    first_third, last_third = trial.grown(0, end / 3), trial.grown(2 * end / 3, end)
    return second_half >= halves * first_half and last_third >= thirds * first_third


def _decelerates(trial: Trial) -> bool:
    """Slows down, but after 64 cycles still grows at more than a quarter of its first rate."""
    if trial.stairs.now < _DECELERATING_FROM or len(trial.steps) < 6:
        return False
    return trial.grown(trial.end / 2, trial.end) >= 0.28 * trial.grown(0, trial.end / 2)


def _outgrows_footprint(trial: Trial) -> bool:
    """Five or more near-consecutive steps make up more than four loaded models."""
    if trial.channel is Channel.COUNT or len(trial.steps) < 5 or trial.stairs.falls:
        return False
    total = sum(step.size for step in trial.steps)
    return max(gaps(trial.steps)) <= 3 and total >= 4 * max(trial.footprint, 8 * trial.quantum, 32 * MIB)


def _is_the_treatments(trial: Trial) -> bool:
    """The control arm does not grow as the treatment arm does."""
    if trial.interleaved:
        return evidence_against_chance(trial) >= 1 / ALPHA
    if trial.rate is None or trial.block < _CONTROL_JUDGED_FROM:
        return True
    half = trial.rate.bytes_per_cycle / 2
    return control_rate(trial) < half and _final_control_rate(trial) < half


def evidence_against_chance(trial: Trial) -> float:
    """Return the e-value of "growth does not depend on the arm": a fair coin's bets on where the steps fell.

    Source: method of mixtures over the share of steps on treatment cycles (3/4, 9/10, all), bounded by Ville's
    inequality at every stopping time.
    """
    share = trial.planned_share
    on, off = len(trial.stairs.on(Arm.TREATMENT)), len(trial.stairs.on(Arm.CONTROL))
    bets = [(bet / share) ** on * ((1 - bet) / (1 - share)) ** off for bet in (0.75, 0.9, 1.0)]
    return sum(bets) / len(bets)


def control_rate(trial: Trial) -> float:
    """Return the growth per control cycle, in bytes: its later half in a block, its steps when interleaved."""
    if trial.interleaved:
        cycles = sum(arm is Arm.CONTROL for arm in trial.arms[trial.stairs.start + 1 : trial.stairs.known_to])
        return sum(step.size for step in trial.stairs.on(Arm.CONTROL)) / cycles if cycles else 0.0
    middle, last = trial.block // 2, trial.block - 1
    if last <= middle:
        return 0.0
    return (trial.series.floor[last] - trial.series.floor[middle]) / (last - middle)


def _final_control_rate(trial: Trial) -> float:
    arms = trial.arms
    last = max(at for at, arm in enumerate(arms) if arm is Arm.TREATMENT)
    cycles = trial.stairs.known_to - 1 - last
    if cycles < _CONTROL_JUDGED_FROM:
        return 0.0
    return (trial.series.floor[trial.stairs.known_to - 1] - trial.series.floor[last]) / cycles


def _control_went_flat(trial: Trial) -> bool:
    """The last three control cycles differ by no more than a believable step, or a tenth of a treatment cycle's."""
    if trial.block < 3:
        return False
    last = trial.series.smooth[trial.block - 3 : trial.block]
    limit = max(trial.series.step, trial.rate.bytes_per_cycle / 10 if trial.rate else 0)
    return max(last) - min(last) <= limit


def _may_be_first_touch(trial: Trial) -> bool:
    """Host memory also grows for a while because the failed path touches its code and heap for the first time.

    That growth is small and dies away; only large growth at an even pace is told from it within a few cycles.
    """
    if trial.channel is not Channel.HOST or trial.rate is None:
        return False
    if trial.rate.bytes_per_cycle < _SMALL_HOST_PAGES * trial.quantum:
        return True
    return not _keeps_pace(trial, halves=0.95, thirds=0.9)


# --- STABLE --------------------------------------------------------------------------------------


def flat_cycles(trial: Trial) -> int:
    """Return for how many treatment cycles, up to now, growth stayed below one believable step."""
    stairs, floor, limit = trial.stairs, trial.series.floor, trial.series.step
    top = floor[stairs.known_to - 1]
    begin = stairs.known_to - 1
    while begin > stairs.start and top - floor[begin - 1] < limit:
        begin -= 1
    return stairs.now - stairs.clock[begin]


def flat_cycles_needed(trial: Trial) -> int:
    """Return the flat treatment cycles that STABLE waits for."""
    needed = float(_FLAT_CYCLES)
    if trial.channel is not Channel.HOST:
        needed *= trial.series.step / trial.quantum
    return math.ceil(max([needed, *(2 * gap for gap in _periods(trial))]))


def _periods(trial: Trial) -> list[int]:
    """Return the gaps that might be the period of a leak.

    Host pages add up to a step every now and then: gaps count only from step to step, and where such steps at such gaps
    would be more than the rate that 44 flat cycles exclude.
    """
    between = gaps(trial.steps)
    if trial.channel is not Channel.HOST:
        return between
    excluded = trial.series.step * (1 - BETA ** (1 / _FLAT_CYCLES))
    pairs = zip(trial.steps[1:], between[1:], strict=True)
    return [gap for step, gap in pairs if step.size / gap >= excluded]


def is_stable(trial: Trial) -> bool:
    """Say whether the flat stretch up to now is long enough, and its halves agree."""
    cycles = flat_cycles(trial)
    if cycles < flat_cycles_needed(trial):
        return False
    begin = trial.stairs.now - cycles
    known = zip(trial.series.smooth[: trial.stairs.known_to], trial.stairs.clock, strict=False)
    flat = [value for value, clock in known if clock >= begin]
    middle = len(flat) // 2
    return statistics.median(flat[middle:]) - statistics.median(flat[:middle]) < trial.series.step


def excluded_rate(trial: Trial) -> float:
    """Return the smallest leak, in bytes per cycle, that the flat stretch up to now would have shown.

    A leak that hits each cycle with chance p passes g flat cycles with chance (1 - p)**g; the p at which that is 1 %,
    times the smallest step that would have been seen.
    """
    cycles = flat_cycles(trial)
    return trial.series.step * (1 - BETA ** (1 / cycles)) if cycles else math.inf
