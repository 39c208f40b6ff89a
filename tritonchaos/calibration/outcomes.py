"""What one run of a trial showed, read from its history and its verdict."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritonchaos.calibration.trials import AT_MOST, FAILED_LOADS, HOST, Trial
from tritonchaos.observations import CycleFinished, CycleStarted, History, MetricLost, SettleWindow
from tritonchaos.post_unload import channel, primary_metrics
from tritonchaos.summary import FinishedRun

_DECIDED = frozenset({"LEAK", "STABLE"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The growth verdict on one metric.

    Attributes:
        word: LEAK, STABLE or INCONCLUSIVE.
        cycles: Cycles on trial up to it.
        excluded: For STABLE, the smallest leak that would have been found, in bytes per cycle.
    """

    word: str
    cycles: int
    excluded: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of a trial.

    Attributes:
        place: Where memory was kept.
        folder: Name of its run directory.
        void: Why nothing can be told from it, such as a crash; "" if something can.
        verdicts: Primary metric -> verdict.
        false_alarms: Titles of leaks that were found where none was planted.
        noise: Primary metric -> how far the later half of the post-unload readings on trial lie apart, in bytes.
        settle_ns: Times from the first to the last reading of the settle windows.
        cycle_ns: Times of the cycles on trial.
        lost: Metric -> why it could no longer be read.
    """

    trial: Trial
    place: str
    folder: str
    duration_s: float
    void: str = ""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    false_alarms: tuple[str, ...] = ()
    noise: Mapping[str, int] = field(default_factory=dict)
    settle_ns: tuple[int, ...] = ()
    cycle_ns: tuple[int, ...] = ()
    lost: Mapping[str, str] = field(default_factory=dict)


def outcome_of(trial: Trial, place: str, folder: str, duration_s: float, finished: FinishedRun) -> Outcome:
    """Read from a finished run what its trial showed."""
    history, results = finished.history, finished.results
    lost = {event.metric: event.reason for event in history.of(MetricLost)}
    rows: list[Any] = [row for row in _rows(results["assessments"]) if row["checker"] == "memory_growth"]
    metrics = primary_metrics(trial.variant != HOST, [row["metric"] for row in rows if row["metric"]])
    verdicts = {row["metric"]: _verdict(row) for row in rows if row["metric"] in metrics}
    leaks = [finding for finding in finished.verdict.findings if finding.kind == "leak" and finding.counts]
    return Outcome(
        trial=trial,
        place=place,
        folder=folder,
        duration_s=duration_s,
        void=_why_void(finished, verdicts, lost),
        verdicts=verdicts,
        false_alarms=() if trial.kind.value == "leak" else tuple(leak.title for leak in leaks),
        noise={metric: _noise(results, metric) for metric in metrics},
        settle_ns=tuple(_settle_times(history)),
        cycle_ns=tuple(_cycle_times(history)),
        lost=lost,
    )


def _rows(value: Any) -> list[Any]:
    return list(value)


def _verdict(row: Mapping[str, Any]) -> Verdict:
    word = row["verdict"] if row["verdict"] in _DECIDED else "INCONCLUSIVE"
    return Verdict(word, row["cycles_used"] or 0, row["excluded_bytes_per_cycle"])


def _why_void(finished: FinishedRun, verdicts: Mapping[str, Verdict], lost: Mapping[str, str]) -> str:
    """A crash of the server, or replies that were not expected, say nothing of how well growth is seen."""
    if finished.history.interrupted:
        return "it was interrupted"
    others = [finding for finding in finished.verdict.findings if finding.kind != "leak"]
    if others:
        return f"{others[0].kind}: {others[0].title}"
    gone = [metric for metric in lost if channel(metric).value == "device"]
    if gone:
        return f"{gone[0]} was lost: {lost[gone[0]]}"
    if not verdicts:
        return "no metric was read whose growth decides"
    cycles = sum(1 for _ in _cycle_times(finished.history))
    if cycles < AT_MOST and not any(verdict.word in _DECIDED for verdict in verdicts.values()):
        return f"it ended after {cycles} of {AT_MOST} cycles without a verdict"  # for lack of time, or of memory
    return ""


def _noise(results: Mapping[str, Any], metric: str) -> int:
    for phase in results["phases"]:
        if phase["phase"] == FAILED_LOADS:
            values = [value for value in phase["post_unload"].get(metric, ()) if value is not None]
            later = values[len(values) // 2 :]
            return max(later) - min(later) if later else 0
    return 0


def _settle_times(history: History) -> Iterator[int]:
    return (window.times_ns[-1] - window.times_ns[0] for window in history.of(SettleWindow) if window.times_ns)


def _cycle_times(history: History) -> Iterator[int]:
    began: CycleStarted | None = None
    for event in history.events:
        if isinstance(event, CycleStarted):
            began = event
        elif isinstance(event, CycleFinished) and began is not None and event.phase == FAILED_LOADS:
            yield event.t_ns - began.t_ns


def median(values: Sequence[int]) -> int | None:
    """Return the median; None of nothing."""
    return int(statistics.median(values)) if values else None
