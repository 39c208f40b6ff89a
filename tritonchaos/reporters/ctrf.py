"""Writes ctrf.json, the Common Test Report Format (ctrf.io)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from tritonchaos import __version__
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
)

# The version of the format that this module was written after: ctrf-schema-0.0.json of the npm package ctrf 0.3.0.
SPEC_VERSION: Final = "0.0.0"
_STATUS: Final = {
    Outcome.PASSED: "passed",
    Outcome.FAILED: "failed",
    Outcome.ERROR: "other",
    Outcome.SKIPPED: "skipped",
}


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class Ctrf:
    """ctrf.json, the Common Test Report Format: one test per check; what cannot be told is "other"."""

    name: ClassVar[str] = "ctrf"
    by_default: ClassVar[bool] = False
    comes_last: ClassVar[bool] = True

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        return self.render_set(set_of_one(run), out)

    def render_set(self, done: FinishedSet, out: Path) -> list[Path]:
        path = out / "ctrf.json"
        text = json.dumps(document(done, out), indent=2, ensure_ascii=False, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8")
        return [path]


def document(done: FinishedSet, out: Path) -> dict[str, Any]:
    """Build the document of a set, or of a run as a set of one.

    Args:
        out: Where it will lie; the files beside it that are there become attachments.
    """
    tests = [test for entry in done.entries for test in _tests(entry, out)]
    spans = [_span_ms(entry.run) for entry in done.entries if entry.run is not None]
    counts = {status: sum(test["status"] == status for test in tests) for status in _STATUS.values()}
    summary = {
        "tests": len(tests),
        **{status: counts[status] for status in ("passed", "failed", "skipped")},
        "pending": 0,
        "other": counts["other"],
        "suites": len(done.entries),
        "start": min((start for start, _ in spans), default=0),
        "stop": max((stop for _, stop in spans), default=0),
    }
    return {
        "reportFormat": "CTRF",
        "specVersion": SPEC_VERSION,
        "generatedBy": "tritonchaos",
        "results": {
            "tool": {"name": "tritonchaos", "version": _version(done)},
            "summary": summary,
            "tests": tests,
            "extra": {"id": done.set_id, "exit_code": done.exit_code},
        },
    }


def _version(done: FinishedSet) -> str:
    versions = [entry.run.history.facts.tritonchaos_version for entry in done.entries if entry.run is not None]
    return versions[0] if versions else __version__


def _tests(entry: FinishedEntry, out: Path) -> Iterator[dict[str, Any]]:
    beside = [
        {"name": name.rpartition("/")[2], "contentType": kind, "path": printable(name)}
        for name, kind in attachments(entry, out)
    ]
    for number, case in enumerate(entry.cases()):
        yield {
            "name": printable(case.name),
            "status": _STATUS[case.outcome],
            # All checks judge one recording, so the case `run` has all the time.
            "duration": 0 if number or entry.run is None else round(duration_s(entry.run) * 1000),
            "suite": [printable(entry.title)],
            "testId": printable(f"{entry.title}/{case.name}"),
            "rawStatus": _raw(case),
            "message": printable(case.message),
            **({"trace": printable("\n".join(case.lines))} if case.lines else {}),
            **({"attachments": beside} if beside and case.outcome in (Outcome.FAILED, Outcome.ERROR) else {}),
            **({"extra": _extra(entry.run)} if number == 0 and entry.run is not None else {}),
        }


def _raw(case: Case) -> str:
    return "unknown" if case.outcome is Outcome.ERROR else case.outcome.value


def _extra(run: FinishedRun) -> dict[str, Any]:
    results = run.results
    kept = ("run_id", "verdict", "exit_code", "seed", "tritonchaos_version", "target", "variants")
    return {name: results[name] for name in kept}


def _span_ms(run: FinishedRun) -> tuple[int, int]:
    """Start and end of a run in milliseconds since the Unix epoch."""
    try:
        started = datetime.fromisoformat(run.history.facts.started_utc.replace("Z", "+00:00")).timestamp()
    except ValueError:
        started = 0.0
    return round(started * 1000), round((started + duration_s(run)) * 1000)
