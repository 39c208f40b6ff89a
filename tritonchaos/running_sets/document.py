"""set.json: what became of each run of a set, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonchaos import __version__
from tritonchaos.errors import ExitCode
from tritonchaos.running_sets.records import Entry
from tritonchaos.store import SET_SCHEMA
from tritonchaos.summary import portable


def set_document(set_id: str, entries: Sequence[Entry], exit_code: ExitCode) -> dict[str, Any]:
    """Build what set.json holds; no absolute path and no time of judging is in it."""
    document = {
        "schema": SET_SCHEMA,
        "set_id": set_id,
        "tritonchaos_version": __version__,
        "exit_code": int(exit_code),
        "interrupted": exit_code is ExitCode.INTERRUPTED or any("interrupted" in entry.error for entry in entries),
        "runs": [_entry_document(entry) for entry in entries],
    }
    result: dict[str, Any] = portable(document)
    return result


def _entry_document(entry: Entry) -> dict[str, Any]:
    results = entry.run.finished.results if entry.run is not None else {}
    return {
        "scenario": entry.planned.name,
        "source": entry.planned.source,
        "cell": entry.planned.cell or None,
        "folder": entry.folder or None,
        "exit_code": None if entry.exit_code is None else int(entry.exit_code),
        "verdict": results.get("verdict"),
        "headline": entry.run.finished.headline if entry.run is not None else None,
        "error": entry.error or None,
        "assessments": results.get("assessments", []),
        "findings": results.get("findings", []),
    }
