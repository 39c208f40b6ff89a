"""Intervals that hold what they promise, also where a machine drifts and jumps."""

from __future__ import annotations

import math
import random

import pytest

from tritonchaos.comparing.measured_rows import Tolerance, judge_shift
from tritonchaos.comparing.records import Outcome
from tritonchaos.comparing.statistics import Shift, batch_medians, paired_shift, shift, shift_of_runs


def test_the_estimate_is_the_difference_and_outliers_do_not_move_it() -> None:
    base = [10.0 + number / 100 for number in range(40)]
    candidate = [value + 5 for value in base]
    candidate[3] = 10_000.0
    found = shift(base, candidate)
    assert found.estimate == pytest.approx(5.0, abs=0.02)
    assert found.low < 5 < found.high
    assert found.high - found.low < 0.4


@pytest.mark.parametrize(("m", "n"), [(0, 0), (1, 1), (3, 2), (2, 40)])
def test_too_few_values_give_no_bound(m: int, n: int) -> None:
    found = shift([1.0] * m, [2.0] * n)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_the_interval_of_independent_values_holds_the_truth_in_99_percent() -> None:
    draws = random.Random(7)
    held = 0
    for _ in range(400):
        base = [draws.lognormvariate(0, 1) for _ in range(25)]
        candidate = [draws.lognormvariate(0, 1) + 0.7 for _ in range(30)]
        found = shift(base, candidate)
        held += found.low <= 0.7 <= found.high
    assert held >= 390


def test_the_interval_of_pairs_holds_the_truth_in_99_percent() -> None:
    draws = random.Random(8)
    held = 0
    for _ in range(400):
        base = [draws.gauss(100, 50) for _ in range(25)]
        candidate = [value + draws.gauss(3, 1) for value in base]
        found = paired_shift(base, [*candidate, 1e9])  # the longer side is cut
        held += found.low <= 3 <= found.high
    assert held >= 390


def test_long_series_are_batched_and_short_ones_are_not() -> None:
    assert list(batch_medians([3, 1, 2])) == [3, 1, 2]
    batched = batch_medians(list(range(6000)))
    assert len(batched) == 60
    assert batched[0] == pytest.approx(49.5)


def test_values_of_runs_span_all_differences() -> None:
    assert shift_of_runs([1, 2, 3], [4, 5, 9]) == Shift(3.0, 1.0, 8.0)


LIMITS = Tolerance(2.0, 20.0)


@pytest.mark.parametrize(
    ("low", "high", "base", "outcome"),
    [
        (-1, 1, 10, Outcome.SAME),
        (21, 30, 10, Outcome.WORSE),
        (19, 30, 10, Outcome.CANNOT_TELL),
        (19, 20, 10, Outcome.SAME),
        (150, 190, 200, Outcome.SAME),  # less than twice
        (201, 300, 200, Outcome.WORSE),
        (-300, -101, 200, Outcome.BETTER),  # less than half
        (-300, -99, 200, Outcome.CANNOT_TELL),
        (-math.inf, math.inf, 10, Outcome.CANNOT_TELL),
    ],
)
def test_a_difference_counts_only_beyond_factor_and_amount(
    low: float, high: float, base: float, outcome: Outcome
) -> None:
    assert judge_shift(Shift((low + high) / 2, low, high), base, LIMITS) is outcome
