"""A run as the test cases of CI formats: one per check, red where the exit code is not 0 and nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tritonchaos.summary.finding_text import finding_lines
from tritonchaos.summary.finished import FinishedRun
from tritonchaos.summary.texts import without_folders
from tritonchaos.verdict import Assessment, Finding, Status


class Outcome(str, Enum):
    """What became of a test case.

    Attributes:
        ERROR: It cannot be told, which is never a pass.
        SKIPPED: It says something, but changes nothing: a metric that does not count, a finding that was accepted.
    """

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Case:
    """One check of one metric as a test case.

    Attributes:
        name: Unique within its run: the checker, and the metric it is about.
        message: One sentence: why.
        kind: Kind of its first finding, "unknown" for what cannot be told, else "".
        lines: All that is known, for whoever looks closer.
    """

    name: str
    outcome: Outcome
    message: str
    kind: str = ""
    lines: tuple[str, ...] = ()


def run_cases(run: FinishedRun) -> tuple[Case, ...]:
    """Make the cases of a run: "run" (did it come to its end?), then one for each assessment.

    One of them is red (`FAILED`, `ERROR`) exactly where the exit code of the run is not 0.
    """
    accept_known = run.history.facts.accept_known
    cases = [_whole(run), *(_case(assessment, accept_known) for assessment in run.verdict.assessments)]
    return tuple(_told_apart(cases))


def _whole(run: FinishedRun) -> Case:
    if run.history.interrupted:
        return Case("run", Outcome.ERROR, "the run was interrupted, or it was killed", "unknown", (run.headline,))
    if not any(assessment.counts for assessment in run.verdict.assessments):
        return Case("run", Outcome.ERROR, "nothing was judged", "unknown", (run.headline,))
    return Case("run", Outcome.PASSED, f"it came to its end; {run.headline}")


def _case(assessment: Assessment, accept_known: bool) -> Case:
    name = f"{assessment.checker} [{assessment.metric}]" if assessment.metric else assessment.checker
    reason = _sentence(assessment)
    counted = [f for f in assessment.findings if f.counts and not (accept_known and f.known)]
    if counted:
        return Case(name, Outcome.FAILED, _title(counted), counted[0].kind, (reason, *_told(counted)))
    if assessment.findings:
        found = assessment.findings
        why = "already known, accepted" if any(f.counts for f in found) else "does not count"
        return Case(name, Outcome.SKIPPED, f"{why}: {_title(found)}", found[0].kind, (reason, *_told(found)))
    if assessment.status is Status.PASS:
        return Case(name, Outcome.PASSED, reason)
    if not assessment.counts:
        return Case(name, Outcome.SKIPPED, f"does not count: {reason}")
    return Case(name, Outcome.ERROR, reason, "unknown")


def _sentence(assessment: Assessment) -> str:
    cycles = "" if assessment.cycles_used is None else f", {assessment.cycles_used} cycles"
    said = f"{assessment.verdict}{cycles}: {assessment.reason}" if assessment.verdict else assessment.reason
    return without_folders(said)


def _title(findings: Sequence[Finding]) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{findings[0].kind}: {without_folders(findings[0].title)}{more}"


def _told(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        yield ""
        yield f"{finding.kind}: {without_folders(finding.title)}"
        yield from finding_lines(finding)


def _told_apart(cases: Sequence[Case]) -> Iterator[Case]:
    """Number the cases that share a name, as CI systems keep the history of a case by its name."""
    seen: Counter[str] = Counter()
    for case in cases:
        seen[case.name] += 1
        yield case if seen[case.name] == 1 else replace(case, name=f"{case.name} ({seen[case.name]})")


def duration_s(run: FinishedRun) -> float:
    """Return how long the run took until its last event, in seconds."""
    stamps = (getattr(event, "t_ns", None) for event in reversed(run.history.events))
    return next((t_ns for t_ns in stamps if t_ns is not None), 0) / 1e9
