"""What is claimed after some runs: less than what was seen, and nothing that a miss speaks against."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calibration_outcomes import METRIC, leak, outcome
from tritonchaos.calibration.claims import (
    AGREEING_RUNS,
    LEAST_RUNS,
    NEAR_THE_LIMIT_RUNS,
    headline_claim,
    sizes_seen,
    smallest_within,
    with_margin,
)
from tritonchaos.calibration.trials import Kind
from tritonchaos.units import KIB, MIB


def claimed(*outcomes) -> dict[int, int | None]:
    return {size.count: size.claimed_cycles for size in sizes_seen(outcomes, METRIC)}


@pytest.mark.parametrize(("cycles", "claim"), [([5, 6, 7, 8, 8], 10), ([13] * 5, 17), ([40, 64, 60, 50, 41], 80)])
def test_the_claim_is_the_worst_run_and_a_margin(cycles: list[int], claim: int) -> None:
    assert with_margin(cycles) == claim
    assert claimed(*(leak(MIB, count) for count in cycles)) == {MIB: claim}


def test_no_margin_where_neither_this_size_nor_the_next_smaller_one_varies() -> None:
    quick = [leak(32 * MIB, 10)] * AGREEING_RUNS
    assert claimed(*quick, *[leak(4 * MIB, 13)] * LEAST_RUNS) == {32 * MIB: 10, 4 * MIB: 17}


@pytest.mark.parametrize(
    ("quick", "next_smaller"),
    [
        ([10] * (AGREEING_RUNS - 1), [13] * LEAST_RUNS),
        ([10] * AGREEING_RUNS, [13] * (LEAST_RUNS - 1)),
        ([10] * AGREEING_RUNS, [13, 13, 13, 13, 14]),
        ([10] * AGREEING_RUNS, []),
    ],
    ids=["too few runs", "too few of the next size", "the next size varies", "no next size"],
)
def test_a_margin_wherever_runs_may_vary(quick: list[int], next_smaller: list[int]) -> None:
    runs = [*(leak(32 * MIB, cycles) for cycles in quick), *(leak(4 * MIB, cycles) for cycles in next_smaller)]
    assert claimed(*runs)[32 * MIB] == 13


def test_too_few_runs_claim_nothing() -> None:
    assert claimed(*[leak(MIB, 10)] * (LEAST_RUNS - 1)) == {MIB: None}


def test_one_miss_of_many_claims_nothing_and_of_smaller_leaks_neither() -> None:
    missed = leak(MIB, 200, "STABLE")
    outcomes = [*[leak(4 * MIB, 10)] * 8, missed, *[leak(MIB, 10)] * 9, *[leak(64 * KIB, 10)] * 9]
    assert claimed(*outcomes) == {4 * MIB: 13, MIB: None, 64 * KIB: None}
    assert [size.stable for size in sizes_seen(outcomes, METRIC)] == [0, 1, 0]


def test_what_is_found_near_the_end_of_a_run_is_not_claimed() -> None:
    assert claimed(*[leak(MIB, 13)] * 5, *[leak(48 * KIB, 172)] * 9) == {MIB: 17, 48 * KIB: None}


def test_a_size_next_to_one_that_was_missed_needs_more_runs() -> None:
    missed = leak(16 * KIB, 200, "INCONCLUSIVE")
    assert claimed(*[leak(64 * KIB, 13)] * (NEAR_THE_LIMIT_RUNS - 1), missed) == {64 * KIB: None, 16 * KIB: None}
    assert claimed(*[leak(64 * KIB, 13)] * NEAR_THE_LIMIT_RUNS, missed) == {64 * KIB: 17, 16 * KIB: None}


def test_a_smaller_leak_is_never_claimed_sooner_than_a_larger_one() -> None:
    outcomes = [*[leak(4 * MIB, 40)] * 5, *[leak(MIB, 10)] * 5]
    assert claimed(*outcomes) == {4 * MIB: 50, MIB: 50}


def test_a_larger_leak_with_too_few_runs_does_not_speak_against_a_smaller_one() -> None:
    assert claimed(leak(4 * MIB, 10), *[leak(MIB, 10)] * 5) == {4 * MIB: None, MIB: 13}


def test_other_trials_and_other_metrics_count_for_nothing() -> None:
    assert claimed(outcome(Kind.CACHE, MIB, "LEAK", 10)) == {}
    assert sizes_seen([leak(MIB, 10)] * 9, "host_rss_bytes")[0].runs == 0


def test_the_smallest_leak_within_so_many_cycles_is_told_and_the_quick_one_is_quoted() -> None:
    seen = sizes_seen([*[leak(MIB, 13)] * 5, *[leak(64 * KIB, 30)] * 5, *[leak(16 * KIB, 100)] * 5], METRIC)
    smallest = {within: size and size.count for within, size in smallest_within(seen).items()}
    assert smallest == {10: None, 20: MIB, 50: 64 * KIB, 200: 16 * KIB}
    quoted = headline_claim(seen)
    assert quoted is not None
    assert quoted.count == MIB


def test_what_is_only_found_late_is_quoted_where_there_is_nothing_else() -> None:
    quoted = headline_claim(sizes_seen([leak(MIB, 100)] * 5, METRIC))
    assert quoted is not None
    assert quoted.claimed_cycles == 125
    assert headline_claim([]) is None


@given(st.lists(st.tuples(st.sampled_from([KIB, MIB, 4 * MIB]), st.integers(1, 200), st.booleans()), max_size=40))
def test_no_claim_is_better_than_any_run(runs: list[tuple[int, int, bool]]) -> None:
    outcomes = [leak(count, cycles, "LEAK" if found else "INCONCLUSIVE") for count, cycles, found in runs]
    for size in sizes_seen(outcomes, METRIC):
        if size.claimed_cycles is not None:
            of_it = [(cycles, found) for count, cycles, found in runs if count == size.count]
            assert all(found and cycles <= size.claimed_cycles for cycles, found in of_it)
