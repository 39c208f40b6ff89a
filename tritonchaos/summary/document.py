"""The results document: what results.json holds, in plain values, the same whenever and wherever it is made."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tritonchaos.errors import ExitCode
from tritonchaos.observations import Arm, History, Position, Reading, ServerStarted
from tritonchaos.post_unload import RECORD, CycleReading
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
        "phases": [],
        "assessments": [_assessment(assessment) for assessment in verdict.assessments],
        "findings": [_finding(finding) for finding in verdict.findings],
        "notes": list(notes),
    }
    result: dict[str, Any] = portable(document)
    # Not a copy: it holds one number for each cycle and metric.
    result["phases"] = _phases(history, readings)
    return result


class NamedReadings:
    """Collects the readings at named moments of the run."""

    kinds = (Reading,)

    def __init__(self) -> None:
        self.readings: list[Reading] = []

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


def _phases(history: History, readings: Sequence[CycleReading]) -> list[dict[str, Any]]:
    """One entry for each phase with cycles, and for each arm of it; warm-up cycles are left out.

    Each series has one value per cycle, None where the metric was not read, shape [cycles]. Latencies of steps with
    `record`, in nanoseconds, are there only where a step has it, and the loads of each cycle only with `amplify`.
    """
    wanted = {
        (phase.name, arm): _Series()
        for phase in history.facts.phases
        if phase.kind == "cycles"
        for arm in ((phase.arm,) if phase.arm else (Arm.CONTROL, Arm.TREATMENT))
    }
    metrics: set[str] = set()
    latencies: set[str] = set()
    for reading in readings:
        if not reading.is_warm_up:
            metrics.update(reading.values)
            latencies.update(reading.latencies)
            if (series := wanted.get((reading.phase, reading.arm))) is not None:
                series.append(reading)
    amplified = history.facts.amplified
    return [
        _phase(phase, arm, series, sorted(metrics), sorted(latencies), phase in amplified)
        for (phase, arm), series in wanted.items()
    ]


def _phase(
    phase: str, arm: Arm, series: _Series, metrics: Sequence[str], latencies: Sequence[str], is_amplified: bool
) -> dict[str, Any]:
    entry: dict[str, Any] = {"phase": without_folders(phase), "arm": arm.value, "cycles": series.cycles}
    entry["post_unload"] = {metric: series.of(metric) for metric in metrics}
    if is_amplified:
        entry["loads"] = list(series.loads)
    if latencies:
        entry["latency"] = {name: series.of(name) for name in latencies}
    return entry


class _Series:
    """The values of one arm of a phase, by metric and latency."""

    def __init__(self) -> None:
        self.cycles = 0
        self.loads = array("q")
        self._values: dict[str, list[int | None]] = {}
        # Most values of a long run are the same as others; each is one object.
        self._same: dict[int, int] = {}

    def append(self, reading: CycleReading) -> None:
        for name, value in (*reading.values.items(), *reading.latencies.items()):
            values = self._values.setdefault(name, [])
            values += [None] * (self.cycles - len(values))
            values.append(self._same.setdefault(value, value))
        self.loads.append(reading.loads)
        self.cycles += 1
        if len(self._same) > _MOST_REMEMBERED:
            self._same.clear()

    def of(self, name: str) -> list[int | None]:
        """Return one value per cycle."""
        values = self._values.pop(name, [])
        return values + [None] * (self.cycles - len(values)) if len(values) < self.cycles else values


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
