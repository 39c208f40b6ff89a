"""Says whether memory or handles grew as recorded: by the same amount per cycle."""

from __future__ import annotations

import statistics
from typing import Any

from tritonchaos.reproducing.program.readings import quantum

REPRODUCED, NOT_REPRODUCED, CANNOT_TELL = 1, 0, 3
# Growth below this share of what was recorded is none; between it and the factor it is a defect of another size.
NOISE_SHARE = 1 / 8


def judge_growth(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """Growth per cycle of the arm on trial, beyond that of the control arm."""
    wanted, factor = claim["bytes_per_cycle"], claim["factor"]
    metric, levels, trouble = series_of(claim, run)
    if trouble:
        return CANNOT_TELL, [trouble]
    control = control_slope(claim, metric, run)
    rate = slope(levels)
    net = rate - max(control, 0.0)
    lines = [
        "{} grew by {} over {} cycles of the {} arm: {} per cycle".format(
            metric, amount(metric, levels[-1]), len(levels), claim["arm"], amount(metric, rate)
        ),
        "the control arm grows by {} per cycle; the difference is {}".format(
            amount(metric, control), amount(metric, net)
        ),
        "recorded: {} per cycle; the same defect is {} to {}".format(
            amount(metric, wanted), amount(metric, wanted / factor), amount(metric, wanted * factor)
        ),
    ]
    return size_verdict(net, wanted, factor, least_visible(metric, len(levels)), goes_on(levels), lines)


def judge_retained(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """What stays above the level after the first cycles."""
    metric, levels, trouble = series_of(dict(claim, arm="any"), run)
    if trouble:
        return CANNOT_TELL, [trouble]
    stays = float(levels[-1] - levels[: claim["first_cycles"]][-1])
    wanted = claim["retained_bytes"]
    lines = [
        "{} stays {} above its level after the first {} cycles; recorded: {}".format(
            metric, amount(metric, stays), claim["first_cycles"], amount(metric, wanted)
        )
    ]
    return size_verdict(stays, wanted, claim["factor"], float(quantum(metric)), True, lines)


def size_verdict(
    found: float, wanted: float, factor: float, visible: float, is_steady: bool, lines: list[str]
) -> tuple[int, list[str]]:
    """Same size: reproduced. None: not reproduced. Anything else is another defect, so nothing is said of this one."""
    if wanted / factor <= found <= wanted * factor:
        if is_steady:
            return REPRODUCED, lines
        return CANNOT_TELL, lines + ["it grew at first and then no more: a step, not the recorded growth"]
    if found <= max(wanted * NOISE_SHARE, visible) and visible < wanted / factor:
        return NOT_REPRODUCED, lines
    return CANNOT_TELL, lines + [
        "a defect of the same kind and another size is not the recorded one; look at it by itself"
    ]


def series_of(claim: dict[str, Any], run: dict[str, Any]) -> tuple[str, list[int], str]:
    """What grew in the cycles of one arm, added up; or why there are too few of them.

    Returns:
        The metric that was read, the levels (shape [judged cycles]), and the reason ("": none).
    """
    cycles = [cycle for cycle in run["cycles"] if claim["arm"] in ("any", cycle["arm"]) and not cycle["is_warm_up"]]
    metric = readable(claim["metric"], cycles)
    if cycles and not metric:
        return claim["metric"], [], "{} cannot be read here".format(claim["metric"])
    levels = arm_levels(run["cycles"], claim["arm"], metric)
    if len(levels) < claim["least_cycles"]:
        first = next((cycle["mismatch"] for cycle in cycles if cycle["mismatch"]), "")
        because = "; the first that did not: {}".format(first) if first else ""
        told = "{} cycles did what they should, {} are needed{}".format(len(levels), claim["least_cycles"], because)
        return metric, levels, told
    return metric, levels, ""


def readable(metric: str, cycles: list[dict[str, Any]]) -> str:
    """The metric, or what stands in for it: another machine has other GPUs, a container hides process ids."""
    name, _, uuid = metric.partition("@")
    device = "nvml_device_used_bytes"
    names = [metric, name] + ([device + "@" + uuid, device] if name == "nvml_process_used_bytes" else [])
    return next((one for one in names if any(one in cycle["used"] for cycle in cycles)), "")


def arm_levels(cycles: list[dict[str, Any]], arm: str, metric: str) -> list[int]:
    """Growth in the cycles of one arm, added up: what the other arm or a failed cycle leaves is not counted."""
    levels: list[int] = []
    before, start = None, None
    for cycle in cycles:
        if metric not in cycle["used"]:
            continue
        if cycle["start"] != start:
            levels, before, start = [], None, cycle["start"]
        value = cycle["used"][metric]
        if arm in ("any", cycle["arm"]) and not cycle["mismatch"] and not cycle["is_warm_up"]:
            grown = value - before if before is not None else 0
            levels.append((levels[-1] if levels else 0) + grown)
        before = value
    return levels


def slope(values: list[int]) -> float:
    """Growth per cycle: the median over pairs that lie at least half of the series apart, so that one step is none."""
    count = len(values)
    if count < 2:
        return 0.0
    stride = max(1, count // 100)
    rates = []
    for start in range(0, count, stride):
        for end in range(start + max(1, count // 2), count, stride):
            rates.append((values[end] - values[start]) / (end - start))
    return statistics.median(rates) if rates else (values[-1] - values[0]) / (count - 1)


def control_slope(claim: dict[str, Any], metric: str, run: dict[str, Any]) -> float:
    """Growth of the control arm, over the second half of its cycles; the first half warms the server up."""
    if claim["arm"] != "treatment":
        return 0.0
    levels = arm_levels(run["cycles"], "control", metric)
    last = levels[len(levels) // 2 :]
    return slope(last) if len(last) >= 3 else 0.0


def goes_on(values: list[int]) -> bool:
    """The second half grew by at least a third of what the first did."""
    middle = len(values) // 2
    return 3 * (values[-1] - values[middle]) >= values[middle] - values[0]


def least_visible(metric: str, count: int) -> float:
    """The smallest growth per cycle that a series of this length shows."""
    return quantum(metric) / max(1, count - 1)


def amount(metric: str, number: float) -> str:
    """Print a size with its unit, or a count."""
    if not metric.endswith("_bytes") and "_bytes@" not in metric:
        return "{:.3g}".format(number)
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if abs(number) >= size:
            return "{:.4g} {}".format(number / size, unit)
    return "{:.4g} bytes".format(number)
