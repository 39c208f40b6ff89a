"""Whose growth is it? The control arm against the treatment arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tritonchaos.growth.trial import Trial

ALPHA: Final = 0.01  # chance to blame the treatment for growth that does not depend on the arm
_CONTROL_JUDGED_FROM: Final = 4  # control cycles before their own growth means anything
# Shares of steps on treatment cycles that the e-value bets on, and how much of the money it bets on each: mostly on all
# of them, so that 7 of 7 suffice.
_BETS: Final = ((0.75, 0.05), (0.9, 0.09), (1.0, 0.74))
# What is kept back, and bet on all of them from the ninth reading on, or once a step has fallen on a control cycle: a
# step of the warm-up of both arms then costs 3 or 4 steps more, instead of 7.
_AFTER_WARM_UP: Final = 0.06
_AFTER_CONTROL_STEP: Final = 0.06
_WARM_UP: Final = 8


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

    Some of the money is kept back and only bet later, when is decided by what was seen before, which is as fair a game.

    Source: method of mixtures over the share of steps on treatment cycles (3/4, 9/10, all); Howard, Ramdas et al.,
    Time-uniform Chernoff bounds, 2020.
    """
    return e_value_of(in_order(trial), trial.planned_share)


def in_order(trial: Trial) -> list[tuple[int, bool]]:
    """Return the cycle of each step, and whether it is a treatment cycle."""
    mine = [(cycle, True) for cycle in trial.steps.cycles]
    return sorted([*mine, *((step.cycle, False) for step in trial.control_steps)])


def e_value_of(steps: Sequence[tuple[int, bool]], share: float) -> float:
    """Return the e-value of steps in order.

    Args:
        steps: Cycle of each, and whether it is a treatment cycle.
        share: Planned share of treatment cycles.
    """
    on = sum(is_treatment for _, is_treatment in steps)
    money = sum(kept * _won(bet, on, len(steps) - on, share) for bet, kept in _BETS)
    first = next((cycle for cycle, is_treatment in steps if not is_treatment), None)
    later = [(_AFTER_WARM_UP, _WARM_UP)]
    if first is not None:
        # the other cycle of its pair is left out: its label is known by then
        later.append((_AFTER_CONTROL_STEP, first + 2))
    else:
        money += _AFTER_CONTROL_STEP
    for kept, begin in later:
        labels = [is_treatment for cycle, is_treatment in steps if cycle >= begin]
        money += kept * _won(1.0, sum(labels), len(labels) - sum(labels), share)
    return money


def _won(bet: float, on: int, off: int, share: float) -> float:
    return _power(bet / share, on) * _power((1 - bet) / (1 - share), off)


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
