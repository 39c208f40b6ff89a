"""Writes junit.xml, which every CI system reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tritonchaos.plugins import REPORTERS
from tritonchaos.reporters.attachments import attachments
from tritonchaos.summary import (
    Case,
    FinishedEntry,
    FinishedRun,
    FinishedSet,
    Outcome,
    duration_s,
    printable,
    set_of_one,
    without_folders,
)

if TYPE_CHECKING:
    from junitparser import JUnitXml, TestCase, TestSuite


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class JUnit:
    """junit.xml for CI: scenario = suite, check = case; what cannot be told is an error, never a pass."""

    name: ClassVar[str] = "junit"
    comes_last: ClassVar[bool] = True

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        return self.render_set(set_of_one(run), out)

    def render_set(self, done: FinishedSet, out: Path) -> list[Path]:
        path = out / "junit.xml"
        document(done, out).write(str(path), pretty=True)
        return [path]


def document(done: FinishedSet, out: Path) -> JUnitXml:
    """Build the document of a set, or of a run as a set of one.

    Args:
        out: Where it will lie; the files beside it that are there become attachments.
    """
    from junitparser import JUnitXml

    xml = JUnitXml(_text(done.set_id))
    for entry in done.entries:
        xml.append(_suite(entry, out))  # add_testsuite would merge suites that look alike
    xml.update_statistics()
    return xml


def _suite(entry: FinishedEntry, out: Path) -> TestSuite:
    from junitparser import TestSuite

    suite = TestSuite(_text(entry.title))
    if entry.run is not None:
        suite.timestamp = _stamp(entry.run.history.facts.started_utc)
        for name, value in _properties(entry.run):
            suite.add_property(_text(name), _text(value))
    beside = tuple(name for name, _ in attachments(entry, out))
    for name in beside:
        suite.add_property("attachment", _text(name))
    took_s = duration_s(entry.run) if entry.run is not None else 0.0
    cases = entry.cases()
    # The cases are judged together from one recording, so the first of them has all the time.
    suite.add_testcases([_case(entry, case, 0.0 if n else took_s, beside) for n, case in enumerate(cases)])
    return suite


def _case(entry: FinishedEntry, case: Case, took_s: float, beside: tuple[str, ...]) -> TestCase:
    from junitparser import Error, Failure, Skipped, TestCase

    shown = TestCase(_text(case.name), _text(f"tritonchaos.{entry.title}"), round(took_s, 3))
    kinds = {Outcome.FAILED: Failure, Outcome.ERROR: Error, Outcome.SKIPPED: Skipped}
    if case.outcome in kinds:
        result = kinds[case.outcome](_text(case.message), _text(case.kind or case.outcome.value))
        result.text = _text("\n".join((case.message, *case.lines)))
        shown.result = [result]
    said = [] if case.outcome in kinds else [case.message, *case.lines]
    if case.outcome in (Outcome.FAILED, Outcome.ERROR):
        # This is how the JUnit Attachments plug-in of Jenkins and GitLab's "Unit test reports" name a file.
        said += [f"[[ATTACHMENT|{name}]]" for name in beside]
    if said:
        shown.system_out = _text("\n".join(said))
    return shown


def _properties(run: FinishedRun) -> Iterator[tuple[str, str]]:
    results = run.results
    yield from ((name, str(results[name])) for name in ("run_id", "verdict", "exit_code", "seed"))
    yield "tritonchaos_version", results["tritonchaos_version"]
    yield "headline", run.headline
    yield from ((f"target.{name}", str(value)) for name, value in results["target"].items())
    yield from ((f"variant.{model}", variant) for model, variant in results["variants"].items())
    yield from ((f"finding.{finding.id}", without_folders(finding.title)) for finding in run.verdict.findings)


def _stamp(started_utc: str) -> str:
    """Print the start in UTC and without its zone, as the usual schema of JUnit files wants it."""
    try:
        started = datetime.fromisoformat(started_utc.replace("Z", "+00:00"))
    except ValueError:
        return _text(started_utc)
    return started.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def _text(text: str) -> str:
    """Make a text fit for XML 1.0, which has no place for control characters and halves of characters."""
    return printable(text)
