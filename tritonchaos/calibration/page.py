"""The page about a calibration, for people: calibration.md, and what the command prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tritonchaos.units import format_bytes, format_seconds

_SHOWN: Final = ("target", "triton_version", "image", "gpu_uuids", "driver")


def page(found: Mapping[str, Any]) -> str:
    """Write the page.

    Args:
        found: What calibration.json holds.
    """
    lines = ["# What this set-up can see", "", *_head(found)]
    for metric, part in found["metrics"].items():
        lines += ["", f"## {metric} (variant {part['variant']})", "", *_metric(part)]
    lines += ["", "## Cost", "", *_cost(found)]
    if found["left_out"]:
        lines += ["", "## Left out", "", *(f"- {line}" for line in found["left_out"])]
    return "\n".join(lines) + "\n"


def _head(found: Mapping[str, Any]) -> Iterator[str]:
    stated = [part["statement"] for part in found["metrics"].values() if part["statement"]]
    yield from (f"**{line[0].upper()}{line[1:]}.**" for line in stated)
    if not stated:
        yield "**Nothing can be claimed of this set-up**: see below what was missing."
    alarms = [run for run in found["runs"] if run["false_alarms"]]
    if alarms:
        yield ""
        yield f"**False alarms**: {', '.join(run['folder'] for run in alarms)}."
    key = found["key"]
    shown = ", ".join(f"{name} {key[name]}" for name in _SHOWN if name in key)
    used = len([run for run in found["runs"] if not run["not_used"]])
    runs = "run" if used == 1 else "runs"
    yield ""
    yield (
        f"{found['date']}, tritonchaos {found['tritonchaos_version']}, {shown}; {used} {runs} in "
        f"{format_seconds(found['spent_s'])} (budget {format_seconds(found['budget_s'])}, seed {found['seed']})"
        f"{'; interrupted' if found['interrupted'] else ''}."
    )


def _metric(part: Mapping[str, Any]) -> Iterator[str]:
    yield "| within | smallest leak per cycle that is found |"
    yield "| --- | --- |"
    for within, claim in part["smallest_leak"].items():
        shown = "none" if claim is None else f"{_size(claim)} (in {claim['cycles']} cycles)"
        yield f"| {within} cycles | {shown} |"
    yield ""
    yield "| planted per failed load | runs | found | cycles on trial | claimed |"
    yield "| --- | --- | --- | --- | --- |"
    for leak in part["leaks"]:
        found = f"{leak['runs']} | {leak['found']}"
        yield f"| {_size(leak)} | {found} | {_range(leak['cycles'])} | {_claimed(leak)} |"
    yield ""
    yield "| bounded, no leak | runs | called a leak | STABLE | cycles on trial |"
    yield "| --- | --- | --- | --- | --- |"
    for kind, seen in part["bounded"].items():
        yield f"| {kind} | {seen['runs']} | {seen['false_alarms']} | {seen['stable']} | {_range(seen['cycles'])} |"
    yield ""
    yield from _quality(part)


def _size(leak: Mapping[str, Any]) -> str:
    whole = ", the whole of a model that takes as much" if leak["footprint_bytes"] else ""
    return f"{format_bytes(leak['bytes_per_cycle'])}{whole}"


def _claimed(leak: Mapping[str, Any]) -> str:
    if leak["claimed_cycles"] is not None:
        return f"in {leak['claimed_cycles']} cycles"
    stable = f", {leak['called_stable']} said STABLE" if leak["called_stable"] else ""
    return f"no: {leak['why_not_claimed']}{stable}"


def _range(cycles: list[int]) -> str:
    if not cycles:
        return ""
    return str(cycles[0]) if min(cycles) == max(cycles) else f"{min(cycles)} to {max(cycles)}"


def _quality(part: Mapping[str, Any]) -> Iterator[str]:
    settle = part["settle_ms"]
    if settle["median"] is not None:
        yield f"- settle time: {settle['median']:g} ms (median), {settle['longest']:g} ms at most"
    if part["noise_floor_bytes"] is not None:
        yield (
            f"- noise floor: post-unload readings of clean twins lie within {format_bytes(part['noise_floor_bytes'])} "
            "over the later half of the cycles on trial"
        )
    if part["excluded_bytes_per_cycle"] is not None:
        yield f"- STABLE on a clean twin excludes {format_bytes(part['excluded_bytes_per_cycle'])} per cycle and more"
    if part["cycle_ms"] is not None:
        yield f"- time per cycle on trial: {part['cycle_ms']:g} ms (median)"


def _cost(found: Mapping[str, Any]) -> Iterator[str]:
    cost = found["sampling"]
    if cost is None:
        yield "- sampling: could not be measured"
    else:
        yield (
            f"- sampling: {cost['fast_us']:g} us for a fast reading, {cost['all_us']:g} us for one of all metrics; "
            f"{cost['share']:.2%} of one core between settle windows"
        )
