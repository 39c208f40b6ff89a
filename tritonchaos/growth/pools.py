"""What else grows for a long time and then ends: a cache by handle, a walk up and down."""

from __future__ import annotations

import math
from typing import Final

from tritonchaos.growth.estimate import Steps
from tritonchaos.growth.trial import Trial
from tritonchaos.post_unload import Channel

_HANDLES: Final = (6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)  # sizes of a cache that are thought of
_LEAST_EVIDENCE: Final = 2.5  # natural logarithm of how much likelier an even leak must be
_SEEN_BEFORE: Final = 3  # handles that the cycles before the start have used
_GIVEN_BACK: Final = 1 / 32  # share of the growth by which readings may lie above the floor, on average
_GIVEN_BACK_ON_HOST: Final = 1 / 8  # the same where an allocator trims
_SAMPLE: Final = 64
_APART: Final = 1.5  # cycles per step from which on steps at even times are not those of a cache
_DROP: Final = 2  # cycles by which a later gap may not be shorter where growth slows down evenly


def cache_may_explain(trial: Trial) -> bool:
    """Say whether a cache of up to 64 handles, one drawn at random per cycle, explains the steps as well as a leak.

    The first use of a handle costs, so a cycle grows with chance 1 - used / handles: often at first, then ever more
    rarely. A leak grows in each cycle with the same chance. The likelihoods of the cycles that grew are compared, that
    of the cache with the number of handles that fits best.

    Source: coupon collector's problem; likelihood ratio, Neyman and Pearson 1933. A control arm that went flat, or
    coin-ordered arms, answer the question better.
    """
    if trial.has_flat_control or trial.channel is Channel.HOST or trial.loads > 1:
        return False
    steps = trial.steps
    if _come_evenly(steps) and steps.clocks[-1] >= _APART * len(steps):
        return False  # a cache begins with a step in nearly each cycle
    return _leak_likelihood(len(steps), trial.cycles) - _cache_likelihood(steps, trial.cycles) < _LEAST_EVIDENCE


def _come_evenly(steps: Steps) -> bool:
    """Say whether the gaps differ by little, the first one too, or by a cycle at most, as those of a cache do not."""
    later = steps.gaps[1:]
    return not steps.begin_irregularly or (min(later) > 1 and max(later) - min(later) <= 1)


def _leak_likelihood(grew: int, cycles: int) -> float:
    if grew >= cycles:
        return 0.0
    share = grew / cycles
    return grew * math.log(share) + (cycles - grew) * math.log(1 - share)


def _cache_likelihood(steps: Steps, cycles: int) -> float:
    fitting = [handles for handles in _HANDLES if handles > _SEEN_BEFORE + len(steps)]
    return max((_likelihood_of(handles, steps, cycles) for handles in fitting), default=-math.inf)


def _likelihood_of(handles: int, steps: Steps, cycles: int) -> float:
    total = 0.0
    for number, gap in enumerate([*steps.gaps, 1 + cycles - steps.clocks[-1]]):
        used = (_SEEN_BEFORE + number) / handles
        total += (gap - 1) * math.log(used)
        if number < len(steps):
            total += math.log(1 - used)
    return total


def wanders(trial: Trial) -> bool:
    """Say whether the readings go up and down by as much as they grow, as those of a busy co-tenant do.

    Over the last half, the mean height of the readings above the floor is more than a 32nd of all growth, and the
    falls do not come at even times, as those of a leak with a partial release in each period do. On the host, whose
    readings always scatter, only where they keep falling, and by more than an eighth.
    """
    is_host = trial.channel is Channel.HOST
    if trial.stairs.falls_evenly or (is_host and not trial.floor.falls):
        return False
    begin, end = (trial.floor.start + trial.floor.known_to) // 2, len(trial.readings)
    cycles = range(begin, end, 1 + (end - begin) // _SAMPLE)
    above = sum(trial.readings.smooth(at) - trial.level(at) for at in cycles) / len(cycles)
    return above > (_GIVEN_BACK_ON_HOST if is_host else _GIVEN_BACK) * trial.steps.total


def slows_down_evenly(steps: Steps) -> bool:
    """Say whether the gaps between steps only become longer, but for a cycle.

    Growth like a square root does so. The gaps of a cache that fills at random become longer on average only.
    """
    longest = 0
    for gap in steps.gaps[1:]:
        if gap <= longest - _DROP:
            return False
        longest = max(longest, gap)
    return True
