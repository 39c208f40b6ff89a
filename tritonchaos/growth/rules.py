"""The rules that turn a staircase into LEAK, each as one small question."""

from __future__ import annotations

from typing import Final

from tritonchaos.growth import allocator
from tritonchaos.growth.estimate import are_irregular, gaps
from tritonchaos.growth.trial import Trial
from tritonchaos.observations import Arm
from tritonchaos.post_unload import Channel
from tritonchaos.units import MIB

ALPHA: Final = 0.01  # chance to blame the treatment for growth that does not depend on the arm
_NEED_WITH_CONTROL: Final = 8
_DECELERATING_FROM: Final = 64
_CONTROL_JUDGED_FROM: Final = 4  # control cycles before their own growth means anything
_LEAST_SHARE_OF_A_THIRD: Final = 0.05


def leak_rule(trial: Trial) -> str | None:
    """Name the rule by which the series is a leak, or None."""
    if not _goes_on_throughout(trial) or not _is_the_treatments(trial):
        return None
    is_host = trial.channel is Channel.HOST
    if (is_host or trial.series.is_noisy) and (trial.rate is None or trial.rate.low <= 0):
        return None
    if allocator.may_explain(trial):
        return None
    if _keeps_pace(trial, halves=0.75, thirds=0.6):
        if trial.stairs.now >= cycles_needed(trial):
            return "steady"
        if _outgrows_footprint(trial):
            return "footprint"
    return "decelerating" if not is_host and _decelerates(trial) else None


def cycles_needed(trial: Trial) -> int:
    """Return the treatment cycles that the steady rule waits for, so that bounded growth has time to end."""
    if trial.has_flat_control and not _may_be_first_touch(trial):
        return _NEED_WITH_CONTROL
    return allocator.cycles_needed(trial)


def steps_needed(trial: Trial) -> int:
    """Return the number of steps below which growth is not yet a pattern."""
    return 8 if are_irregular(trial.steps) else 4


def _goes_on_throughout(trial: Trial) -> bool:
    """Enough steps, some in each third, none of them most of it, and the next one not overdue."""
    steps, end = trial.steps, trial.end
    if len(steps) < steps_needed(trial):
        return False
    thirds = [trial.grown(end * third / 3, end * (third + 1) / 3) for third in range(3)]
    # A pool that fills late, after pages that trickled in, grows in each third too, but by next to nothing at first.
    if min(thirds) <= _LEAST_SHARE_OF_A_THIRD * sum(thirds):
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
    """Slows down, but after 64 cycles still grows at more than a quarter of its first rate.

    Never asked of the host: allocators warm up just so, over hundreds of cycles.
    """
    if trial.stairs.now < _DECELERATING_FROM or len(trial.steps) < 6:
        return False
    return trial.grown(trial.end / 2, trial.end) >= 0.28 * trial.grown(0, trial.end / 2)


def _outgrows_footprint(trial: Trial) -> bool:
    """Five or more near-consecutive steps make up more than four loaded models."""
    if trial.channel is Channel.COUNT or len(trial.steps) < 5 or trial.stairs.falls:
        return False
    if trial.channel is Channel.HOST and not trial.has_flat_control:  # each arena may keep what one load took
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


def _may_be_first_touch(trial: Trial) -> bool:
    """Host memory also grows for a while because the failed path touches its code and heap for the first time.

    That growth is small and dies away; only large growth at an even pace is told from it within a few cycles.
    """
    if trial.channel is not Channel.HOST:
        return False
    return allocator.is_small(trial) or not _keeps_pace(trial, halves=0.95, thirds=0.9)
