"""The sentence that a reader sees first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tritonchaos.post_unload import Channel, channel
from tritonchaos.summary.document import verdict_word
from tritonchaos.units import format_bytes
from tritonchaos.verdict import Assessment, Finding, Status, Verdict


def headline(verdict: Verdict, cycles: int, interrupted: bool) -> str:
    """Say the verdict and what it rests on in one sentence."""
    word = verdict_word(verdict)
    sentence = {"findings": _findings, "inconclusive": _inconclusive, "pass": _passed}[word](verdict, cycles)
    return f"{word.upper()}{' (interrupted)' if interrupted else ''}: {sentence}"


def _findings(verdict: Verdict, cycles: int) -> str:
    counted = _by_kind([finding for finding in verdict.findings if finding.counts])
    known = sum(1 for finding in verdict.findings if finding.counts and finding.known)
    return f"{counted}{f' ({known} known)' if known else ''}, {_cycles(cycles)}"


def _by_kind(findings: Sequence[Finding]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in Counter(finding.kind for finding in findings).items())


def _inconclusive(verdict: Verdict, cycles: int) -> str:
    unknown = [a for a in verdict.assessments if a.counts and a.status is Status.UNKNOWN]
    if not unknown:
        return f"nothing was judged, {_cycles(cycles)}"
    first, more = unknown[0], len(unknown) - 1
    return f"{_subject(first)}: {first.reason}{f' (and {more} more)' if more else ''}"


def _passed(verdict: Verdict, cycles: int) -> str:
    passed = len({a.checker for a in verdict.assessments if a.counts and a.status is Status.PASS})
    bounds = [
        f"{a.metric} grows by less than {format_bytes(a.excluded_bytes_per_cycle)} per {a.per}"
        for a in verdict.assessments
        if a.counts and a.metric and a.excluded_bytes_per_cycle is not None and channel(a.metric) is not Channel.COUNT
    ]
    checks = f"{passed} check{'s' if passed != 1 else ''} passed over {_cycles(cycles)}"
    return "; ".join([checks, *bounds])


def _subject(assessment: Assessment) -> str:
    return f"{assessment.checker} of {assessment.metric}" if assessment.metric else assessment.checker


def _cycles(cycles: int) -> str:
    return f"{cycles} cycle{'s' if cycles != 1 else ''}"
