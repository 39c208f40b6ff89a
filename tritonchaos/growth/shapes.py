"""Names the shape of a series: only growth per cycle is a leak."""

from __future__ import annotations

from typing import Final

from tritonchaos.growth.state import Growth
from tritonchaos.growth.trial import Trial
from tritonchaos.post_unload import Channel

_POOL_STEPS: Final = 4  # steps from which on even growth that ended is a pool that filled
_EVEN: Final = 1.5  # largest step of such a pool, in median steps


def shape_of(trial: Trial, verdict: Growth, rule: str) -> str:
    """Name the shape of a series."""
    if verdict is Growth.LEAK:
        return "decelerating" if rule == "decelerating" else "per cycle"
    if verdict is Growth.STABLE:
        return _shape_of_stable(trial, rule)
    if trial.channel is Channel.DEVICE and trial.gate.is_too_noisy:
        return "drift of a co-tenant"
    return "undecided"


def _shape_of_stable(trial: Trial, rule: str) -> str:
    if trial.floor.falls and (trial.stairs.falls_evenly or not trial.gate.is_noisy):
        return "retention released in bursts"
    early = trial.level(trial.floor.start) - trial.level(0) >= trial.gate.step
    count = trial.floor.steps + (trial.floor.last_step is not None)
    if not count and not early:
        return "flat"
    if count + early == 1:
        return "one-time step"
    return "pool that filled" if rule == "flat" and _is_pool(trial) else "warm-up plateau"


def _is_pool(trial: Trial) -> bool:
    """Say whether the steps are of one size and follow each other evenly."""
    sizes = [step.size for step in trial.all_steps]
    if len(sizes) < _POOL_STEPS or trial.steps.are_irregular:
        return False
    return max(sizes) <= _EVEN * min(sizes)
