"""The rules for STABLE: long enough flat, or on the host, growth too slow for a leak of a page per cycle."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tritonchaos.growth.noise import median
from tritonchaos.growth.trial import Trial
from tritonchaos.post_unload import Channel

BETA: Final = 0.01  # chance that STABLE misses a leak of the rate that it excludes
_FLAT_CYCLES: Final = 44  # a leak in 1 of 10 cycles passes 44 in a row with chance 0.9**44 = BETA
_CHANCE: Final = 0.1
_BETA_OF_FLAT: Final = 0.9**44  # 0.0097
_SLOW_BETA: Final = 0.002  # the same for slow growth, which is looked at anew after each cycle: 1 % over a run
_NORMAL: Final = 2.878  # 99.8 % point of the standard normal
_BISECTIONS: Final = 40
_COUNTED_HITS: Final = 50  # hits up to which the binomial distribution is summed
_MEDIAN_OF: Final = 200  # readings at most whose median stands for a half of the flat stretch
_ONE_RISE: Final = 3  # cycles at most between the steps of a single rise
FLAT_BEFORE_DOUBLING: Final = 12  # flat cycles after which more loads per cycle would show more


def stable_rule(trial: Trial) -> str | None:
    """Name the rule by which the series is stable, or None.

    Not at a reading that lowers the floor: what it gives back, and what growth it hides, is known with the next one.
    Host readings scatter by less than a step, so that it does not matter there.
    """
    if trial.floor.is_lowered and trial.channel is not Channel.HOST:
        return None
    if _is_flat(trial):
        return "flat"
    return "slow" if _is_slow(trial) else None


def flat_cycles(trial: Trial) -> int:
    """Return for how many treatment cycles, up to now and at the present number of loads, growth was below a step."""
    begin = _flat_since(trial)
    treated = trial.readings.treated
    return max(0, treated[trial.floor.known_to - 1] - treated[begin])


def _flat_since(trial: Trial) -> int:
    begin = trial.stairs.first_within(trial.floor, trial.gate.step)
    if trial.floor.falls:
        begin = trial.stairs.first_trough(trial.floor, begin)
    return min(max(begin, trial.readings.loads_since - 1), trial.floor.known_to - 1)


def flat_cycles_needed(trial: Trial) -> int:
    """Return the flat treatment cycles that STABLE waits for."""
    needed = _FLAT_CYCLES
    if trial.channel is not Channel.HOST:
        needed = cycles_without(math.ceil(trial.gate.step / trial.quantum) - 1)
    return math.ceil(max(needed, 1.5 * _longest_period(trial)))


@lru_cache(maxsize=64)
def cycles_without(hits: int) -> int:
    """Return the cycles in which a leak that hits one in ten of them has more hits than so many, but for BETA."""
    cycles = _FLAT_CYCLES
    while _at_most(hits, cycles, _CHANCE) > _BETA_OF_FLAT:
        cycles += 1
    return cycles


# --- flat ----------------------------------------------------------------------------------------


def _longest_period(trial: Trial) -> float:
    """Return the longest gap, in cycles, that might be the period of a leak.

    Host pages add up to a step every now and then: gaps between steps count only from step to step, and where such
    steps at such gaps would be more than the rate that 44 flat cycles exclude. Rises of a whole step at once always do.

    Elsewhere the time before the first step counts as a gap too, but not before a single rise, in one step or in some
    that follow each other: when it came says nothing of a period, and 44 flat cycles exclude what they exclude after
    any step.
    """
    gaps = trial.steps.gaps
    if trial.channel is not Channel.HOST:
        between = max(gaps[1:], default=0) / trial.loads
        return between if between <= _ONE_RISE else max(gaps) / trial.loads
    excluded = trial.gate.step * (1 - BETA ** (1 / _FLAT_CYCLES))
    later = zip(trial.steps.sizes[1:], gaps[1:], strict=True)
    longest = max((gap for size, gap in later if size / gap >= excluded), default=0) / trial.loads
    return max(longest, trial.stairs.longest_between_jumps(trial.floor))


def _is_flat(trial: Trial) -> bool:
    """Say whether the flat stretch up to now is long enough, and its halves agree."""
    cycles = flat_cycles(trial)
    if cycles < _FLAT_CYCLES or cycles < flat_cycles_needed(trial):
        return False
    return _halves_agree(trial, _flat_since(trial), trial.floor.known_to)


def _halves_agree(trial: Trial, begin: int, end: int) -> bool:
    """Say whether the second half of a flat stretch lies no higher than the first, by a step.

    The floor alone may be held down by a few low readings. The medians say so; or, where another process comes and
    goes, the low and the highest readings, which growth would lift, both of them.
    """
    middle, step = (begin + end) // 2, trial.gate.step
    first, second = _sample(trial, begin, middle), _sample(trial, middle, end)
    if median(second) - median(first) < step:
        return True
    return _low(second) - _low(first) < step and max(second) - max(first) < step


def _sample(trial: Trial, begin: int, end: int) -> list[int]:
    apart = 1 + (end - begin) // _MEDIAN_OF
    return [trial.readings.smooth(at) for at in range(begin, end, apart)]


def _low(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 4]


# --- slow ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LateGrowth:
    """How the floor rose over the last half of the treatment cycles, but at least 44.

    Attributes:
        cycles: Number of those treatment cycles.
        grown: Rise of the floor over them, in bytes.
        begin: The cycle before the first of them.
    """

    cycles: int
    grown: int
    begin: int


def late_growth(trial: Trial) -> LateGrowth:
    """Return how the floor rose lately."""
    floor, treated = trial.floor, trial.readings.treated
    base, end = treated[floor.start], floor.known_to - 1
    begin = max(trial.cycles - max(_FLAT_CYCLES, trial.cycles // 2), 0)
    first = max(bisect_right(treated, base + begin, 0, end + 1), floor.start + 1) - 1
    first = max(first, trial.readings.loads_since - 1)
    if end <= first:
        return LateGrowth(0, 0, first)
    return LateGrowth(treated[end] - treated[first], floor.top - trial.level(first), first)


def _is_slow(trial: Trial) -> bool:
    """Say whether what the host still grows by is too little for a leak of one page per cycle.

    An allocator touches single pages for the first time long after it is warm (Triton 2.51: 4 to 12 KiB at a time, 90
    KiB over the 250 cycles after the first eight), so that 44 cycles without a step may not come within a run. What
    must not be there is a single rise of a whole step: a rare leak of large blocks is only excluded by its absence.
    """
    if trial.channel is not Channel.HOST or trial.floor.falls or trial.cycles < _FLAT_CYCLES:
        return False
    late = late_growth(trial)
    if late.cycles < _FLAT_CYCLES or late.grown >= late.cycles * trial.quantum:
        return False
    if trial.stairs.last_jump(trial.floor) > late.begin:
        return False
    return _excluded_by_slow_growth(trial.gate.step, late) < trial.quantum


def _excluded_by_slow_growth(step: float, late: LateGrowth) -> float:
    """Return the smallest leak that the growth of the last half excludes, in bytes per cycle.

    A leak of blocks of b bytes with chance p per cycle was hit at most grown / b times. Its rate is p * b, p at most
    the upper 99.8 % limit of Clopper and Pearson for so many hits; the worst b up to a step is either a step or the
    largest for which one more hit fits.
    """
    if late.cycles == 0:
        return math.inf
    hits = int(late.grown // step)
    whole = step * _highest_chance(hits, late.cycles)
    return max(whole, late.grown / (hits + 1) * _highest_chance(hits + 1, late.cycles))


@lru_cache(maxsize=64)
def _highest_chance(hits: int, cycles: int) -> float:
    """Return the chance per cycle at which so few hits in so many cycles are unlikely (Clopper and Pearson 1934)."""
    if hits >= cycles:
        return 1.0
    if hits > _COUNTED_HITS:  # normal approximation, one hit to the safe side
        share = (hits + 1) / cycles
        return min(1.0, share + _NORMAL * math.sqrt(share * (1 - share) / cycles) + _NORMAL**2 / cycles)
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


# --- what is excluded ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exclusion:
    """What the readings up to now exclude, in a form that is cheap to keep and slow to work out.

    Attributes:
        step: Smallest step that would have been seen, in bytes.
        flat: Flat treatment cycles.
        loads: Loads of each of them.
        late: Late growth, on the host.
    """

    step: float
    flat: int
    loads: int
    late: LateGrowth | None

    def bytes_per_cycle(self) -> float:
        """Return the smallest leak that would have been found (99 %), in bytes per load; infinite: none is excluded.

        A leak that hits each cycle with chance p passes g flat cycles with chance (1 - p)**g; the p at which that is
        1 %, times the smallest step that would have been seen.
        """
        flat = self.step * (1 - BETA ** (1 / self.flat)) if self.flat else math.inf
        slow = _excluded_by_slow_growth(self.step, self.late) if self.late else math.inf
        return min(flat, slow) / self.loads


def exclusion(trial: Trial) -> Exclusion:
    """Return what the readings up to now exclude."""
    late = late_growth(trial) if trial.channel is Channel.HOST else None
    return Exclusion(trial.gate.step, flat_cycles(trial), trial.loads, late)
