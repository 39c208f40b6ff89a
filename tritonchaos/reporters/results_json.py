"""Writes results.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tritonchaos.observations import JsonValue
from tritonchaos.plugins import REPORTERS
from tritonchaos.summary import FinishedRun


def dump(results: Mapping[str, JsonValue]) -> str:
    """Print the results document; `run --json` prints the same."""
    # A lone surrogate (an undecodable file name in a log) cannot be written as UTF-8.
    text = json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace").decode() + "\n"


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class ResultsJson:
    """results.json: everything that was found, for programs."""

    name: ClassVar[str] = "results_json"

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        path = out / "results.json"
        path.write_text(dump(run.results), encoding="utf-8")
        return [path]
