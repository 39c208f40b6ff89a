"""What checkers said on each side: statuses by check and metric, findings, and growth per cycle."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tritonchaos.comparing.runs import ComparedRun
from tritonchaos.verdict import Assessment, Finding, Status

Check = tuple[str, str | None]
_LEAK, _STABLE = "LEAK", "STABLE"


def assessments_of(runs: Iterable[ComparedRun], check: Check) -> list[Assessment]:
    """Return all that was said of one check and metric."""
    return [one for run in runs for one in run.assessments if (one.checker, one.metric) == check]


def checks_of(runs: Iterable[ComparedRun]) -> list[Check]:
    """Return the checks and metrics that anything was said of, in order."""
    return list(dict.fromkeys((one.checker, one.metric) for run in runs for one in run.assessments))


def was_judged(runs: Sequence[ComparedRun], check: Check) -> bool:
    """Say whether every run could tell: the check passed or failed in each."""
    for run in runs:
        said = [one.status for one in run.assessments if one.checker == check[0] and one.metric in (None, check[1])]
        if not said or Status.UNKNOWN in said:
            return False
    return True


def findings_of(runs: Iterable[ComparedRun]) -> dict[str, list[Finding]]:
    """Return each defect with its finding in every run that has it."""
    found: dict[str, list[Finding]] = {}
    for run in runs:
        for finding in run.findings:
            found.setdefault(finding.id, []).append(finding)
    return found


def are_accepted(findings: Sequence[Finding], runs: Sequence[ComparedRun]) -> bool:
    """Say whether all of these are known, and the runs were made with `--accept-known`."""
    return all(finding.known for finding in findings) and all(run.facts.accept_known for run in runs)


@dataclass(frozen=True, slots=True)
class Growth:
    """What is known of the growth of one metric on one side, over all its runs.

    Attributes:
        is_leak: A run found a leak.
        is_stable: Every run called it stable.
        low, high: Bytes (per `per`) between which it lies; of stable runs, below what they would have found.
        estimate: Bytes per cycle; None where no leak was measured.
        per: What all this is stated per: "cycle" or "load"; "" where runs differ in it.
    """

    is_leak: bool
    is_stable: bool
    low: float
    high: float
    estimate: float | None = None
    per: str = "cycle"


def growth_of(runs: Sequence[ComparedRun], metric: str) -> Growth:
    """Put the growth of a metric in all runs of a side together; the widest interval counts."""
    said = assessments_of(runs, ("memory_growth", metric))
    units = {one.per for one in said}
    per = units.pop() if len(units) == 1 else ""
    leaks = [finding for one in said for finding in one.findings if finding.bytes_per_cycle is not None]
    if leaks:
        intervals = [finding.interval_bytes_per_cycle or (-math.inf, math.inf) for finding in leaks]
        estimates = sorted(finding.bytes_per_cycle or 0.0 for finding in leaks)
        low, high = min(low for low, _ in intervals), max(high for _, high in intervals)
        return Growth(True, False, low, high, estimates[len(estimates) // 2], per)
    bounds = [one.excluded_bytes_per_cycle for one in said if one.verdict == _STABLE and one.status is Status.PASS]
    if len(said) == len(bounds) == len(runs) and None not in bounds:
        return Growth(False, True, -math.inf, max(bound or 0.0 for bound in bounds), per=per)
    return Growth(False, False, -math.inf, math.inf, per=per)
