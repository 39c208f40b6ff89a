"""The rules for STABLE: long enough flat, or on the host, growth too slow for a leak of a page per cycle."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise
from typing import Final

from tritonchaos.growth.estimate import gaps
from tritonchaos.growth.trial import Trial
from tritonchaos.post_unload import Channel

BETA: Final = 0.01  # chance that STABLE misses a leak of the rate that it excludes
_FLAT_CYCLES: Final = 44  # a leak in 1 of 10 cycles passes 44 in a row with chance 0.9**44 = BETA
_SLOW_BETA: Final = 0.002  # the same for slow growth, which is looked at anew after each cycle: 1 % over a run
_BISECTIONS: Final = 40
FLAT_BEFORE_DOUBLING: Final = 12  # flat cycles after which more loads per cycle would show more


def stable_rule(trial: Trial) -> str | None:
    """Name the rule by which the series is stable, or None."""
    if _is_flat(trial):
        return "flat"
    return "slow" if _is_slow(trial) else None


def flat_cycles(trial: Trial) -> int:
    """Return for how many treatment cycles, up to now and at the present number of loads, growth was below a step."""
    stairs, floor, limit = trial.stairs, trial.series.floor, trial.series.step
    top = floor[stairs.known_to - 1]
    begin = stairs.known_to - 1
    while begin > stairs.start and top - floor[begin - 1] < limit:
        begin -= 1
    present = stairs.loads[stairs.known_to - 1]
    while begin < stairs.known_to - 1 and stairs.loads[begin + 1] != present:
        begin += 1
    return (stairs.now - stairs.clock[begin]) // present


def flat_cycles_needed(trial: Trial) -> int:
    """Return the flat treatment cycles that STABLE waits for."""
    needed = float(_FLAT_CYCLES)
    if trial.channel is not Channel.HOST:
        needed *= trial.series.step / trial.quantum
    return math.ceil(max([needed, *(2 * gap for gap in _periods(trial))]))


def excluded_rate(trial: Trial) -> float:
    """Return the smallest leak, in bytes per cycle, that the readings up to now would have shown."""
    flat = _excluded_by_flat_cycles(trial)
    return min(flat, _excluded_by_slow_growth(trial)) if trial.channel is Channel.HOST else flat


# --- flat ----------------------------------------------------------------------------------------


def _periods(trial: Trial) -> list[int]:
    """Return the gaps that might be the period of a leak.

    Host pages add up to a step every now and then: gaps between steps count only from step to step, and where such
    steps at such gaps would be more than the rate that 44 flat cycles exclude. Rises of a whole step at once always do.
    """
    loads = trial.stairs.loads[trial.stairs.known_to - 1]
    between = [max(gap // loads, 1) for gap in gaps(trial.steps)]
    if trial.channel is not Channel.HOST:
        return between
    excluded = trial.series.step * (1 - BETA ** (1 / _FLAT_CYCLES))
    pairs = zip(trial.steps[1:], between[1:], strict=True)
    return [*_gaps_between_jumps(trial), *(gap for step, gap in pairs if step.size / gap >= excluded)]


def _gaps_between_jumps(trial: Trial) -> list[int]:
    floor, stairs = trial.series.floor, trial.stairs
    cycles = range(stairs.start + 1, stairs.known_to)
    jumps = [0, *(stairs.clock[at] for at in cycles if floor[at] - floor[at - 1] >= trial.series.step)]
    return [after - before for before, after in pairwise(jumps)]


def _is_flat(trial: Trial) -> bool:
    """Say whether the flat stretch up to now is long enough, and its halves agree."""
    cycles = flat_cycles(trial)
    if cycles < flat_cycles_needed(trial):
        return False
    begin = trial.stairs.now - cycles * trial.stairs.loads[trial.stairs.known_to - 1]
    known = zip(trial.series.smooth[: trial.stairs.known_to], trial.stairs.clock, strict=False)
    flat = [value for value, clock in known if clock >= begin]
    middle = len(flat) // 2
    return statistics.median(flat[middle:]) - statistics.median(flat[:middle]) < trial.series.step


def _excluded_by_flat_cycles(trial: Trial) -> float:
    """Return the smallest leak that the flat stretch excludes, in bytes per cycle.

    A leak that hits each cycle with chance p passes g flat cycles with chance (1 - p)**g; the p at which that is 1 %,
    times the smallest step that would have been seen.
    """
    cycles = flat_cycles(trial)
    loads = trial.stairs.loads[trial.stairs.known_to - 1]
    return trial.series.step * (1 - BETA ** (1 / cycles)) / loads if cycles else math.inf


# --- slow ----------------------------------------------------------------------------------------


def _is_slow(trial: Trial) -> bool:
    """Say whether what the host still grows by is too little for a leak of one page per cycle.

    An allocator touches single pages for the first time long after it is warm (Triton 2.51: 4 to 12 KiB at a time, 90
    KiB over the 250 cycles after the first eight), so that 44 cycles without a step may not come within a run. What
    must not be there is a single rise of a whole step: a rare leak of large blocks is only excluded by its absence.
    """
    if trial.channel is not Channel.HOST or trial.stairs.falls:
        return False
    rises = _last_rises(trial)
    if sum(is_treatment for is_treatment, _ in rises) < _FLAT_CYCLES:
        return False
    if any(rise >= trial.series.step for _, rise in rises):
        return False
    return _excluded_by_slow_growth(trial) < trial.quantum


def _last_rises(trial: Trial) -> list[tuple[bool, int]]:
    """Return (on a treatment cycle, rise of the floor in bytes) over the last half of the cycles, but at least 44."""
    stairs, floor = trial.stairs, trial.series.floor
    begin = stairs.now - max(_FLAT_CYCLES, stairs.now // 2)
    cycles = range(stairs.start + 1, stairs.known_to)
    return [
        (stairs.clock[at] > stairs.clock[at - 1], floor[at] - floor[at - 1])
        for at in cycles
        if stairs.clock[at] > max(begin, 0)
    ]


def _excluded_by_slow_growth(trial: Trial) -> float:
    """Return the smallest leak that the growth of the last half excludes, in bytes per cycle.

    A leak of blocks of b bytes with chance p per cycle was hit at most grown / b times. Its rate is p * b, p at most
    the upper 99.8 % limit of Clopper and Pearson for so many hits; the worst b up to a step is either a step or the
    largest for which one more hit fits.
    """
    rises = _last_rises(trial)
    cycles, grown = sum(is_treatment for is_treatment, _ in rises), sum(rise for _, rise in rises)
    if cycles == 0:
        return math.inf
    hits = int(grown // trial.series.step)
    whole = trial.series.step * _highest_chance(hits, cycles)
    return max(whole, grown / (hits + 1) * _highest_chance(hits + 1, cycles))


def _highest_chance(hits: int, cycles: int) -> float:
    """Return the chance per cycle at which so few hits in so many cycles are unlikely (Clopper and Pearson 1934)."""
    if hits >= cycles:
        return 1.0
    low, high = hits / cycles, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _at_most(hits, cycles, middle) > _SLOW_BETA:
            low = middle
        else:
            high = middle
    return high


def _at_most(hits: int, cycles: int, chance: float) -> float:
    """Return the probability of at most so many hits."""
    return sum(math.comb(cycles, k) * chance**k * (1 - chance) ** (cycles - k) for k in range(hits + 1))
