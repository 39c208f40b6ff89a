"""Rules that are in use elsewhere, for comparison: each judges 60 cycles, about as many as the growth test takes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from itertools import pairwise

from tests.growth.series import Series

Detector = Callable[[Series], tuple[str, float | None]]

_MB = 1_000_000
SEEN = 60  # treatment cycles


def _treated(series: Series) -> list[int]:
    return [value for value, arm in zip(series.values, series.arms, strict=True) if arm == "T"][:SEEN]


def last_against_first(series: Series) -> tuple[str, float | None]:
    """Last reading more than four quanta above the first, as scripts and the HTTP tests of Triton QA do it."""
    values = _treated(series)
    grown = values[-1] - values[0]
    return _verdict(grown > 4 * series.quantum), grown / max(1, len(values) - 1)


def five_of_six_rise(series: Series) -> tuple[str, float | None]:
    """Of seven readings at equal distances, at least five lie above the one before."""
    values = _treated(series)
    chosen = [values[at * (len(values) - 1) // 6] for at in range(7)]
    rises = sum(after > before for before, after in pairwise(chosen))
    return _verdict(rises >= 5), (values[-1] - values[0]) / max(1, len(values) - 1)


def massif_rule(series: Series) -> tuple[str, float | None]:
    """Second half, 5 % cut at both ends: maximum more than 100 MB above the mean.

    Source: Triton QA, qa/common/check_massif_log.py; fewer than 5 snapshots are "no growth" there too.
    """
    values = _treated(series)
    half = sorted(values[len(values) // 2 :])
    cut = len(half) // 20
    kept = half[cut : len(half) - cut] if cut else half
    if len(values) < 5:
        return "STABLE", None
    return _verdict(max(kept) - statistics.fmean(kept) > 100 * _MB), None


def least_squares(series: Series) -> tuple[str, float | None]:
    """Slope of a straight line, more than three standard errors above 0 and more than a quantum over the run."""
    values = _treated(series)
    count = len(values)
    if count < 4:
        return "STABLE", None
    middle, mean = (count - 1) / 2, statistics.fmean(values)
    squares = sum((at - middle) ** 2 for at in range(count))
    slope = sum((at - middle) * (value - mean) for at, value in enumerate(values)) / squares
    rest = sum((value - mean - slope * (at - middle)) ** 2 for at, value in enumerate(values))
    error = math.sqrt(rest / (count - 2) / squares)
    return _verdict(slope > 3 * error and slope * count > series.quantum), slope


def mann_kendall(series: Series) -> tuple[str, float | None]:
    """Mann-Kendall at 1 %, and the Theil-Sen slope makes more than a quantum over the run."""
    values = _treated(series)
    count = len(values)
    slopes = [(values[j] - values[i]) / (j - i) for i in range(count) for j in range(i + 1, count)]
    if count < 4:
        return "STABLE", None
    score = sum(slope > 0 for slope in slopes) - sum(slope < 0 for slope in slopes)
    ties = [values.count(value) for value in set(values)]
    variance = (count * (count - 1) * (2 * count + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    slope = statistics.median(slopes)
    is_rising = variance > 0 and (score - 1) / math.sqrt(variance) > 2.326
    return _verdict(is_rising and slope * count > series.quantum), slope


def page_hinkley(series: Series) -> tuple[str, float | None]:
    """Page-Hinkley: readings lie above their mean so far by more than 20 quanta in sum."""
    values = _treated(series)
    mean, total, least = float(values[0]), 0.0, 0.0
    for number, value in enumerate(values, 1):
        mean += (value - mean) / number
        total += value - mean - series.quantum / 2
        least = min(least, total)
        if total - least > 20 * series.quantum:
            return "LEAK", None
    return "STABLE", None


def _verdict(is_leak: bool) -> str:
    return "LEAK" if is_leak else "STABLE"


USUAL: dict[str, Detector] = {
    "last against first": last_against_first,
    "five of six rise": five_of_six_rise,
    "massif rule (Triton QA)": massif_rule,
    "least squares": least_squares,
    "Mann-Kendall, Theil-Sen": mann_kendall,
    "Page-Hinkley": page_hinkley,
}
