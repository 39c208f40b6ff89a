"""What the page's script draws: post-unload curves and samples, short enough to stay smooth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tritonchaos.html_page.step_data import Texts
from tritonchaos.observations import Arm, History
from tritonchaos.post_unload import settle_quantum
from tritonchaos.summary import FinishedRun, is_memory
from tritonchaos.summary.curves import TREATMENT, Curve, Line, curves, outline
from tritonchaos.summary.faults import FaultBand
from tritonchaos.summary.thinning import thin
from tritonchaos.units import KIB, MIB

_POINTS_PER_ARM: Final = 1600
_POINTS_BESIDE: Final = 400
_SAMPLES: Final = 1600
_SAMPLES_BESIDE: Final = 400
_MOST_BANDS: Final = 300
_LEAST_QUANTA: Final = 8  # a picture that is higher than this shows no noise as if it were growth


def unit_of(metric: str, most: float) -> tuple[str, float]:
    """Return the unit in which a metric is drawn, and how much of the metric's own one it is."""
    if not is_memory(metric):
        return "count", 1
    return ("MiB", MIB) if abs(most) >= MIB else ("KiB", KIB)


def charts_data(run: FinishedRun, bands: Sequence[FaultBand], texts: Texts) -> dict[str, Any]:
    """Return the post-unload curves with what lies behind them."""
    shown_bands = [] if len(bands) > _MOST_BANDS else [band for band in bands if band.faults]
    parts = outline(run.rows)
    return {
        "cycles": len(run.rows),
        "interleaved": parts.is_interleaved,
        "stretches": [[first, last, texts.number(phase)] for first, last, phase in parts.stretches[:_MOST_BANDS]],
        "bands": [[band.first, band.last, texts.number("; ".join(band.faults))] for band in shown_bands],
        "restarts": [list(found) for found in parts.restarts[:_MOST_BANDS]],
        "curves": [_curve(curve, curve.metric in run.metrics) for curve in curves(run)],
    }


def _curve(curve: Curve, is_shown_first: bool) -> dict[str, Any]:
    at_most = _POINTS_PER_ARM if is_shown_first else _POINTS_BESIDE
    kept = kept_readings(curve, at_most)
    unit, size = unit_of(curve.metric, max(curve.values))
    return {
        "metric": curve.metric,
        "unit": unit,
        "size": size,
        "span": _LEAST_QUANTA * settle_quantum(curve.metric),
        "places": [curve.places[at] for at in kept],
        "values": [curve.values[at] for at in kept],
        "arms": [curve.marks[at] & TREATMENT for at in kept],
        "flags": [curve.marks[at] >> 1 for at in kept],
        "readings": len(curve.values),
        "baseline": curve.baseline,
        "line": _line(curve.line, at_most) if curve.line else None,
    }


def kept_readings(curve: Curve, at_most: int) -> list[int]:
    """Choose readings so that neither arm's spikes hide behind the other's; ascending."""
    kept: set[int] = set()
    for arm in Arm:
        of_arm = curve.of_arm(arm)
        kept.update(of_arm[at] for at in thin([curve.values[at] for at in of_arm], at_most))
    return sorted(kept)


def _line(line: Line, at_most: int) -> dict[str, Any]:
    """The places with estimate, low and high; straight between them but for the other arm's cycles."""
    corners = sorted({*line_corners(line.places), len(line.places) // 2})  # the interval is narrowest in the middle
    if len(corners) > at_most:
        corners = corners[:: len(corners) // at_most + 1] + corners[-1:]
    points = [[line.places[clock], *(round(value) for value in line.at(clock))] for clock in corners]
    return {"growth": line.is_growth, "treatment": line.arm is Arm.TREATMENT, "points": points}


def line_corners(places: Sequence[int]) -> list[int]:
    """Return the cycles of an arm at which a run of its cycles begins or ends; shape [corners]."""
    last = len(places) - 1
    return [
        at
        for at, place in enumerate(places)
        if at in (0, last) or places[at - 1] != place - 1 or places[at + 1] != place + 1
    ]


def samples_data(history: History, first: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
    """Return the samples of the sampling thread over time, as stamps in ms and values."""
    found = []
    for metric in dict.fromkeys([*first, *others]):
        if metric in history.samples:
            at_most = _SAMPLES if metric in first else _SAMPLES_BESIDE
            found.append(_samples(metric, history.samples, at_most))
    return found


def _samples(metric: str, samples: Mapping[str, Sequence[tuple[int, int]]], at_most: int) -> dict[str, Any]:
    pairs = samples[metric]
    values = [value for _, value in pairs]
    kept = thin(values, at_most)
    unit, size = unit_of(metric, max(values, default=0))
    return {
        "metric": metric,
        "unit": unit,
        "size": size,
        "span": _LEAST_QUANTA * settle_quantum(metric),
        "times": [round(pairs[at][0] / 1e6, 1) for at in kept],
        "values": [values[at] for at in kept],
        "samples": len(values),
    }
