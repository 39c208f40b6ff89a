"""Judges a history with the checks that its scenario names; needs no server, so it works offline too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tritonchaos.errors import ExitCode, TritonChaosError
from tritonchaos.observations import History, JsonValue, PhaseStopped
from tritonchaos.plugins import CHECKERS, Checker, Follows, Watches
from tritonchaos.scenario import build_plugin, parse_checks
from tritonchaos.summary import FinishedRun, finish, followers
from tritonchaos.verdict import Assessment, Check, Finding, Status, Verdict, judge


def build_checkers(checks: Sequence[tuple[str, Mapping[str, JsonValue]]]) -> list[tuple[str, Checker]]:
    """Make the checkers that a scenario names.

    Raises:
        ScenarioError: A check is unknown here or its fields are not valid.
    """
    return [(name, build_plugin(CHECKERS, name, dict(fields), f"check {name}")) for name, fields in checks]


def find_watch(checkers: Sequence[tuple[str, Checker]]) -> Watches | None:
    """Return the one checker that can say when the evidence is in, if there is one."""
    return next((checker for _, checker in checkers if isinstance(checker, Watches)), None)


def needs_probes(checkers: Sequence[tuple[str, Checker]]) -> bool:
    """Say whether a checker needs the index, readiness and metadata after each load and unload."""
    return any(getattr(checker, "needs_probe", False) for _, checker in checkers)


def wants_trim(checkers: Sequence[tuple[str, Checker]]) -> bool:
    """Say whether a checker needs to know what the server's allocators only keep."""
    return any(getattr(checker, "wants_trim", False) for _, checker in checkers)


def judge_history(history: History) -> FinishedRun:
    """Run the scenario's checks, mark what is already known, and compute what reports show."""
    return finish_judged(history, verdict_of(history))


def verdict_of(history: History) -> Verdict:
    """Run the scenario's checks and mark what is already known."""
    checkers = build_checkers(history.facts.checks)
    _walk_once(history, [checker for _, checker in checkers])
    checks: list[tuple[str, Check]] = [(name, checker.check) for name, checker in checkers]
    return mark_known(mark_cut_short(judge(history, checks), history), history)


def finish_judged(history: History, verdict: Verdict) -> FinishedRun:
    """Compute what reports show of a verdict on a history."""
    exit_code = verdict.exit_code(accept_known=history.facts.accept_known)
    if history.interrupted and exit_code is not ExitCode.FINDINGS:
        exit_code = ExitCode.INTERRUPTED
    _walk_once(history, [])
    return finish(history, verdict, exit_code)


def _walk_once(history: History, checkers: Sequence[Checker]) -> None:
    """Let all who want to see every event of the run see them in one walk."""
    wanted = {**followers(history)}
    for checker in checkers:
        if isinstance(checker, Follows):
            wanted.update(checker.followers())
    try:
        history.follow_all(wanted)
    except TritonChaosError:
        raise
    except Exception:  # the fault of one checker; `judge` names it and asks the others all the same
        return


def judge_with(history: History, checks: str) -> FinishedRun:
    """Judge a run by other checks than its own; its notes say so.

    Args:
        checks: Names parted by commas, or a YAML list as in the scenario's `check`.

    Raises:
        UsageError, ScenarioError: There is no such check, or its fields do not fit.
    """
    chosen = parse_checks(checks, history.facts.checks)
    finished = judge_history(replace(history, facts=replace(history.facts, checks=chosen)))
    own, now = (", ".join(name for name, _ in checks) or "none" for checks in (history.facts.checks, chosen))
    note = f"judged by other checks than the run's own: {now} in place of {own}"
    if own == now:
        note = f"judged by checks with other fields than the run's own: {now}"
    results = dict(finished.results)
    return replace(finished, results={**results, "notes": [*results["notes"], note]})


def mark_cut_short(verdict: Verdict, history: History) -> Verdict:
    """Let a run whose time was over before its end be no pass: what it did not do was not judged."""
    stopped = next((event for event in history.of(PhaseStopped) if event.reason == "time"), None)
    if stopped is None:
        return verdict
    reason = f"the run's longest time was over in phase {stopped.phase}, after {stopped.cycles} of its cycles"
    cut_short = Assessment("max_time", Status.UNKNOWN, reason)
    status = Status.UNKNOWN if verdict.status is Status.PASS else verdict.status
    return replace(verdict, status=status, assessments=(*verdict.assessments, cut_short))


def mark_known(verdict: Verdict, history: History) -> Verdict:
    """Put the address of its report on each finding that the scenario's `known` list names for this server."""
    version = history.facts.target.get("triton_version", "")
    known = [entry for entry in history.facts.known if _is_for(entry, version)]
    if not known:
        return verdict

    def mark(finding: Finding) -> Finding:
        about = next((entry.get("about", "") for entry in known if entry.get("finding") == finding.kind), None)
        return finding if about is None else replace(finding, known=about or "known")

    def mark_all(assessment: Assessment) -> Assessment:
        return replace(assessment, findings=tuple(mark(finding) for finding in assessment.findings))

    return replace(
        verdict,
        assessments=tuple(mark_all(assessment) for assessment in verdict.assessments),
        findings=tuple(mark(finding) for finding in verdict.findings),
    )


def _is_for(entry: Mapping[str, Any], version: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    wanted = entry.get("server", "")
    if not wanted:
        return True
    try:
        return SpecifierSet(wanted).contains(version, prereleases=True)
    except InvalidVersion:  # the server did not say its version, so nothing is known of it
        return False
