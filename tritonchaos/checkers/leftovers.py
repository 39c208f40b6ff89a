"""Do handles, threads, processes, shared memory or temp files pile up, or stay behind after the end?"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from tritonchaos.growth import Growth, JudgedSeries
from tritonchaos.observations import Arm, CycleTable, History, Left, MetricLost, Position, ServerExited, ServerStopped
from tritonchaos.plugins import CHECKERS
from tritonchaos.post_unload import CycleReading, cycle_readings, cycle_table
from tritonchaos.steps_seen import has_undocumented
from tritonchaos.units import format_bytes
from tritonchaos.verdict import Assessment, Finding, Status

_NAME: Final = "leftovers"
_SHM_OTHER: Final = "shm_other_bytes"
_METRICS: Final = {
    "server_fds": "open file descriptors of the server",
    "server_threads": "threads of the server",
    "server_children": "child processes of the server",
    "server_zombies": "zombie processes of the server",
    "shm_bytes": "shared memory of this run",
    _SHM_OTHER: "shared memory under other names",
    "temp_bytes": "temp files of the server",
}
_LEFT: Final = {"process": "processes", "shm": "shared memory regions", "temp": "temp files"}
_GROWS_IN: Final = {"process": "server_children", "shm": "shm_bytes", "temp": "temp_bytes"}
_UNMOVED_FROM: Final = 3  # treatment cycles over which an exact counter may be called unmoved
_JITTER_FROM: Final = 6  # treatment cycles over which ups and downs may be called jitter
_STEP_FLAT_FROM: Final = 8  # treatment cycles without a rise after which a rise was a single one
_SHOWN_NAMES: Final = 8


@CHECKERS.register
@dataclass(frozen=True, slots=True)
class Leftovers:
    """Nothing but memory may pile up per cycle, and nothing may stay behind when the server has ended.

    Each counter goes through the growth test, which finds a steady leak within about ten treatment cycles after a flat
    control block. These counters are exact, so that a run too short for STABLE can still pass, and says over how many
    cycles, when in the treatment cycles a counter

    - did not move at all (3 cycles or more),
    - went up and down, with its last readings no higher than its first or than the control arm's, and its second half
      no higher than its first (6 cycles or more), or
    - rose once and has stayed for at least half of the cycles (8 or more).

    What only goes up, yet too little for a verdict, stays unknown and counts: a leak must not slip through. Ups and
    downs that end higher stay unknown too, but do not count: thread pools and connections do that in healthy servers.
    Memory is judged by `memory_growth`.
    """

    name: ClassVar[str] = _NAME

    def check(self, history: History) -> Sequence[Assessment]:
        """Judge every counter that was read, then what was found after the server's end."""
        readings = cycle_readings(history)
        series = _series(cycle_table(history))
        assessments = [_judge(one, readings, history) for one in series]
        growing = {a.metric for a in assessments if a.status is Status.FAIL}
        assessments += _left_behind(history, growing)
        if not series:
            reason = "no cycle was finished" if not readings else "none of the counters could be read"
            assessments.append(Assessment(_NAME, Status.UNKNOWN, reason))
        return assessments


def _series(table: CycleTable) -> list[JudgedSeries]:
    found = [JudgedSeries(metric) for metric in _METRICS if metric in table.metrics]
    for reading in table if found else ():
        for series in found:
            series.take(reading)
    return found


# --- growth per cycle ----------------------------------------------------------------------------


def _judge(series: JudgedSeries, readings: Sequence[CycleReading], history: History) -> Assessment:
    state = series.state
    assessment = Assessment(
        checker=_NAME,
        status=Status.UNKNOWN,
        reason="",
        metric=series.metric,
        verdict=state.verdict.value,
        rule=state.rule,
        cycles_used=state.cycles_used,
        excluded_bytes_per_cycle=state.excluded_bytes_per_cycle,
    )
    if state.verdict is Growth.LEAK:
        finding = _finding(series, readings, history)
        return replace(assessment, status=Status.FAIL, reason=finding.title, findings=(finding,))
    lost = next((event for event in history.of(MetricLost) if event.metric == series.metric), None)
    if lost is not None:
        return replace(assessment, reason=f"{series.metric} was lost during the run ({lost.reason})")
    if state.verdict is Growth.STABLE:
        return replace(assessment, status=Status.PASS, reason=f"no growth in {state.cycles_used} treatment cycles")
    return _judge_short(assessment, series)


def _judge_short(assessment: Assessment, series: JudgedSeries) -> Assessment:
    """Judge a run that is too short for the growth test by how an exact counter moved."""
    values = series.values(Arm.TREATMENT)
    if len(values) < _UNMOVED_FROM:
        found = f"{len(values)} treatment cycles did what they should, {_UNMOVED_FROM} are needed"
        return replace(assessment, reason=found)
    passed = _unmoved(values) or _jitter(values, series.values(Arm.CONTROL)) or _one_step(values)
    if passed:
        reason = f"{passed} {len(values)} treatment cycles"
        return replace(assessment, status=Status.PASS, verdict="", rule="exact counter", reason=reason)
    moved = f"went from {_amount(series.metric, values[0])} to {_amount(series.metric, values[-1])}"
    reason = f"{moved} in {len(values)} treatment cycles; {series.state.reason}"
    return replace(assessment, reason=reason, counts=not _fell(values))


def _unmoved(values: Sequence[int]) -> str | None:
    return "did not move in" if len(set(values)) == 1 else None


def _jitter(values: Sequence[int], control: Sequence[int]) -> str | None:
    if len(values) < _JITTER_FROM:
        return None
    middle = len(values) // 2
    is_level = min(values[-3:]) <= max([values[0], *control])
    is_flat = statistics.median(values[middle:]) <= statistics.median(values[:middle])
    return f"moved between {min(values)} and {max(values)} without a trend in" if is_level and is_flat else None


def _one_step(values: Sequence[int]) -> str | None:
    """A single rise, then unmoved for at least half of the cycles; falls are not looked at."""
    rises = sum(after > before for before, after in itertools.pairwise(values))
    unmoved = next((at for at, value in enumerate(reversed(values)) if value != values[-1]), len(values))
    if rises > 1 or unmoved < max(_STEP_FLAT_FROM, len(values) / 2):
        return None
    return f"moved once and then stayed for {unmoved} of"


def _fell(values: Sequence[int]) -> bool:
    return any(after < before for before, after in itertools.pairwise(values))


def _finding(series: JudgedSeries, readings: Sequence[CycleReading], history: History) -> Finding:
    state, metric = series.state, series.metric
    first = next(r for r in readings if r.is_judged and r.arm is Arm.TREATMENT and metric in r.values)
    control = series.values(Arm.CONTROL)
    beside = f"control: {_amount(metric, state.control_bytes_per_cycle)}" if control else "no control arm"
    grows = _amount(metric, state.bytes_per_cycle or 0.0)
    values = series.values(Arm.TREATMENT)
    ends = f"{_amount(metric, values[0])} to {_amount(metric, values[-1])}"
    evidence = [f"rule {state.rule}; {ends} in {len(values)} treatment cycles"]
    if metric == _SHM_OTHER:
        evidence.append("names in /dev/shm without this run's prefix: they may be another program's")
    return Finding(
        kind="leftover",
        checker=_NAME,
        title=f"{metric} grows by {grows} per cycle in {first.phase} ({beside}): {_METRICS[metric]} pile up",
        metric=metric,
        bytes_per_cycle=state.bytes_per_cycle,
        interval_bytes_per_cycle=state.interval,
        position=Position(first.phase, first.arm, first.cycle, "main", 0),
        evidence=tuple(evidence),
        undocumented=has_undocumented(history, Arm.TREATMENT),
    )


def _amount(metric: str, count: float) -> str:
    return format_bytes(count) if metric.endswith("_bytes") else f"{count:.3g}"


# --- after the end -------------------------------------------------------------------------------


def _left_behind(history: History, growing: set[str | None]) -> Iterator[Assessment]:
    """Report what stayed after the server's end, one finding per kind; what was seen to grow is not told twice."""
    has_stopped = any(not stop.is_left_running for stop in history.of(ServerStopped))
    if not has_stopped and not any(True for _ in history.of(ServerExited)):
        return
    groups: dict[tuple[str, bool], list[Left]] = {}
    for event in history.of(Left):
        if _GROWS_IN.get(event.kind) not in growing:
            groups.setdefault((event.kind, event.certain), []).append(event)
    for (kind, certain), events in groups.items():
        yield _left_assessment(history, kind, certain, events)
    if not groups and not growing:
        yield Assessment(_NAME, Status.PASS, "nothing stayed behind after the server's end")


def _left_assessment(history: History, kind: str, certain: bool, events: Sequence[Left]) -> Assessment:
    killed = _was_killed(history)
    size = format_bytes(sum(event.bytes for event in events))
    names = sorted(event.name for event in events)
    evidence = names[:_SHOWN_NAMES]
    if len(names) > _SHOWN_NAMES:
        evidence.append(f"and {len(names) - _SHOWN_NAMES} more")
    title = f"{len(events)} {_LEFT.get(kind, kind)} stayed behind after the server's end ({size})"
    counts = certain and not killed
    why = "the server was killed or crashed and could not clean up" if killed else "they may be another program's"
    if not counts:
        evidence.append(why)
    finding = Finding("leftover", _NAME, title, evidence=tuple(evidence), counts=counts)
    reason = title if counts else f"{title}: {why}"
    return Assessment(_NAME, Status.FAIL, reason, findings=(finding,), counts=counts)


def _was_killed(history: History) -> bool:
    return any(True for _ in history.of(ServerExited)) or any(stop.forced for stop in history.of(ServerStopped))
