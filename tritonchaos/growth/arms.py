"""Whose growth is it? The control arm against the treatment arm."""

from __future__ import annotations

from typing import Final

from tritonchaos.growth.trial import Trial

ALPHA: Final = 0.01  # chance to blame the treatment for growth that does not depend on the arm
_CONTROL_JUDGED_FROM: Final = 4  # control cycles before their own growth means anything
# Shares of steps on treatment cycles that the e-value bets on, and how much it bets on each: mostly on all of them, so
# that 7 of 7 suffice; with a warm-up step on the other arm about 14 are needed.
_BETS: Final = ((0.75, 0.15), (0.9, 0.15), (1.0, 0.7))


def is_the_treatments(trial: Trial) -> bool:
    """Say whether the control arm does not grow as the treatment arm does.

    Coin-ordered pairs: the e-value reaches 1 / ALPHA. A control block: neither its own later growth, nor that of
    control cycles after the treatment, is half of the treatment's.

    Where treatment cycles repeat their loads, and those of a control block do not, cycles are compared with cycles: a
    host that warms up takes pages from reading to reading, and no more of them for 32 loads before each (Triton 2.51,
    140 such cycles: 44 KiB in all). Whose growth it is that shows only then a control block cannot tell.
    """
    if trial.interleaved:
        return e_value(trial) >= 1 / ALPHA
    if trial.rate is None or trial.block < _CONTROL_JUDGED_FROM:
        return True
    half = trial.grown_per_reading / 2
    return control_rate(trial) < half and _final_control_rate(trial) < half


def e_value(trial: Trial) -> float:
    """Return the e-value of "growth does not depend on the arm": a fair coin's bets on where the steps fell.

    If growth does not depend on the arm, the times of the steps are given and only the labels are random: in a pair
    with one step its label is a fair coin, a pair with two steps multiplies a bet by 4 b (1 - b), at most 1. So the
    e-value is a supermartingale over pairs, and by Ville's inequality it ever reaches 1 / ALPHA with chance ALPHA at
    most, whenever one looks.

    Source: method of mixtures over the share of steps on treatment cycles (3/4, 9/10, all); Howard, Ramdas et al.,
    Time-uniform Chernoff bounds, 2020.
    """
    return e_value_of(len(trial.steps), len(trial.control_steps), trial.planned_share)


def e_value_of(on: int, off: int, share: float) -> float:
    """Return the e-value of so many steps on treatment and on control cycles.

    Args:
        share: Planned share of treatment cycles.
    """
    return sum(weight * _power(bet / share, on) * _power((1 - bet) / (1 - share), off) for bet, weight in _BETS)


def _power(base: float, count: int) -> float:
    return base ** min(count, 300)


def control_rate(trial: Trial) -> float:
    """Return the growth per control cycle, in bytes: its later half in a block, its steps when interleaved."""
    floor = trial.floor
    if trial.interleaved:
        cycles = floor.known_to - 1 - floor.start - trial.cycles
        return sum(step.size for step in trial.control_steps) / (cycles * trial.loads) if cycles > 0 else 0.0
    middle, last = trial.block // 2, trial.block - 1
    if last <= middle:
        return 0.0
    return (trial.level(last) - trial.level(middle)) / (last - middle)


def _final_control_rate(trial: Trial) -> float:
    last = trial.readings.last_treatment
    end = trial.floor.known_to - 1
    if end - last < _CONTROL_JUDGED_FROM:
        return 0.0
    return (trial.level(end) - trial.level(last)) / (end - last)
