"""Says in plain words why a verdict was given, with the numbers that decided, and what is missing for one."""

from __future__ import annotations

import math

from tritonchaos.growth import allocator, rules
from tritonchaos.growth.arms import ALPHA, control_rate, e_value, e_value_of, in_order
from tritonchaos.growth.pools import cache_may_explain, wanders
from tritonchaos.growth.stable import flat_cycles, flat_cycles_needed
from tritonchaos.growth.state import Growth, GrowthState
from tritonchaos.growth.trial import Trial
from tritonchaos.post_unload import Channel
from tritonchaos.units import format_bytes

_MOST_STEPS = 1_000

# --- what is missing -----------------------------------------------------------------------------


def what_is_missing(trial: Trial) -> str:
    """Say what would be needed for a verdict: how many cycles more, of which arm."""
    if trial.gate.is_too_noisy:
        cause = "the GPU is not idle" if trial.channel is Channel.DEVICE else "something else changes it"
        return (
            f"readings vary by {_amount(trial, trial.gate.step)}, too much to see a step: {cause}; undisturbed, 44"
            " treatment cycles are enough"
        )
    flat, needed = flat_cycles(trial), flat_cycles_needed(trial)
    if len(trial.steps) >= 2 and flat * 2 < needed:
        return _growing(trial)
    if trial.interleaved and len(trial.control_steps) > len(trial.steps):
        return (
            f"the control arm itself grows by {_amount(trial, control_rate(trial))} per cycle: 4 flat control cycles"
            " must come before the treatment can be told apart"
        )
    if flat >= needed:
        return (
            f"{flat} treatment cycles without a step, yet their halves differ: {needed} more like the last are needed"
        )
    run = trial.readings.treated[-1]
    return f"{needed} flat treatment cycles are needed, {flat} of the {run} run count: {needed - flat} more"


def _growing(trial: Trial) -> str:
    grown = trial.steps.total
    found = f"grew by {_amount(trial, grown)} in {len(trial.steps)} steps over {trial.cycles} treatment cycles"
    if trial.rate and control_rate(trial) >= trial.grown_per_reading / 2:
        control = f"the control arm grows too ({_amount(trial, control_rate(trial))} per cycle)"
        return f"{found}, but {control}; more control cycles before them, until 4 are flat, tell the arms apart"
    if allocator.may_explain(trial):
        return f"{found}; {_what_tells_it_from_the_allocator(trial, grown)}"
    cycles = rules.cycles_needed(trial) - trial.cycles_alike
    steps = rules.steps_needed(trial) - len(trial.steps)
    if cycles > 0 or steps > 0:
        return f"{found}; a leak needs {max(cycles, steps, 1)} more such cycles"
    if trial.interleaved and e_value(trial) < 1 / ALPHA:
        more = _steps_to_blame(trial)
        return f"{found}; {more} more steps must fall on treatment cycles, and none on control cycles, to blame them"
    if cache_may_explain(trial):
        found = f"{found}; a cache of up to 64 handles explains that as well"
    elif wanders(trial):
        found = f"{found}; the readings go up and down by as much"
    until = flat_cycles_needed(trial)
    return (
        f"{found}, not steadily enough to tell a leak from growth that ends: {until} flat treatment cycles would show"
        f" that it has ended, as many in which it goes on evenly that it has not"
    )


def _steps_to_blame(trial: Trial) -> int:
    """Return how many further steps on treatment cycles, all of them, make the e-value large enough."""
    seen = in_order(trial)
    later = len(trial.readings) + 2
    more = 1
    while more < _MOST_STEPS and e_value_of([*seen, *[(later, True)] * more], trial.planned_share) < 1 / ALPHA:
        more += 1
    return more


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


# --- a paragraph ---------------------------------------------------------------------------------


def in_plain_words(trial: Trial, state: GrowthState) -> str:
    """Return a paragraph that an engineer who distrusts statistics can check against the readings."""
    if state.verdict is Growth.LEAK:
        return " ".join([*_what_grew(trial), *_why_it_is_no_warm_up(trial, state), *_how_much(trial, state)])
    if state.verdict is Growth.STABLE:
        return " ".join([*_what_did_not_grow(trial, state), *_what_may_be_left(trial, state)])
    return " ".join(_what_is_open(trial, state))


def _what_grew(trial: Trial) -> list[str]:
    steps = trial.steps
    total = _amount(trial, sum(steps.sizes))
    since = trial.readings.treated[-1] - trial.readings.treated[steps.cycles[-1]]
    last = "in the last one" if since == 0 else "one cycle ago" if since == 1 else f"{since} cycles ago"
    kept = [
        f"Over {_counted(trial)} {total} stayed in use for good, in {len(steps)} steps of"
        f" {_amount(trial, min(steps.sizes))} to {_amount(trial, max(steps.sizes))}; the last of them came {last}.",
        "Only what no later reading gave back is counted, so that a single high reading cannot be the cause.",
    ]
    end = trial.end
    first, second = (_amount(trial, trial.grown(end * part / 2, end * (part + 1) / 2)) for part in range(2))
    what = "cycles" if trial.loads == 1 else "loads"
    return [*kept, f"The first half of these {what} grew by {first}, the second by {second}."]


def _counted(trial: Trial) -> str:
    """Say how many treatment cycles count, and why not all of them do."""
    run = trial.readings.treated[-1]
    if run == trial.cycles:
        return f"{run} treatment cycles"
    return f"{trial.cycles} of {run} treatment cycles (the first set up what stays, the last may still give back)"


def _why_it_is_no_warm_up(trial: Trial, state: GrowthState) -> list[str]:
    if trial.interleaved:
        on, off = len(trial.steps), len(trial.control_steps)
        return [
            f"A coin decided which arm of each pair went first, and {on} of all {on + off} steps fell on treatment"
            f" cycles: if the treatment made no difference, not one run in {_odds(state.e_value)} would ever look so.",
        ]
    if state.rule == "footprint":
        unit = f"a loaded model takes {format_bytes(trial.footprint)}" if trial.footprint else "32 MiB"
        return [
            f"That is more than four times what the same cycles could use again ({unit}), so that no cache explains it."
        ]
    if trial.has_flat_control:
        control = _amount(trial, control_rate(trial))
        flat = (
            f"The {trial.block} control cycles before had gone flat, so that what a server sets up once was there"
            f" already; they grow by {control} per cycle."
        )
        if trial.loads == 1:
            return [flat]
        return [
            flat,
            f"They were read after one load each, these at last after {trial.loads}, with some {_per_reading(trial)}"
            " more in use each time: that the control's loads do not grow likewise is not shown; `arms` would show it.",
        ]
    return [
        f"Warm-up, pools and caches stop growing; this did not stop or slow down in {trial.cycles} cycles. There was no"
        " flat control arm, so a pool that needs still longer to fill is not ruled out: a control block would do so."
    ]


def _per_reading(trial: Trial) -> str:
    return _amount(trial, trial.grown_per_reading)


def _how_much(trial: Trial, state: GrowthState) -> list[str]:
    if state.bytes_per_cycle is None or state.interval is None:
        return []
    low, high = state.interval
    per = "load" if trial.loads > 1 else "treatment cycle"
    models = f", {state.footprints_per_cycle:.2g} of a loaded model" if state.footprints_per_cycle else ""
    return [
        f"It makes {_amount(trial, state.bytes_per_cycle)} per {per} (between {_amount(trial, low)} and"
        f" {_amount(trial, high)}, 95 %){models}."
    ]


def _what_did_not_grow(trial: Trial, state: GrowthState) -> list[str]:
    flat, step = flat_cycles(trial), _amount(trial, trial.gate.step)
    if state.rule == "slow":
        return [f"No single cycle of the last half, 44 or more, kept as much as {step}; what trickles in is pages."]
    times = f" of {trial.loads} loads each" if trial.loads > 1 else ""
    return [
        f"Over the last {flat} treatment cycles{times} less than {step}, the smallest step that counts here, was kept."
    ]


def _what_may_be_left(trial: Trial, state: GrowthState) -> list[str]:
    said = []
    if state.shape != "flat":
        said.append(f"What grew before has ended ({state.shape}).")
    if state.excluded_bytes_per_cycle is not None:
        per = "load" if trial.loads > 1 else "cycle"
        said.append(
            f"A leak of {_amount(trial, state.excluded_bytes_per_cycle)} per {per} or more would have shown"
            " with 99 % certainty; a slower one may be there, and more cycles or more loads per cycle would show it."
        )
    return said


def _what_is_open(trial: Trial, state: GrowthState) -> list[str]:
    said = [
        f"After {trial.readings.treated[-1]} treatment cycles neither can be said. What is missing: {state.reason}."
    ]
    if state.bytes_per_cycle is not None and not trial.gate.is_too_noisy:
        said.append(f"If it went on as up to now it would make {_amount(trial, state.bytes_per_cycle)} per cycle.")
    return said


def _odds(value: float | None) -> str:
    return f"{min(value or 1.0, 1e9):,.0f}"


def _amount(trial: Trial, count: float) -> str:
    if trial.channel is Channel.COUNT and trial.quantum == 1:
        return f"{count:.3g}" if count % 1 else f"{count:.0f}"
    return format_bytes(count)
