"""Compares findings and checks: what is new, what is fixed, and where it cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import comb
from typing import Final

from tritonchaos.comparing.judgements import (
    Check,
    are_accepted,
    assessments_of,
    checks_of,
    findings_of,
    growth_of,
    was_judged,
)
from tritonchaos.comparing.records import Kind, Outcome, Row
from tritonchaos.comparing.runs import ComparedRun
from tritonchaos.summary import growth_text, without_folders
from tritonchaos.verdict import Assessment, Finding, Status

# A defect that so many further runs would have shown with this chance, and did not show, is fixed.
_FIXED_AT: Final = 0.95
# Two leaks whose intervals lie apart are still the same one within this factor.
_SAME_WITHIN: Final = 1.1

Runs = Sequence[ComparedRun]


def finding_rows(scenario: str, base: Runs, candidate: Runs) -> Iterator[Row]:
    """Compare each defect that either side has."""
    before, after = findings_of(base), findings_of(candidate)
    for identity in dict.fromkeys([*after, *before]):
        old, new = before.get(identity, []), after.get(identity, [])
        if old and new:
            yield _accepted(_in_both(scenario, old, new, (base, candidate)), new, candidate)
        elif new:
            yield _accepted(_only_in_candidate(scenario, new, (base, candidate)), new, candidate)
        else:
            yield _only_in_base(scenario, old, (base, candidate))


def _accepted(row: Row, new: list[Finding], candidate: Runs) -> Row:
    """Let a finding that the candidate was told to accept decide nothing."""
    if not are_accepted(new, candidate):
        return row
    return replace(row, decides=False, why=f"{row.why}; known and accepted".removeprefix("; "))


def _row(scenario: str, found: list[Finding], outcome: Outcome, base: str, candidate: str, why: str = "") -> Row:
    first = found[0]
    about = f"{first.kind}: {without_folders(first.title)}"
    counts = any(finding.counts for finding in found)
    return Row(scenario, Kind.FINDING, about, outcome, base, candidate, why=why, decides=counts)


def _seen(found: list[Finding], runs: Runs) -> str:
    often = "" if len(runs) == 1 else f" in {len(found)} of {len(runs)} runs"
    grows = [finding for finding in found if finding.bytes_per_cycle is not None]
    return f"{growth_text(grows[0])}{often}" if grows else f"found{often}"


def _in_both(scenario: str, old: list[Finding], new: list[Finding], sides: tuple[Runs, Runs]) -> Row:
    texts = _seen(old, sides[0]), _seen(new, sides[1])
    apart = _apart(old, new)
    if apart is not None:
        return _row(scenario, new, apart, *texts)
    often = _oftener((len(old), len(sides[0])), (len(new), len(sides[1])))
    if often is not None:
        return _row(scenario, new, often, *texts, "the numbers of runs that have it differ (Fisher's exact test, 1 %)")
    return _row(scenario, new, Outcome.SAME, *texts)


def _apart(old: list[Finding], new: list[Finding]) -> Outcome | None:
    """Say which growth is larger, if the intervals of all runs lie apart."""
    before = [finding.interval_bytes_per_cycle for finding in old if finding.interval_bytes_per_cycle]
    after = [finding.interval_bytes_per_cycle for finding in new if finding.interval_bytes_per_cycle]
    if not before or not after:
        return None
    if min(low for low, _ in after) > _SAME_WITHIN * max(high for _, high in before):
        return Outcome.WORSE
    if min(low for low, _ in before) > _SAME_WITHIN * max(high for _, high in after):
        return Outcome.BETTER
    return None


def _oftener(old: tuple[int, int], new: tuple[int, int]) -> Outcome | None:
    if fisher(new, old) < 0.01:
        return Outcome.WORSE
    return Outcome.BETTER if fisher(old, new) < 0.01 else None


def fisher(more: tuple[int, int], less: tuple[int, int]) -> float:
    """Return the one-sided p-value of Fisher's exact test.

    Args:
        more: (runs with the finding, runs) of the side that may have it more often.
        less: The same of the other side.
    """
    (a, m), (b, n) = more, less
    total = comb(m + n, a + b)
    return sum(comb(m, k) * comb(n, a + b - k) for k in range(a, min(m, a + b) + 1)) / total


def _only_in_candidate(scenario: str, new: list[Finding], sides: tuple[Runs, Runs]) -> Row:
    base, candidate = sides
    first, seen = new[0], _seen(new, candidate)
    if not was_judged(base, (first.checker, first.metric)):
        why = f"{first.checker} could not tell in the base"
        return _row(scenario, new, Outcome.CANNOT_TELL, "not judged", seen, why)
    if first.checker == "memory_growth" and first.metric is not None:
        bound = growth_of(base, first.metric)
        low = min((interval[0] for f in new if (interval := f.interval_bytes_per_cycle)), default=0.0)
        if bound.is_stable and low <= bound.high:
            why = "the base would have missed a leak of this size"
            return _row(scenario, new, Outcome.CANNOT_TELL, "not found", seen, why)
    return _row(scenario, new, Outcome.NEW, "not found", seen)


def _only_in_base(scenario: str, old: list[Finding], sides: tuple[Runs, Runs]) -> Row:
    base, candidate = sides
    first, seen = old[0], _seen(old, base)
    if not was_judged(candidate, (first.checker, first.metric)):
        why = f"{first.checker} could not tell in the candidate"
        return _row(scenario, old, Outcome.CANNOT_TELL, seen, "not judged", why)
    missed_by_chance = (1 - len(old) / len(base)) ** len(candidate)
    if missed_by_chance > 1 - _FIXED_AT:
        why = f"it comes in {len(old)} of {len(base)} runs; more runs of the candidate would tell"
        # Whatever it is, it is not worse.
        return replace(_row(scenario, old, Outcome.CANNOT_TELL, seen, "not found", why), decides=False)
    return _row(scenario, old, Outcome.FIXED, seen, "not found")


# --- checks --------------------------------------------------------------------------------------


def check_rows(scenario: str, base: Runs, candidate: Runs) -> Iterator[Row]:
    """Compare what each check said, failures apart: those are findings."""
    for run in (run for run in candidate if run.interrupted):
        why = f"{run.folder.name} was interrupted, or it was killed"
        yield Row(scenario, Kind.RUN, "the run", Outcome.CANNOT_TELL, "", "interrupted", why=why)
    for check in dict.fromkeys([*checks_of(base), *checks_of(candidate)]):
        row = _check_row(scenario, check, base, candidate)
        if row is not None:
            yield row


def _check_row(scenario: str, check: Check, base: Runs, candidate: Runs) -> Row | None:
    before, after = assessments_of(base, check), assessments_of(candidate, check)
    about = f"{check[0]} [{check[1]}]" if check[1] else check[0]
    counts = any(one.counts for one in (*before, *after))
    old, new = _status(before), _status(after)
    if Status.FAIL.value in new:
        return None
    if not after and old == Status.UNKNOWN.value:
        return None  # such as a longest time that was over in the base alone
    if not after:
        why = "the candidate has no such check any more"
        return Row(scenario, Kind.CHECK, about, Outcome.CANNOT_TELL, old, "not judged", why=why, decides=counts)
    unknown = next((one for one in after if one.status is Status.UNKNOWN), None)
    if unknown is not None:
        why = without_folders(unknown.reason)
        return Row(scenario, Kind.CHECK, about, Outcome.CANNOT_TELL, old, new, why=why, decides=counts)
    if Status.FAIL.value in old:
        return None
    why = "" if old == new else "the candidate passes, so it is not worse"
    return Row(scenario, Kind.CHECK, about, Outcome.SAME, old or "not judged", new, why=why, decides=counts)


def _status(said: Sequence[Assessment]) -> str:
    return ", ".join(sorted({one.status.value for one in said}))
