"""Says whether steps took as long as recorded: beyond the same limit, and by about as much."""

from __future__ import annotations

import math
import statistics
from typing import Any

from tritonchaos.reproducing.program.sizes import CANNOT_TELL, NOT_REPRODUCED, REPRODUCED


def judge_slow(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """Times of the arm on trial, against a limit or against the control arm."""
    treatment, control = (times_of(claim["record"], arm, run) for arm in ("treatment", "control"))
    limit = claim["at_most_s"] if claim["at_most_s"] is not None else claim["times_control"]
    few = min([len(treatment)] + ([len(control)] if claim["at_most_s"] is None else []))
    if few < claim["least_cycles"]:
        told = "{} cycles of an arm did what they should, {} are needed"
        return CANNOT_TELL, [told.format(few, claim["least_cycles"])]
    found = slowness(treatment, control, claim["of"], claim["at_most_s"])
    shown = "{:.4g} s".format if claim["at_most_s"] is not None else "{:.3g} times the control arm's median".format
    lines = [
        "{} of {} over {} cycles: {}; allowed: {}; recorded: {}".format(
            claim["of"], claim["record"], len(treatment), shown(found), shown(limit), shown(claim["recorded"])
        )
    ]
    if found <= limit:
        return NOT_REPRODUCED, lines
    if claim["recorded"] / claim["factor"] <= found <= claim["recorded"] * claim["factor"]:
        return REPRODUCED, lines
    return CANNOT_TELL, lines + ["too slow as well, but by another size: perhaps only another machine"]


def times_of(record: str, arm: str, run: dict[str, Any]) -> list[float]:
    """Seconds in each good cycle of an arm, the median if there were several."""
    taken: dict[tuple[str, int], list[float]] = {}
    for seen in run["steps"]:
        if seen.get("record") == record:
            taken.setdefault((seen["phase"], seen["cycle"]), []).append(seen["took_s"])
    good = [c for c in run["cycles"] if c["arm"] == arm and not c["mismatch"] and not c["is_warm_up"]]
    found = [taken[cycle["phase"], cycle["cycle"]] for cycle in good if (cycle["phase"], cycle["cycle"]) in taken]
    return [statistics.median(times) for times in found]


def slowness(treatment: list[float], control: list[float], of: str, at_most_s: float | None) -> float:
    """The number that a limit is held against: seconds, or without a limit in seconds times the control's median."""
    if at_most_s is None:
        return statistics.median(treatment) / max(statistics.median(control), 1e-9)
    if of == "median":
        return statistics.median(treatment)
    return max(treatment) if of == "max" else sorted(treatment)[math.ceil(0.99 * len(treatment)) - 1]
