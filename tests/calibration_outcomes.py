"""Outcomes of runs in a few words, for tests of what is made of them."""

from __future__ import annotations

from typing import Any

from tritonchaos.calibration.outcomes import Outcome, Verdict
from tritonchaos.calibration.trials import HOST, Kind, Trial
from tritonchaos.units import KIB

METRIC = "host_private_bytes"


def outcome(kind: Kind, count: int, word: str, cycles: int, **more: Any) -> Outcome:
    variant, metric = more.pop("variant", HOST), more.pop("metric", METRIC)
    fields: dict[str, Any] = {
        "place": "instance_initialize",
        "folder": "001",
        "duration_s": 2.0,
        "verdicts": {metric: Verdict(word, cycles, 2.0 * KIB if word == "STABLE" else None)},
        "settle_ns": (20_000_000, 30_000_000),
        "cycle_ns": (25_000_000,) * cycles,
        "noise": {metric: 4 * KIB},
    }
    return Outcome(Trial(variant, kind, count), **{**fields, **more})


def leak(count: int, cycles: int, word: str = "LEAK", **more: Any) -> Outcome:
    return outcome(Kind.LEAK, count, word, cycles, **more)


def clean(**more: Any) -> Outcome:
    return outcome(Kind.CLEAN, 0, "STABLE", 50, **more)
