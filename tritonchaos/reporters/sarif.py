"""Writes findings.sarif, which code scanning shows at the lines of the files that they are about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import quote

from tritonchaos import __version__
from tritonchaos.plugins import REPORTERS
from tritonchaos.reporters.finding_places import Place, finding_places
from tritonchaos.summary import FinishedEntry, FinishedRun, FinishedSet, finding_lines, printable, set_of_one
from tritonchaos.summary import without_folders as portable_text
from tritonchaos.verdict import Finding

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_ABOUT: Final = {
    "collateral": "A healthy model suffered from what was done to another.",
    "crash": "The server ended, or printed a fatal signal, although nobody asked it to.",
    "hang": "A call was never answered, or a model stayed LOADING or UNLOADING.",
    "leak": "Memory or another resource grows with each cycle.",
    "leftover": "Something stayed behind after the server or a model had gone.",
    "misleading_error": "An error text names something else than what is wrong.",
    "not_recovered": "What was broken and put right again did not work as before.",
    "over_budget": "More was used than the budget allows.",
    "refused_start": "The server did not start with this repository or these options.",
    "retention": "A step of memory was never given back.",
    "slowdown": "Something took longer than it may.",
    "stale_content": "Content was served that had been replaced.",
    "will_not_stop": "The server did not stop when it was asked to.",
    "wrong_error": "Something was refused with another status or text than documented, or was not refused.",
    "wrong_output": "An inference returned wrong outputs.",
    "wrong_state": "Index, readiness or versions say something else than what is.",
}


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class Sarif:
    """findings.sarif (SARIF 2.1.0): each finding at its line in config.pbtxt and scenario.yaml."""

    name: ClassVar[str] = "sarif"
    by_default: ClassVar[bool] = False

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        return self.render_set(set_of_one(run), out)

    def render_set(self, done: FinishedSet, out: Path) -> list[Path]:
        path = out / "findings.sarif"
        text = json.dumps(document(done, out), indent=2, ensure_ascii=False, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8")
        return [path]


def document(done: FinishedSet, out: Path) -> dict[str, Any]:
    """Build the log: one SARIF run for each run that came to its end.

    Args:
        out: Folder of the run, or of its set; the files that findings point to are relative to it.
    """
    runs = [_run(entry, entry.run, out) for entry in done.entries if entry.run is not None]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": runs}


def _run(entry: FinishedEntry, run: FinishedRun, out: Path) -> dict[str, Any]:
    findings = run.verdict.findings
    kinds = sorted({finding.kind for finding in findings})
    places = finding_places(run.history, findings, out / entry.folder)
    facts = run.history.facts
    driver = {
        "name": "tritonchaos",
        "semanticVersion": facts.tritonchaos_version or __version__,
        "rules": [{"id": kind, "shortDescription": {"text": _ABOUT[kind]}} for kind in kinds],
    }
    inside = f"{entry.folder}/" if entry.folder else ""
    return {
        "tool": {"driver": driver},
        # GitHub tells the uploads of one commit apart by what stands before the last slash.
        "automationDetails": {"id": printable(f"tritonchaos/{entry.title}/{facts.run_id}")},
        "invocations": [
            {
                "executionSuccessful": not run.history.interrupted,
                "exitCode": run.exit_code,
                "startTimeUtc": facts.started_utc.replace("+00:00", "Z"),
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(finding, kinds, places.get(finding.position, ()) if finding.position else (), inside, run)
            for finding in findings
        ],
    }


def _result(
    finding: Finding, kinds: list[str], places: tuple[Place, ...], inside: str, run: FinishedRun
) -> Mapping[str, Any]:
    # Code scanning shows only what has a place; the scenario is what every finding comes from.
    shown = places or (Place("scenario.yaml", 1, "the scenario"),)
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": kinds.index(finding.kind),
        "level": _level(finding),
        "message": {"text": _message(finding)},
        "locations": [_location(shown[0], inside)],
        "partialFingerprints": {"tritonchaosFindingId/v1": finding.id},
        "occurrenceCount": finding.occurrences,
    }
    if shown[1:]:
        result["relatedLocations"] = [
            {"id": number, **_location(place, inside), "message": {"text": printable(place.what)}}
            for number, place in enumerate(shown[1:], 1)
        ]
    if finding.known and run.history.facts.accept_known:
        result["suppressions"] = [{"kind": "external", "justification": printable(finding.known)}]
    return result


def _level(finding: Finding) -> str:
    if not finding.counts:
        return "note"
    return "warning" if finding.undocumented or finding.known else "error"


def _message(finding: Finding) -> str:
    return printable("\n".join((portable_text(finding.title), *finding_lines(finding))))


def _location(place: Place, inside: str) -> dict[str, Any]:
    uri = quote(f"{inside}{place.path}", safe="/-._~")
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": place.line}}}
