"""Says in words what shape growth has, and what is missing for a verdict."""

from __future__ import annotations

import math

from tritonchaos.growth import allocator, rules
from tritonchaos.growth.stable import flat_cycles, flat_cycles_needed
from tritonchaos.growth.trial import Trial
from tritonchaos.observations import Arm
from tritonchaos.post_unload import Channel
from tritonchaos.units import format_bytes


def describe_shape(trial: Trial) -> str:
    """Name the shape of a series that stopped growing: "flat", "one-time step" or "warm-up plateau"."""
    floor, stairs = trial.series.floor, trial.stairs
    early = floor[stairs.start] - floor[0] >= trial.series.step
    if not trial.steps and not early:
        return "flat"
    return "one-time step" if len(trial.steps) + early == 1 else "warm-up plateau"


def what_is_missing(trial: Trial, treatment_cycles: int) -> str:
    """Say what would be needed for a verdict.

    Args:
        treatment_cycles: Treatment cycles that were judged.
    """
    if trial.series.is_too_noisy:
        cause = "the GPU is not idle" if trial.channel is Channel.DEVICE else "something else changes it"
        return f"readings vary by {_amount(trial, trial.series.step)}, too much to see a step: {cause}"
    if len(trial.steps) >= 2 and flat_cycles(trial) * 2 < flat_cycles_needed(trial):
        return _growing(trial)
    if trial.interleaved and len(trial.stairs.on(Arm.CONTROL)) > len(trial.steps):
        return f"the control arm itself grows by {_amount(trial, rules.control_rate(trial))} per cycle"
    flat, needed = flat_cycles(trial), flat_cycles_needed(trial)
    if flat >= needed:
        return f"{flat} treatment cycles without a step, yet their halves differ"
    return (
        f"{needed} flat treatment cycles are needed, {flat} of the {treatment_cycles} run count: {needed - flat} more"
    )


def _growing(trial: Trial) -> str:
    grown = sum(step.size for step in trial.steps)
    found = f"grew by {_amount(trial, grown)} in {len(trial.steps)} steps over {trial.stairs.now} treatment cycles"
    if trial.rate and rules.control_rate(trial) >= trial.rate.bytes_per_cycle / 2:
        control = f"the control arm grows too ({_amount(trial, rules.control_rate(trial))} per cycle)"
        return f"{found}, but {control}; more control cycles before them, until they are flat, tell the arms apart"
    if allocator.may_explain(trial):
        return f"{found}; {_what_tells_it_from_the_allocator(trial, grown)}"
    cycles = rules.cycles_needed(trial) - trial.stairs.now
    steps = rules.steps_needed(trial) - len(trial.steps)
    if cycles > 0 or steps > 0:
        return f"{found}; a leak needs {max(cycles, steps, 1)} more such cycles"
    if trial.interleaved and rules.evidence_against_chance(trial) < 1 / rules.ALPHA:
        return f"{found}; too few of all steps fell on treatment cycles to blame the treatment"
    return f"{found}, not steadily enough to tell a leak from growth that ends"


def _what_tells_it_from_the_allocator(trial: Trial, grown: int) -> str:
    if not trial.has_flat_control:
        least = format_bytes(allocator.SMALLEST_ALONE)
        return (
            f"host growth of less than {least} in every cycle may be the allocator warming up: more cycles show whether"
            " it ends, a control arm that goes flat before it (`until: flat`) whether the treatment causes it"
        )
    total = format_bytes(allocator.SMALL_TOTAL)
    rate = trial.rate.bytes_per_cycle if trial.rate else 1.0
    more = max(1, math.ceil((allocator.SMALL_TOTAL - grown) / rate))
    return f"growth this small may be the allocator's until it adds up to {total}: {more} more such cycles"


def _amount(trial: Trial, count: float) -> str:
    return f"{count:.0f}" if trial.quantum == 1 else format_bytes(count)
