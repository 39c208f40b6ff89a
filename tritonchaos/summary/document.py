"""The results document: what results.json holds, in plain values, the same whenever and wherever it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tritonchaos.errors import ExitCode
from tritonchaos.observations import Arm, History, Position, Reading, ServerStarted
from tritonchaos.post_unload import RECORD, CycleReading
from tritonchaos.summary.texts import portable
from tritonchaos.verdict import Assessment, Finding, Ladder, Verdict

SCHEMA: Final = "tritonchaos.results/1"

# Readings of every cycle; they are not named moments of the run.
_WITHIN_CYCLES: Final = frozenset({"loaded", "before_next", RECORD})
_WORDS: Final = {ExitCode.PASS: "pass", ExitCode.FINDINGS: "findings", ExitCode.INCONCLUSIVE: "inconclusive"}


def verdict_word(verdict: Verdict) -> str:
    """Return "pass", "findings" or "inconclusive": what was found, whether or not it is accepted as known."""
    return _WORDS[verdict.exit_code()]


def results_document(
    history: History, verdict: Verdict, exit_code: int, readings: Sequence[CycleReading], notes: Sequence[str]
) -> dict[str, Any]:
    """Build the document; no absolute path and no time of judging is in it."""
    facts = history.facts
    document = {
        "schema": SCHEMA,
        "run_id": facts.run_id,
        "tritonchaos_version": facts.tritonchaos_version,
        "scenario": facts.scenario,
        "seed": facts.seed,
        "verdict": verdict_word(verdict),
        "exit_code": int(exit_code),
        "interrupted": history.interrupted,
        "target": dict(sorted(facts.target.items())),
        "target_skipped": [{"name": name, "why": why} for name, why in facts.target_skipped],
        "variants": dict(facts.variants),
        "server_starts": sum(1 for _ in history.of(ServerStarted)),
        "readings": _named_readings(history),
        "phases": _phases(history, readings),
        "assessments": [_assessment(assessment) for assessment in verdict.assessments],
        "findings": [_finding(finding) for finding in verdict.findings],
        "notes": list(notes),
    }
    result: dict[str, Any] = portable(document)
    return result


def _named_readings(history: History) -> list[dict[str, Any]]:
    return [
        {"name": reading.name, "metric": metric, "bytes": value}
        for reading in history.of(Reading)
        if reading.name not in _WITHIN_CYCLES
        for metric, value in sorted(reading.values.items())
    ]


def _phases(history: History, readings: Sequence[CycleReading]) -> list[dict[str, Any]]:
    """One entry for each phase with cycles, and for each arm of it; warm-up cycles are left out.

    Each series has one value per cycle, None where the metric was not read, shape [cycles]. Latencies of steps with
    `record`, in nanoseconds, are there only where a step has it, and the loads of each cycle only with `amplify`.
    """
    measured = [reading for reading in readings if not reading.is_warm_up]
    metrics = sorted({metric for reading in measured for metric in reading.values})
    latencies = sorted({name for reading in measured for name in reading.latencies})
    entries: list[dict[str, Any]] = []
    for phase in history.facts.phases:
        if phase.kind != "cycles":
            continue
        for arm in (phase.arm,) if phase.arm else (Arm.CONTROL, Arm.TREATMENT):
            cycles = [r for r in measured if (r.phase, r.arm) == (phase.name, arm)]
            series = {metric: [cycle.values.get(metric) for cycle in cycles] for metric in metrics}
            entry: dict[str, Any] = {
                "phase": phase.name,
                "arm": arm.value,
                "cycles": len(cycles),
                "post_unload": series,
            }
            if phase.amplify:
                entry["loads"] = [cycle.loads for cycle in cycles]
            if latencies:
                entry["latency"] = {name: [cycle.latencies.get(name) for cycle in cycles] for name in latencies}
            entries.append(entry)
    return entries


def _assessment(assessment: Assessment) -> dict[str, Any]:
    return {
        "checker": assessment.checker,
        "metric": assessment.metric,
        "status": assessment.status.value,
        "verdict": assessment.verdict,
        "rule": assessment.rule,
        "cycles_used": assessment.cycles_used,
        "excluded_bytes_per_cycle": _rounded(assessment.excluded_bytes_per_cycle),
        "reason": assessment.reason,
        "per": assessment.per,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    interval = finding.interval_bytes_per_cycle
    return {
        "id": finding.id,
        "kind": finding.kind,
        "checker": finding.checker,
        "title": finding.title,
        "metric": finding.metric,
        "bytes_per_cycle": _rounded(finding.bytes_per_cycle),
        "interval_bytes_per_cycle": None if interval is None else [_rounded(bound) for bound in interval],
        "position": _position(finding.position),
        "evidence": list(finding.evidence),
        "known": finding.known,
        "undocumented": finding.undocumented,
        "counts": finding.counts,
        "per": finding.per,
        "footprint_bytes": finding.footprint_bytes,
        "footprints": _rounded(finding.footprints),
        "ladder": _ladder(finding.ladder),
    }


def _ladder(ladder: Ladder | None) -> Mapping[str, Any] | None:
    if ladder is None:
        return None
    rungs = [{"done": rung.done, "bytes": rung.bytes, "returned_bytes": rung.returned_bytes} for rung in ladder.rungs]
    return {"grown_bytes": ladder.grown_bytes, "rungs": rungs, "held_by": ladder.held_by}


def _position(position: Position | None) -> Mapping[str, Any] | None:
    if position is None:
        return None
    return {
        "arm": position.arm.value if position.arm else None,
        "phase": position.phase,
        "cycle": position.cycle,
        "track": position.track,
        "step_number": position.step_number,
        "text": str(position),
    }


def _rounded(number: float | None) -> float | None:
    """Round to a thousandth of a byte, so that the last bits of a sum do not change the file; JSON has no infinity."""
    return None if number is None or not math.isfinite(number) else round(float(number), 3)
