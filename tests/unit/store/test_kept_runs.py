"""Runs of released formats stay readable, and say what they said; `tests/recorded/runs/` keeps them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.kept_runs import RUNS
from tritonchaos.judging import judge_history
from tritonchaos.plugins import load_plugins
from tritonchaos.store import open_history

KEPT = sorted(path for path in RUNS.iterdir() if path.is_dir())
load_plugins()


def told(folder: Path) -> dict[str, Any]:
    """What must never change of a kept run; texts may."""
    history = open_history(folder)
    results = judge_history(history).results
    return {
        "verdict": results["verdict"],
        "exit_code": results["exit_code"],
        "findings": sorted([f["kind"], f["metric"] or "", f["position"]["text"]] for f in results["findings"]),
        "assessments": sorted([a["checker"], a["metric"] or "", a["status"]] for a in results["assessments"]),
        "cycles": [[phase["phase"], phase["arm"], phase["cycles"]] for phase in results["phases"]],
        "series_sha256": _digest([phase["post_unload"] for phase in results["phases"]]),
        "readings_sha256": _digest(results["readings"]),
        "events": dict(sorted(Counter(type(event).__name__ for event in history.events).items())),
        "samples": {m: [len(v), v[0][1], v[-1][1]] for m, v in sorted(history.samples.items())},
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_a_kept_run_is_read_and_judged_as_it_was(folder: Path) -> None:
    expected = json.loads((RUNS / f"{folder.name}.expected.json").read_text())
    assert told(folder) == expected


def test_there_is_one_of_each_format() -> None:
    from tritonchaos.store.layout import FORMAT_VERSION

    assert {f"format-{number}" for number in range(1, FORMAT_VERSION + 1)} <= {folder.name for folder in KEPT}


def test_none_of_them_was_written_to() -> None:
    assert not [path for folder in KEPT for path in folder.glob("*-wal")]
    assert not [path for folder in KEPT for path in folder.glob("results.json")]
