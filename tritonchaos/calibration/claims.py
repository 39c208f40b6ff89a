"""What may be claimed after some runs of each trial: always less than what was seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tritonchaos.calibration.outcomes import Outcome
from tritonchaos.calibration.trials import AT_MOST, Kind

# Runs that a claim rests on, all of which found the leak. A size next to one that was missed is near the limit of what
# can be seen: there a leak that one run in five misses is found by all of eight with chance 0.17, by five with 0.33.
LEAST_RUNS: Final = 5
NEAR_THE_LIMIT_RUNS: Final = 8
# Runs that took the same number of cycles, each of them: then it is the least that the rule which fired can take.
AGREEING_RUNS: Final = 8
WITHIN: Final = (10, 20, 50, 200)
_MARGIN: Final = 0.25
_LEAST_MARGIN: Final = 2  # cycles


@dataclass(frozen=True, slots=True)
class Seen:
    """How leaks of one size were found on one metric.

    Attributes:
        count: Bytes kept per cycle.
        cycles: Of the runs that found it, how many cycles on trial that took; shape [runs that found it].
        runs: Runs that can be told anything from.
        stable: Runs that said STABLE.
        claimed_cycles: Within how many cycles it may be claimed to be found; None: not at all.
    """

    count: int
    cycles: tuple[int, ...]
    runs: int
    stable: int
    claimed_cycles: int | None

    @property
    def is_missed(self) -> bool:
        """Whether a run did not find it."""
        return len(self.cycles) < self.runs

    @property
    def agrees(self) -> bool:
        """Whether it was found by all of enough runs, after the same number of cycles in each."""
        return not self.is_missed and self.runs >= LEAST_RUNS and len(set(self.cycles)) == 1


def sizes_seen(outcomes: Sequence[Outcome], metric: str) -> list[Seen]:
    """Return how each size of leak was found, the largest first.

    What is claimed of a size is never better than what is claimed of a larger one: if a larger leak took longer, that
    was chance, or something that the smaller one may run into as well.
    """
    counted = [_counted(outcomes, metric, count) for count in _sizes(outcomes)]
    seen: list[Seen] = []
    worst: int | None = 0
    for number, size in enumerate(counted):
        smaller = counted[number + 1] if number + 1 < len(counted) else None
        claimed = _claim(size, smaller) if _may_be_claimed(size, smaller) else None
        if size.is_missed:
            worst = None
        claimed = _not_better_than(worst, claimed)
        worst = worst if claimed is None else claimed
        seen.append(replace(size, claimed_cycles=_within_a_run(claimed)))
    return seen


def _within_a_run(claimed: int | None) -> int | None:
    """What needs more cycles than a run has would not be found by every run."""
    return None if claimed is None or claimed > AT_MOST else claimed


def _sizes(outcomes: Sequence[Outcome]) -> list[int]:
    return sorted({o.trial.count for o in outcomes if o.trial.kind is Kind.LEAK}, reverse=True)


def _counted(outcomes: Sequence[Outcome], metric: str, count: int) -> Seen:
    verdicts = [
        outcome.verdicts[metric]
        for outcome in outcomes
        if outcome.trial.kind is Kind.LEAK and outcome.trial.count == count and metric in outcome.verdicts
    ]
    found = tuple(verdict.cycles for verdict in verdicts if verdict.word == "LEAK")
    return Seen(count, found, len(verdicts), sum(verdict.word == "STABLE" for verdict in verdicts), None)


def runs_needed(smaller: Seen | None) -> int:
    """Return the runs that a claim rests on, by how the next smaller size was found."""
    return NEAR_THE_LIMIT_RUNS if smaller is not None and smaller.is_missed else LEAST_RUNS


def _may_be_claimed(size: Seen, smaller: Seen | None) -> bool:
    return not size.is_missed and size.runs >= runs_needed(smaller)


def _not_better_than(worst: int | None, claimed: int | None) -> int | None:
    return None if worst is None or claimed is None else max(worst, claimed)


def _claim(size: Seen, smaller: Seen | None) -> int:
    """Return the cycles to claim: the worst, and a margin, as later runs may be worse than those that were seen.

    No margin where nothing varies: all of eight runs took the same number of cycles, and so did those of the next
    smaller size, so that it is far from where a leak begins to be seen late. That number is then what the rule for such
    leaks takes at the least, by its own arithmetic (13 cycles of host memory, 10 of device memory, 10 and 8 for whole
    models), and a margin on it would be one on nothing.
    """
    if size.agrees and size.runs >= AGREEING_RUNS and smaller is not None and smaller.agrees:
        return size.cycles[0]
    return with_margin(size.cycles)


def with_margin(cycles: Sequence[int]) -> int:
    """Return the worst of the cycles, and a quarter (2 at least) more."""
    worst = max(cycles)
    return worst + max(_LEAST_MARGIN, math.ceil(worst * _MARGIN))


def smallest_within(seen: Sequence[Seen]) -> Mapping[int, Seen | None]:
    """Return for 10, 20, 50 and 200 cycles the smallest leak that may be claimed to be found within them."""
    return {within: _smallest(seen, within) for within in WITHIN}


def _smallest(seen: Sequence[Seen], within: int) -> Seen | None:
    fit = [size for size in seen if size.claimed_cycles is not None and size.claimed_cycles <= within]
    return min(fit, key=lambda size: size.count, default=None)


def headline_claim(seen: Sequence[Seen]) -> Seen | None:
    """Return the claim that a report quotes: the smallest leak within 20 cycles, else within 50, else within 200."""
    smallest = smallest_within(seen)
    return smallest[20] or smallest[50] or smallest[200]
