"""What the page's script draws: post-unload curves and samples, short enough to stay smooth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tritonchaos.html_page.step_data import Texts
from tritonchaos.observations import Arm, History
from tritonchaos.observations.sample_series import SampleSeries, as_series
from tritonchaos.post_unload import cycle_table, settle_quantum
from tritonchaos.summary import FinishedRun, is_memory
from tritonchaos.summary.curves import TREATMENT, Curve, Line, curves, outline
from tritonchaos.summary.faults import fault_bands, faults_of
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


def charts_data(run: FinishedRun, texts: Texts) -> dict[str, Any]:
    """Return the post-unload curves with what lies behind them."""
    bands = [band for band in fault_bands(faults_of(run.history)) if band.faults]
    parts = outline(cycle_table(run.history))
    return {
        "cycles": len(run.rows),
        "interleaved": parts.is_interleaved,
        "stretches": [[first, last, texts.number(phase)] for first, last, phase in parts.stretches[:_MOST_BANDS]],
        "bands": [
            [band.first, band.last, texts.number("; ".join(band.faults))]
            for band in (bands if len(bands) <= _MOST_BANDS else [])
        ],
        "restarts": [list(found) for found in parts.restarts[:_MOST_BANDS]],
        "curves": [_curve(curve, curve.metric in run.metrics) for curve in curves(run)],
    }


def _curve(curve: Curve, is_shown_first: bool) -> dict[str, Any]:
    at_most = _POINTS_PER_ARM if is_shown_first else _POINTS_BESIDE
    kept = kept_readings(curve, at_most)
    unit, size = unit_of(curve.metric, int(curve.values.max()))
    marks = curve.marks[kept]
    return {
        "metric": curve.metric,
        "unit": unit,
        "size": size,
        "span": _LEAST_QUANTA * settle_quantum(curve.metric),
        "places": curve.places[kept].tolist(),
        "values": curve.values[kept].tolist(),
        "arms": (marks & TREATMENT).tolist(),
        "flags": (marks >> 1).tolist(),
        "readings": len(curve.values),
        "baseline": curve.baseline,
        "line": _line(curve.line, at_most) if curve.line else None,
    }


def kept_readings(curve: Curve, at_most: int) -> list[int]:
    """Choose readings so that neither arm's spikes hide behind the other's; ascending."""
    kept: set[int] = set()
    for arm in Arm:
        of_arm = curve.of_arm(arm)
        kept.update(of_arm[thin(curve.values[of_arm], at_most)].tolist())
    return sorted(kept)


def _line(line: Line, at_most: int) -> dict[str, Any]:
    """The places with estimate, low and high; straight between them but for the other arm's cycles."""
    corners = line.corners()
    if len(corners) > at_most:
        corners = corners[:: len(corners) // at_most + 1] + corners[-1:]
    points = [[int(line.places[at]), *(round(value) for value in line.at(at))] for at in corners]
    return {"growth": line.is_growth, "per": line.per, "treatment": line.arm is Arm.TREATMENT, "points": points}


def samples_data(history: History, first: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
    """Return the samples of the sampling thread over time, as stamps in ms and values."""
    found = []
    for metric in dict.fromkeys([*first, *others]):
        if metric in history.samples:
            at_most = _SAMPLES if metric in first else _SAMPLES_BESIDE
            found.append(_samples(metric, as_series(history.samples[metric]), at_most))
    return found


def _samples(metric: str, series: SampleSeries, at_most: int) -> dict[str, Any]:
    kept = thin(series.values, at_most)
    unit, size = unit_of(metric, max(series.values, default=0))
    return {
        "metric": metric,
        "unit": unit,
        "size": size,
        "span": _LEAST_QUANTA * settle_quantum(metric),
        "times": [round(series.times_ns[at] / 1e6, 1) for at in kept],
        "values": [series.values[at] for at in kept],
        "samples": len(series),
    }
