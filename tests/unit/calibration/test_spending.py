"""Dividing the budget: the most telling run first, and an account of what was left out."""

from __future__ import annotations

import pytest

from tests.calibration_outcomes import clean, leak, outcome
from tritonchaos.calibration.calibrating import check_budget
from tritonchaos.calibration.claims import AGREEING_RUNS, LEAST_RUNS, NEAR_THE_LIMIT_RUNS
from tritonchaos.calibration.outcomes import Outcome, Verdict
from tritonchaos.calibration.spending import expected_s, least_budget_s, left_out, next_trial, wanted
from tritonchaos.calibration.trials import DEVICE, HOST, VARIANTS, WHOLE_MODEL, Kind, Trial
from tritonchaos.errors import UsageError
from tritonchaos.units import KIB, MIB

FIRST = [Trial(HOST, Kind.CLEAN), *[Trial(HOST, Kind.LEAK, MIB)] * LEAST_RUNS]


def spend(budget_s: float, each_s: float, smallest: int, variants: tuple[str, ...] = (HOST,)) -> list[Outcome]:
    """Spend a budget on a machine that finds leaks from a size on."""
    done: list[Outcome] = []
    while (trial := next_trial(variants, done, budget_s)) is not None:
        is_found = trial.kind is Kind.LEAK and trial.count >= smallest
        word = "LEAK" if is_found else "INCONCLUSIVE" if trial.kind is Kind.LEAK else "STABLE"
        done.append(Outcome(trial, "instance_initialize", "", each_s, verdicts={"m": Verdict(word, 13)}))
        budget_s -= each_s
    return done


def test_what_any_claim_needs_comes_first() -> None:
    assert [outcome.trial for outcome in spend(600, 2, 4 * KIB)][: len(FIRST)] == FIRST


def test_host_and_device_take_turns() -> None:
    trials = [outcome.trial for outcome in spend(600, 2, 4 * KIB, VARIANTS)]
    assert {trial.variant for trial in trials[:2]} == set(VARIANTS)
    both = {Trial(HOST, Kind.LEAK, MIB), Trial(DEVICE, Kind.LEAK, 2 * MIB)}
    assert [trial in both for trial in trials[2 : 2 + 2 * LEAST_RUNS]] == [True] * 2 * LEAST_RUNS


def test_with_time_enough_everything_is_run_ten_times_and_it_ends() -> None:
    done = spend(100_000, 2, 4 * KIB)
    counts = {trial: sum(outcome.trial == trial for outcome in done) for trial in {outcome.trial for outcome in done}}
    assert set(counts.values()) == {10}
    assert left_out((HOST,), done) == []


def test_a_size_that_was_missed_twice_is_not_tried_again() -> None:
    done = spend(100_000, 2, 64 * KIB)
    assert sum(outcome.trial.count == 16 * KIB for outcome in done) == 2
    assert left_out((HOST,), done) == []


def test_the_limit_of_what_is_seen_is_looked_at_before_there_is_more_of_everything() -> None:
    trials = [outcome.trial for outcome in spend(100_000, 2, 64 * KIB)]
    at_the_limit = [number for number, trial in enumerate(trials) if trial.count == 64 * KIB]
    others = [number for number, trial in enumerate(trials) if trial.count == 4 * MIB]
    assert at_the_limit[NEAR_THE_LIMIT_RUNS - 1] < others[LEAST_RUNS]


def test_the_leak_that_is_found_soonest_is_tried_until_its_runs_agree_before_there_is_more_of_everything() -> None:
    trials = [outcome.trial for outcome in spend(100_000, 2, 64 * KIB)]
    quick = [number for number, trial in enumerate(trials) if trial.count == WHOLE_MODEL]
    others = [number for number, trial in enumerate(trials) if trial.count == 4 * MIB]
    assert quick[AGREEING_RUNS - 1] < others[LEAST_RUNS]


def test_the_budget_is_kept_where_runs_take_as_long_as_before() -> None:
    assert sum(outcome.duration_s for outcome in spend(60, 7, 4 * KIB)) <= 60


def test_a_trial_that_never_works_is_given_up() -> None:
    void = [clean(void="crash: the server died")] * 3
    assert next_trial((HOST,), void, 100) == Trial(HOST, Kind.LEAK, MIB)


def test_a_slow_machine_gets_no_further_than_what_any_claim_needs() -> None:
    assert next_trial((HOST,), [clean(duration_s=50.0)], 40) is None


def test_a_run_is_expected_to_take_as_long_as_the_longest_like_it() -> None:
    trial = Trial(HOST, Kind.LEAK, MIB)
    done = [clean(duration_s=9.0), leak(MIB, 13, duration_s=2.0), leak(MIB, 13, duration_s=4.0)]
    assert expected_s(trial, done) == 4
    assert expected_s(Trial(HOST, Kind.LEAK, KIB), done) == 9


def test_what_was_left_out_is_named_with_how_much_was_done() -> None:
    told = left_out((HOST,), [clean(), *[leak(MIB, 13)] * 5, outcome(Kind.CACHE, MIB, "STABLE", 50)])
    assert "planted: clean twin, 1 of the 2 runs that say something" in told
    assert "planted: leak of 64 KiB, 0 of the 5 runs that say something" in told
    assert not any("leak of 1 MiB" in line for line in told)


def test_a_budget_too_small_for_anything_is_refused_with_what_is_needed() -> None:
    least = least_budget_s((HOST,))
    check_budget(least, (HOST,))
    with pytest.raises(UsageError, match=f"found 5 s, too little for anything; expected at least {least:.0f} s"):
        check_budget(5, (HOST,))
    with pytest.raises(UsageError, match=f"expected at least {2 * least:.0f} s"):
        check_budget(least, VARIANTS)


def test_each_goal_asks_for_no_fewer_runs_than_the_one_before_it_of_the_same_trial() -> None:
    asked: dict[Trial, int] = {}
    for goal in wanted(VARIANTS, []):
        assert goal.runs >= asked.get(goal.trial, 0) or goal.runs < AGREEING_RUNS
        asked[goal.trial] = max(goal.runs, asked.get(goal.trial, 0))
    assert set(asked.values()) == {10}
