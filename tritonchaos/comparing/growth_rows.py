"""Compares growth per cycle, from what the sequential test said on each side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tritonchaos.comparing.judgements import Growth, are_accepted, assessments_of, growth_of
from tritonchaos.comparing.records import Kind, Outcome, Row
from tritonchaos.comparing.runs import ComparedRun
from tritonchaos.summary import amount_text

_CHECKER: Final = "memory_growth"
_SAME_WITHIN: Final = 1.1


def growth_rows(scenario: str, base: Sequence[ComparedRun], candidate: Sequence[ComparedRun]) -> Iterator[Row]:
    """Compare the growth of each metric that was judged on both sides.

    That it cannot be told is said by the row of the check; here it does not count once more.
    """
    metrics = dict.fromkeys(
        one.metric for run in (*base, *candidate) for one in run.assessments if one.checker == _CHECKER and one.metric
    )
    for metric in metrics:
        if assessments_of(base, (_CHECKER, metric)) and assessments_of(candidate, (_CHECKER, metric)):
            row = _row(scenario, metric, growth_of(base, metric), growth_of(candidate, metric))
            leaks = [finding for run in candidate for finding in run.findings if finding.metric == metric]
            yield replace(row, decides=row.decides and not (leaks and are_accepted(leaks, candidate)))


def _row(scenario: str, metric: str, base: Growth, candidate: Growth) -> Row:
    outcome = _outcome(base, candidate)
    difference, interval = _difference(base, candidate)
    return Row(
        scenario,
        Kind.GROWTH,
        f"growth of {metric} per {base.per or 'cycle'}",
        outcome,
        _told(metric, base),
        _told(metric, candidate),
        difference,
        interval,
        decides=outcome is not Outcome.CANNOT_TELL,
    )


def _difference(base: Growth, candidate: Growth) -> tuple[float | None, tuple[float, float] | None]:
    """The difference with its interval where a side grows; one that is STABLE grows by 0, or up to its limit."""
    if (base.is_stable and candidate.is_stable) or not all(_is_known(side) for side in (base, candidate)):
        return None, None
    low = 0.0 if base.estimate is None else base.low
    candidate_low = 0.0 if candidate.estimate is None else candidate.low
    difference = (candidate.estimate or 0.0) - (base.estimate or 0.0)
    return difference, (candidate_low - base.high, candidate.high - low)


def _is_known(growth: Growth) -> bool:
    return growth.estimate is not None or growth.is_stable


def _outcome(base: Growth, candidate: Growth) -> Outcome:
    if base.per != candidate.per or not base.per:
        return Outcome.CANNOT_TELL
    if base.is_stable and candidate.is_stable:
        return Outcome.SAME
    if not (base.is_leak or base.is_stable) or not (candidate.is_leak or candidate.is_stable):
        return Outcome.CANNOT_TELL
    if candidate.is_leak and candidate.low > _SAME_WITHIN * base.high:
        return Outcome.WORSE
    if base.is_leak and base.low > _SAME_WITHIN * candidate.high:
        return Outcome.BETTER
    return Outcome.SAME if base.is_leak and candidate.is_leak else Outcome.CANNOT_TELL


def _told(metric: str, growth: Growth) -> str:
    if growth.estimate is not None:
        low, high = amount_text(metric, growth.low), amount_text(metric, growth.high)
        return f"{amount_text(metric, growth.estimate)} ({low} to {high})"
    return f"less than {amount_text(metric, growth.high)}" if growth.is_stable else "cannot tell"
