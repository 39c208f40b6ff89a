"""Does post-unload memory come back to where it was before the first load?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from tritonchaos.observations import History, MetricLost, Position, pick
from tritonchaos.plugins import CHECKERS, ByteCount
from tritonchaos.post_unload import CycleReading, baseline, judged_readings, primary_metrics
from tritonchaos.units import MIB, format_bytes
from tritonchaos.verdict import Assessment, Finding, Status

_NAME: Final = "returns_to_baseline"
_FIRST_CYCLES: Final = 3  # what these leave behind is set up once: contexts, workspaces, the first pool
_JUDGED_FROM: Final = 4


@CHECKERS.register
@dataclass(frozen=True, slots=True)
class ReturnsToBaseline:
    """What cycles after the first three leave behind must stay below a limit.

    Compares the last post-unload reading with the reading of the server before its first load. What the first three
    cycles leave is named apart and does not count: every server sets something up once.

    Attributes:
        limit: Bytes that may stay, such as "64MiB".
        share: Share of a loaded model's memory that may stay instead, if that is less than `limit`.
    """

    name: ClassVar[str] = _NAME

    limit: ByteCount = 64 * MIB
    share: float | None = None

    def check(self, history: History) -> Sequence[Assessment]:
        """Judge each deciding metric over the cycles whose steps did what they should."""
        readings = judged_readings(history)
        seen = {metric for reading in readings for metric in reading.values}
        metrics = primary_metrics(history.facts.uses_gpu, seen)
        if not metrics:
            return [Assessment(_NAME, Status.UNKNOWN, _why_nothing(history, readings))]
        return [self._check_metric(history, readings, metric) for metric in metrics]

    def _check_metric(self, history: History, readings: Sequence[CycleReading], metric: str) -> Assessment:
        last = next(reading for reading in reversed(readings) if metric in reading.values)
        before = baseline(history, last.start_number)
        if metric not in before:
            reason = "there is no reading of the server before its first load"
            return Assessment(_NAME, Status.UNKNOWN, reason, metric=metric)
        lost = next((event for event in history.of(MetricLost) if event.metric == metric), None)
        if lost is not None:  # what it would have shown from then on is unknown
            reason = f"{metric} was lost during the run ({lost.reason})"
            return Assessment(_NAME, Status.UNKNOWN, reason, metric=metric)
        same = pick(readings, lambda r: r.start_number == last.start_number and metric in r.values)
        return self._judge(metric, same, before)

    def _judge(self, metric: str, readings: Sequence[CycleReading], before: Mapping[str, int]) -> Assessment:
        levels = [reading.values[metric] for reading in readings]
        footprint = _footprint(readings, metric)
        limit = self._limit(footprint)
        once = levels[:_FIRST_CYCLES][-1] - before[metric]
        later = levels[-1] - levels[:_FIRST_CYCLES][-1]
        reason = _reason(metric, once, later, limit, footprint, len(levels))
        if limit is None:
            reason = "the memory of a loaded model was not read, so its share is unknown"
            return Assessment(_NAME, Status.UNKNOWN, reason, metric=metric)
        if len(levels) < _JUDGED_FROM and once + later > limit:
            reason += f"; {_JUDGED_FROM} cycles are needed to tell the two apart"
            return Assessment(_NAME, Status.UNKNOWN, reason, metric=metric, cycles_used=len(levels))
        if later <= limit:
            return Assessment(_NAME, Status.PASS, reason, metric=metric, cycles_used=len(levels))
        finding = _finding(metric, readings, later, limit, reason)
        return Assessment(_NAME, Status.FAIL, reason, metric=metric, cycles_used=len(levels), findings=(finding,))

    def _limit(self, footprint: int) -> float | None:
        if self.share is None:
            return self.limit
        return min(self.limit, self.share * footprint) if footprint > 0 else None


def _why_nothing(history: History, readings: Sequence[CycleReading]) -> str:
    if not readings:
        return "no cycle did what it should"
    return "device memory was not read" if history.facts.uses_gpu else "host memory was not read"


def _footprint(readings: Sequence[CycleReading], metric: str) -> int:
    """Return the largest difference between a loaded model and the same cycle after its unload, in bytes."""
    return max((r.loaded[metric] - r.values[metric] for r in readings if metric in r.loaded), default=0)


def _reason(metric: str, once: int, later: int, limit: float | None, footprint: int, cycles: int) -> str:
    total = f"{format_bytes(once + later)} above the baseline after {cycles} cycles"
    if footprint > 0:
        total += f" ({(once + later) / footprint:.1%} of a loaded model's {format_bytes(footprint)})"
    parts = f"{format_bytes(once)} since the first cycles, {format_bytes(later)} later"
    allowed = "" if limit is None else f" (limit {format_bytes(limit)})"
    return f"{total}: {parts}{allowed}"


def _finding(metric: str, readings: Sequence[CycleReading], later: int, limit: float, reason: str) -> Finding:
    start = readings[:_FIRST_CYCLES][-1].values[metric]
    first = next(reading for reading in readings if reading.values[metric] - start > limit)
    levels = ", ".join(format_bytes(reading.values[metric]) for reading in readings[-5:])
    return Finding(
        kind="retention",
        checker=_NAME,
        title=f"{metric} stays {format_bytes(later)} above its level after the first cycles",
        metric=metric,
        position=Position(first.phase, first.arm, first.cycle, "main", 0),
        evidence=(reason, f"last post-unload readings: {levels}"),
    )
