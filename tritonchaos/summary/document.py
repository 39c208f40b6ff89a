"""The results document: what results.json holds, in plain values, the same whenever and wherever it is made."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from tritonchaos.errors import ExitCode
from tritonchaos.observations import Arm, CycleTable, History, PhaseFacts, Position, Reading, ServerStarted
from tritonchaos.observations.cycle_table import Column
from tritonchaos.post_unload import RECORD
from tritonchaos.summary.texts import portable, without_folders
from tritonchaos.verdict import Assessment, Finding, Ladder, Verdict

SCHEMA: Final = "tritonchaos.results/1"

NAMED_READINGS: Final = "named_readings"

# Readings of every cycle; they are not named moments of the run.
_WITHIN_CYCLES: Final = frozenset({"loaded", "before_next", RECORD})
_MOST_REMEMBERED: Final = 100_000
_WORDS: Final = {ExitCode.PASS: "pass", ExitCode.FINDINGS: "findings", ExitCode.INCONCLUSIVE: "inconclusive"}


def verdict_word(verdict: Verdict) -> str:
    """Return "pass", "findings" or "inconclusive": what was found, whether or not it is accepted as known."""
    return _WORDS[verdict.exit_code()]


def results_document(
    history: History, verdict: Verdict, exit_code: int, table: CycleTable, notes: Sequence[str]
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
        "phases": [],
        "assessments": [_assessment(assessment) for assessment in verdict.assessments],
        "findings": [_finding(finding) for finding in verdict.findings],
        "notes": list(notes),
    }
    result: dict[str, Any] = portable(document)
    # Not a copy: it holds one number for each cycle and metric.
    result["phases"] = _phases(history, table)
    return result


class NamedReadings:
    """Collects the readings at named moments of the run."""

    kinds: ClassVar[tuple[type, ...]] = (Reading,)

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self.readings: list[Reading] = []

    @property
    def kept(self) -> int:
        """How many it has."""
        return len(self.readings)

    def state(self) -> None:
        """Return nothing: each reading is taken by itself."""

    def resume(self, state: None) -> None:
        """Go on."""

    def see(self, reading: Reading) -> None:
        """Take the next reading."""
        if reading.name not in _WITHIN_CYCLES:
            self.readings.append(reading)


def _named_readings(history: History) -> list[dict[str, Any]]:
    return [
        {"name": reading.name, "metric": metric, "bytes": value}
        for reading in history.followed(NAMED_READINGS, NamedReadings).readings
        for metric, value in sorted(reading.values.items())
    ]


def _phases(history: History, table: CycleTable) -> list[dict[str, Any]]:
    """One entry for each phase with cycles, and for each arm of it; warm-up cycles are left out.

    Each series has one value per cycle, None where the metric was not read, shape [cycles]. Latencies of steps with
    `record`, in nanoseconds, are there only where a step has it, and the loads of each cycle only with `amplify`.
    """
    counted = table.select(lambda kind: not kind.is_warm_up)
    metrics, latencies = (
        {name: column for name, column in columns.items() if column.has_any(counted)}
        for columns in (
            {name: table.values(name) for name in sorted(table.metrics)},
            {name: table.latency(name) for name in sorted(table.latencies)},
        )
    )
    return [
        _phase(phase, arm, table, metrics, latencies, phase.name in history.facts.amplified)
        for phase in history.facts.phases
        if phase.kind == "cycles"
        for arm in ((phase.arm,) if phase.arm else (Arm.CONTROL, Arm.TREATMENT))
    ]


def _phase(
    phase: PhaseFacts,
    arm: Arm,
    table: CycleTable,
    metrics: Mapping[str, Column],
    latencies: Mapping[str, Column],
    is_amplified: bool,
) -> dict[str, Any]:
    places = table.select(lambda kind: (kind.phase, kind.arm, kind.is_warm_up) == (phase.name, arm, False))
    entry: dict[str, Any] = {"phase": without_folders(phase.name), "arm": arm.value, "cycles": len(places)}
    entry["post_unload"] = {metric: _series(column, places) for metric, column in metrics.items()}
    if is_amplified:
        entry["loads"] = [table.kind_list[table.kinds[place]].loads for place in places]
    if latencies:
        entry["latency"] = {name: _series(column, places) for name, column in latencies.items()}
    return entry


def _series(column: Column, places: Sequence[int]) -> list[int | None]:
    """Return one value per cycle; most values of a long run are the same as others, and each is one object."""
    values, has = column.values, column.has
    same = _Same()
    return [same[values[place]] if has is None or has[place] else None for place in places]


class _Same(dict[int, int]):
    """Gives the object that it knows for a number."""

    def __missing__(self, number: int) -> int:
        if len(self) > _MOST_REMEMBERED:
            self.clear()
        self[number] = number
        return number


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
        "plain_words": assessment.plain_words,
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
