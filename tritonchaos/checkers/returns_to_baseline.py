"""Does post-unload memory come back to where it was before the first load?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from tritonchaos.observations import CycleTable, History, MetricLost, Position
from tritonchaos.plugins import CHECKERS, ByteCount
from tritonchaos.post_unload import baseline, cycle_table, primary_metrics
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
        table = cycle_table(history)
        judged = table.select(lambda kind: kind.is_judged)
        seen = {metric for metric in table.metrics if table.values(metric).has_any(judged)}
        metrics = primary_metrics(history.facts.uses_gpu, seen)
        if not metrics:
            return [Assessment(_NAME, Status.UNKNOWN, _why_nothing(history, judged))]
        return [self._check_metric(history, table, judged, metric) for metric in metrics]

    def _check_metric(self, history: History, table: CycleTable, judged: Sequence[int], metric: str) -> Assessment:
        read = table.values(metric).which(judged)
        start_number = table.kind_of(read[-1]).start_number
        before = baseline(history, start_number)
        if metric not in before:
            reason = "there is no reading of the server before its first load"
            return Assessment(_NAME, Status.UNKNOWN, reason, metric=metric)
        lost = next((event for event in history.of(MetricLost) if event.metric == metric), None)
        if lost is not None:  # what it would have shown from then on is unknown
            reason = f"{metric} was lost during the run ({lost.reason})"
            return Assessment(_NAME, Status.UNKNOWN, reason, metric=metric)
        same = [place for place in read if table.kind_of(place).start_number == start_number]
        return self._judge(metric, table, same, before)

    def _judge(self, metric: str, table: CycleTable, places: Sequence[int], before: Mapping[str, int]) -> Assessment:
        values = table.values(metric).values
        levels = [values[place] for place in places]
        footprint = _footprint(table, places, metric)
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
        finding = _finding(metric, table, places, levels, later, limit, reason)
        return Assessment(_NAME, Status.FAIL, reason, metric=metric, cycles_used=len(levels), findings=(finding,))

    def _limit(self, footprint: int) -> float | None:
        if self.share is None:
            return self.limit
        return min(self.limit, self.share * footprint) if footprint > 0 else None


def _why_nothing(history: History, judged: Sequence[int]) -> str:
    if not judged:
        return "no cycle did what it should"
    return "device memory was not read" if history.facts.uses_gpu else "host memory was not read"


def _footprint(table: CycleTable, places: Sequence[int], metric: str) -> int:
    """Return the largest difference between a loaded model and the same cycle after its unload, in bytes."""
    loaded, values = table.loaded(metric), table.values(metric).values
    return max((loaded.values[place] - values[place] for place in loaded.which(places)), default=0)


def _reason(metric: str, once: int, later: int, limit: float | None, footprint: int, cycles: int) -> str:
    total = f"{format_bytes(once + later)} above the baseline after {cycles} cycles"
    if footprint > 0:
        total += f" ({(once + later) / footprint:.1%} of a loaded model's {format_bytes(footprint)})"
    parts = f"{format_bytes(once)} since the first cycles, {format_bytes(later)} later"
    allowed = "" if limit is None else f" (limit {format_bytes(limit)})"
    return f"{total}: {parts}{allowed}"


def _finding(
    metric: str,
    table: CycleTable,
    places: Sequence[int],
    levels: Sequence[int],
    later: int,
    limit: float,
    reason: str,
) -> Finding:
    start = levels[:_FIRST_CYCLES][-1]
    first = next(place for place, level in zip(places, levels, strict=True) if level - start > limit)
    kind, shown = table.kind_of(first), ", ".join(format_bytes(level) for level in levels[-5:])
    return Finding(
        kind="retention",
        checker=_NAME,
        title=f"{metric} stays {format_bytes(later)} above its level after the first cycles",
        metric=metric,
        position=Position(kind.phase, kind.arm, table.cycles[first], "main", 0),
        evidence=(reason, f"last post-unload readings: {shown}"),
    )
