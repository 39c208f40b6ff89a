"""Bytes per cycle of a staircase, with an interval."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tritonchaos.growth.steps import FloorStep

IRREGULAR: Final = 0.3  # gaps whose standard deviation is above this share of their mean are irregular
_NORMAL: Final = 1.959964  # 97.5 % point of the standard normal


@dataclass(frozen=True, slots=True)
class Rate:
    """Growth per treatment cycle, in bytes, with its 95 % interval."""

    bytes_per_cycle: float
    low: float
    high: float


def gaps(steps: Sequence[FloorStep]) -> list[int]:
    """Return the treatment cycles between steps, the first counted from the start; shape [steps]."""
    clocks = [0, *(step.clock for step in steps)]
    return [after - before for before, after in itertools.pairwise(clocks)]


def are_irregular(steps: Sequence[FloorStep]) -> bool:
    """Say whether the steps come at times that no fixed period explains."""
    between = gaps(steps)
    return len(between) > 1 and statistics.stdev(between) > IRREGULAR * statistics.mean(between)


def growth_rate(steps: Sequence[FloorStep]) -> Rate | None:
    """Estimate growth per treatment cycle from the steps after the first one; None with fewer than two steps.

    The interval of regular steps is one mean step over the whole span, as one step may be due at either end; of
    irregular ones it is Student's t over the growth of each cycle.
    """
    span = steps[-1].clock - steps[0].clock if steps else 0
    if span < 1:
        return None
    sizes = [step.size for step in steps[1:]]
    rate = sum(sizes) / span
    if not are_irregular(steps):
        margin = statistics.mean(sizes) / span
    else:
        margin = _student_t(len(steps) - 1) * _standard_error(steps, span)
    return Rate(rate, rate - margin, rate + margin)


def _standard_error(steps: Sequence[FloorStep], span: int) -> float:
    per_cycle = [0] * span
    for step in steps[1:]:
        per_cycle[step.clock - steps[0].clock - 1] += step.size
    return float(statistics.stdev(per_cycle) / span**0.5) if span > 1 else float(per_cycle[0])


def _student_t(freedom: int) -> float:
    """Return the 97.5 % point of Student's t, within 1 % from 3 degrees of freedom.

    Source: Cornish-Fisher expansion, Abramowitz and Stegun 26.7.5.
    """
    z = _NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms)))
