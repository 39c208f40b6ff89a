"""What a finding of the checker `latency` claims: times of the steps with `record: NAME`."""

from __future__ import annotations

from typing import Any, Final

from tritonchaos.checkers.latency import Latency
from tritonchaos.judging import build_checkers
from tritonchaos.observations import Arm, History
from tritonchaos.post_unload import judged_readings
from tritonchaos.reproducing.program.slowness import slowness
from tritonchaos.verdict import Finding

FACTOR: Final = 2.0
_TIMES_CONTROL: Final = 2.0  # as the checker
_LEAST: Final = 3
_NS: Final = 1e9


def slow_steps(finding: Finding, history: History) -> dict[str, Any] | None:
    """Return the claim of the check that made a finding: its limit, and what was measured in the recorded run."""
    checker = next((found for found in _checkers(history) if _made(found, finding, history)), None)
    if checker is None or finding.metric is None:
        return None
    treatment, control = (_seconds(history, arm, finding.metric) for arm in (Arm.TREATMENT, Arm.CONTROL))
    claim: dict[str, Any] = {
        "by": "slow",
        "record": finding.metric.removeprefix("latency_").removesuffix("_ns"),
        "of": checker.of,
        "at_most_s": checker.at_most,
        "factor": FACTOR,
        "least_cycles": min(_LEAST, len(treatment)),
    }
    recorded = slowness(treatment, control, checker.of, checker.at_most)
    if checker.at_most is None or recorded <= checker.at_most:
        claim |= {"of": "median", "at_most_s": None, "times_control": checker.times_control or _TIMES_CONTROL}
    return {**claim, "recorded": round(slowness(treatment, control, claim["of"], claim["at_most_s"]), 6)}


def _checkers(history: History) -> list[Latency]:
    return [checker for _, checker in build_checkers(history.facts.checks) if isinstance(checker, Latency)]


def _made(checker: Latency, finding: Finding, history: History) -> bool:
    return any(found.id == finding.id for one in checker.check(history) for found in one.findings)


def _seconds(history: History, arm: Arm, metric: str) -> list[float]:
    readings = judged_readings(history)
    return [r.latencies[metric] / _NS for r in readings if r.arm is arm and metric in r.latencies]
