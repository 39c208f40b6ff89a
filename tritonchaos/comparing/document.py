"""A comparison as plain values, for programs."""

from __future__ import annotations

import math
from typing import Any, Final

from tritonchaos.comparing.records import Comparison, Row, SideFacts
from tritonchaos.summary import portable

SCHEMA: Final = "tritonchaos.compare/1"


def document(comparison: Comparison) -> dict[str, Any]:
    """Build what `compare --json` prints; no absolute path and no time of comparing is in it."""
    result: dict[str, Any] = portable(
        {
            "schema": SCHEMA,
            "outcome": comparison.word,
            "exit_code": int(comparison.exit_code),
            "headline": comparison.headline,
            "base": _side(comparison.base),
            "candidate": _side(comparison.candidate),
            "rows": [_row(row) for row in comparison.rows],
            "notes": list(comparison.notes),
            "differences": dict(comparison.differences),
        }
    )
    return result


def _side(side: SideFacts) -> dict[str, Any]:
    return {"name": side.name, "runs": side.runs, "facts": {name: list(values) for name, values in side.facts.items()}}


def _row(row: Row) -> dict[str, Any]:
    return {
        "scenario": row.scenario,
        "kind": row.kind.value,
        "about": row.about,
        "outcome": row.outcome.value,
        "decides": row.decides,
        "base": row.base,
        "candidate": row.candidate,
        "difference": _finite(row.difference),
        "interval": None if row.interval is None else [_finite(bound) for bound in row.interval],
        "why": row.why,
    }


def _finite(number: float | None) -> float | None:
    """JSON has no infinity."""
    return None if number is None or not math.isfinite(number) else round(float(number), 3)
