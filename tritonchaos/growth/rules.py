"""The rules that turn a staircase into LEAK, each as one small question."""

from __future__ import annotations

from typing import Final

from tritonchaos.growth import allocator
from tritonchaos.growth.arms import is_the_treatments
from tritonchaos.growth.pools import cache_may_explain, slows_down_evenly, wanders
from tritonchaos.growth.trial import Trial
from tritonchaos.post_unload import Channel
from tritonchaos.units import MIB

_LEAST_STEPS: Final = 4
_NEED_WITH_CONTROL: Final = 8
_LONG: Final = 48  # treatment cycles, twice what steady growth needs
_DECELERATING_FROM: Final = 64
_FLATTENING_FROM: Final = 52
_LEAST_SHARE_OF_A_THIRD: Final = 0.05


def leak_rule(trial: Trial) -> str | None:
    """Name the rule by which the series is a leak, or None."""
    if trial.floor.steps + 1 < _LEAST_STEPS or not goes_on_throughout(trial) or not is_the_treatments(trial):
        return None
    is_host = trial.channel is Channel.HOST
    if (is_host or trial.gate.is_noisy) and (trial.rate is None or trial.rate.low <= 0):
        return None
    if allocator.may_explain(trial) or wanders(trial):
        return None
    if keeps_pace(trial, halves=0.75, thirds=0.6):
        if trial.cycles_alike >= cycles_needed(trial) and not cache_may_explain(trial):
            return "steady"
        if outgrows_footprint(trial):
            return "footprint"
    return "decelerating" if not is_host and decelerates(trial) else None


def cycles_needed(trial: Trial) -> int:
    """Return the treatment cycles that the steady rule waits for, so that bounded growth has time to end."""
    if trial.has_flat_control and not _may_be_first_touch(trial):
        return _NEED_WITH_CONTROL
    return allocator.cycles_needed(trial)


def steps_needed(trial: Trial) -> int:
    """Return the number of steps below which growth is not yet a pattern.

    At irregular times it takes more of them, but less of those where they have gone on for twice as long; not on the
    host, where allocators warm up for as long.
    """
    if not trial.is_irregular:
        return _LEAST_STEPS
    return 6 if trial.cycles >= _LONG and trial.channel is not Channel.HOST else 8


def goes_on_throughout(trial: Trial) -> bool:
    """Persistence: enough steps, some in each third, none of them most of it, and the next one not overdue."""
    steps, end = trial.steps, trial.end
    if len(steps) < _LEAST_STEPS or len(steps) < steps_needed(trial):
        return False
    if trial.now - steps.clocks[-1] > 1.5 * max(steps.gaps) + trial.loads:
        return False
    thirds = [trial.grown(end * third / 3, end * (third + 1) / 3) for third in range(3)]
    # A pool that fills late, after pages that trickled in, grows in each third too, but by next to nothing at first.
    if min(thirds) <= _LEAST_SHARE_OF_A_THIRD * sum(thirds):
        return False
    return 2 * max(steps.capped) <= steps.total


def keeps_pace(trial: Trial, halves: float, thirds: float) -> bool:
    """No slowing down: the second half grew by this share of the first at least, the last third by that of the first.

    What fills up slows down before it ends: pools, caches, arenas that double. Not being slower is what they cannot
    fake for long.
    """
    end = trial.end
    first_half, second_half = trial.grown(0, end / 2), trial.grown(end / 2, end)
    first_third, last_third = trial.grown(0, end / 3), trial.grown(2 * end / 3, end)
    return second_half >= halves * first_half and last_third >= thirds * first_third


def decelerates(trial: Trial) -> bool:
    """Slows down, but after 64 cycles still grows at more than a quarter of its first rate.

    Never asked of the host: allocators warm up just so, over hundreds of cycles.
    """
    steps, end = trial.steps, trial.end
    if trial.cycles < _FLATTENING_FROM or len(steps) < 6 or not slows_down_evenly(steps):
        return False
    first, third, last = (trial.grown(end * begin, end * until) for begin, until in ((0, 0.5), (0.5, 0.75), (0.75, 1)))
    if trial.cycles >= _DECELERATING_FROM:
        return third + last >= 0.28 * first
    return 3 * (third + last) >= first and last >= 0.75 * third


def outgrows_footprint(trial: Trial) -> bool:
    """Five or more near-consecutive steps make up more than four loaded models.

    Identical cycles can use again what an allocator has cached, so that caches stay near one footprint; Triton's four
    load threads may keep one each.
    """
    steps = trial.steps
    if trial.channel is Channel.COUNT or len(steps) < 5 or trial.floor.falls:
        return False
    if trial.channel is Channel.HOST and not trial.has_flat_control:  # each arena may keep what one load took
        return False
    if max(steps.gaps) > 3 * trial.loads:
        return False
    return steps.total >= 4 * max(trial.footprint, 8 * trial.quantum, 32 * MIB)


def _may_be_first_touch(trial: Trial) -> bool:
    """Host memory also grows for a while because the failed path touches its code and heap for the first time.

    That growth is small and dies away; only large growth at an even pace is told from it within a few cycles.
    """
    if trial.channel is not Channel.HOST:
        return False
    return allocator.is_small(trial) or not keeps_pace(trial, halves=0.95, thirds=0.9)
