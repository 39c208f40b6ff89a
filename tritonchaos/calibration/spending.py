"""Divides the budget: which trial comes next, and what was left out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from tritonchaos.calibration.claims import AGREEING_RUNS, LEAST_RUNS, NEAR_THE_LIMIT_RUNS
from tritonchaos.calibration.outcomes import Outcome
from tritonchaos.calibration.trials import Goal, Kind, Trial, early_goals, first_stage, later_goals, leaks, quick_goals

# Seconds that a run is taken to last before one has been seen: a boot, some 50 cycles, a stop.
FIRST_GUESS_S: Final = 3.0
# A size that was missed is not claimed whatever comes; a second run tells a miss from bad luck.
_MISSES: Final = 2
_VOID_RUNS: Final = 3


def least_budget_s(variants: Sequence[str], run_s: float = FIRST_GUESS_S) -> float:
    """Return the seconds that the first claim of each variant takes, if a run takes so long."""
    runs = sum(goal.runs for variant in variants for goal in first_stage(variant, LEAST_RUNS))
    return runs * run_s


def next_trial(variants: Sequence[str], done: Sequence[Outcome], remaining_s: float) -> Trial | None:
    """Return the most telling trial that is still wanted and fits; None: the budget, or the list, is used up."""
    counts = Counter(outcome.trial for outcome in done if not outcome.void)
    for goal in wanted(variants, done):
        if counts[goal.trial] < goal.runs and not _is_settled(goal.trial, done):
            if expected_s(goal.trial, done) <= remaining_s:
                return goal.trial
            if goal in _needed(variants):
                return None  # what any claim needs comes first, or nothing does
    return None


def wanted(variants: Sequence[str], done: Sequence[Outcome]) -> list[Goal]:
    """Return all goals, those of the variants in turn; the limits of what is seen come before more of everything."""
    early = _in_turn([early_goals(variant, LEAST_RUNS) for variant in variants])
    quick = _in_turn([quick_goals(variant, AGREEING_RUNS) for variant in variants])
    later = _in_turn([later_goals(variant) for variant in variants])
    return [*early, *near_the_limit(variants, done), *quick, *later]


def _in_turn(each: Sequence[Iterable[Goal]]) -> list[Goal]:
    return [goal for together in itertools.zip_longest(*each) for goal in together if goal is not None]


def near_the_limit(variants: Sequence[str], done: Sequence[Outcome]) -> list[Goal]:
    """Return the sizes that were always found, next to one that was missed: a claim on them rests on more runs."""
    missed = {outcome.trial for outcome in done if outcome.trial.kind is Kind.LEAK and _missed(outcome)}
    return [
        Goal(larger, NEAR_THE_LIMIT_RUNS)
        for variant in variants
        for larger, smaller in itertools.pairwise(leaks(variant))
        if smaller in missed and larger not in missed
    ]


def _needed(variants: Sequence[str]) -> list[Goal]:
    return [goal for variant in variants for goal in first_stage(variant, LEAST_RUNS)]


def expected_s(trial: Trial, done: Sequence[Outcome]) -> float:
    """Return how long a run of a trial will take: as its longest yet, else as the longest of its variant."""
    same = [outcome.duration_s for outcome in done if outcome.trial == trial]
    alike = [outcome.duration_s for outcome in done if outcome.trial.variant == trial.variant]
    return max(same or alike or [FIRST_GUESS_S])


def _is_settled(trial: Trial, done: Sequence[Outcome]) -> bool:
    """Say whether more runs of a trial tell nothing new: a leak was missed twice, or it never works."""
    runs = [outcome for outcome in done if outcome.trial == trial]
    if sum(bool(outcome.void) for outcome in runs) >= _VOID_RUNS:
        return True
    return trial.kind is Kind.LEAK and sum(_missed(outcome) for outcome in runs) >= _MISSES


def _missed(outcome: Outcome) -> bool:
    return not outcome.void and all(verdict.word != "LEAK" for verdict in outcome.verdicts.values())


def left_out(variants: Sequence[str], done: Sequence[Outcome]) -> list[str]:
    """Say of each trial that has too few runs how many there were."""
    counts = Counter(outcome.trial for outcome in done if not outcome.void)
    trials = dict.fromkeys(goal.trial for goal in wanted(variants, done))
    least = {trial: LEAST_RUNS if trial.kind is Kind.LEAK else 2 for trial in trials}
    return [
        f"{trial.variant}: {trial.name}, {counts[trial]} of the {least[trial]} runs that say something"
        for trial in trials
        if counts[trial] < least[trial] and not _is_settled(trial, done)
    ]
