"""Does post-unload memory grow from cycle to cycle, and is it the treatment that makes it grow?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from tritonchaos.growth import Growth, GrowthState, reclaim
from tritonchaos.observations import Arm, History, MetricLost, Position
from tritonchaos.plugins import CHECKERS
from tritonchaos.post_unload import Channel, channel, cycle_readings
from tritonchaos.steps_seen import has_undocumented
from tritonchaos.units import format_bytes
from tritonchaos.verdict import Assessment, Finding, Status
from tritonchaos.watching import GrowthWatch

_NAME: Final = "memory_growth"
_SHOWN_BLOCKS: Final = 6


@CHECKERS.register
@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """Post-unload memory of the treatment arm must not grow from cycle to cycle.

    Judges per-process device bytes, else device bytes, else private host bytes; the others are judged beside it and
    may stay unknown. Only cycles count whose steps all did what they should; a run in which others had to be left out
    is never called stable.

    Attributes:
        metrics: Metrics to judge instead; then each of them decides.
    """

    name: ClassVar[str] = _NAME
    wants_trim: ClassVar[bool] = True

    metrics: tuple[str, ...] = ()

    def watch(self, uses_gpu: bool, metrics: Sequence[str] = (), amplified: Collection[str] = ()) -> GrowthWatch:
        """Return the stopping rule that `check` uses as well."""
        return GrowthWatch(uses_gpu, self.metrics or metrics, amplified)

    def check(self, history: History) -> Sequence[Assessment]:
        """Feed all finished cycles to the stopping rule and say what it ended with."""
        watch = self.watch(history.facts.uses_gpu, history.facts.metrics, history.facts.amplified)
        readings = cycle_readings(history)
        for reading in readings:
            watch.take(reading)
        assessments = [_assess(watch, metric, history) for metric in _in_order(watch)]
        if not watch.deciding:
            assessments.insert(0, _nothing_decides(history, bool(readings)))
        return assessments


def _in_order(watch: GrowthWatch) -> list[str]:
    others = sorted(metric for metric in watch.series if metric not in watch.deciding)
    return [*watch.deciding, *others]


def _nothing_decides(history: History, has_cycles: bool) -> Assessment:
    if not has_cycles:
        reason = "no cycle was finished"
    elif history.facts.uses_gpu:
        reasons = {why for metric, why in history.facts.unavailable.items() if metric.startswith("nvml_")}
        cause = "; ".join(sorted(reasons)) or "no reading"
        reason = f"a GPU variant was served, but device memory was not read ({cause}); host memory cannot replace it"
    else:
        reason = "none of the metrics that decide was read"
    return Assessment(_NAME, Status.UNKNOWN, reason, verdict=Growth.INCONCLUSIVE.value)


def _assess(watch: GrowthWatch, metric: str, history: History) -> Assessment:
    state = watch.series[metric].state
    assessment = Assessment(
        checker=_NAME,
        status=Status.UNKNOWN,
        reason="",
        metric=metric,
        verdict=state.verdict.value,
        rule=state.rule,
        cycles_used=state.cycles_used,
        excluded_bytes_per_cycle=state.excluded_bytes_per_cycle,
        counts=metric in watch.deciding,
        per=watch.unit,
        plain_words=watch.series[metric].in_plain_words(),
    )
    noise = watch.noise_bytes(metric)
    if noise:
        moved = f"NOISY: what others use on this GPU moved by {format_bytes(noise)}; its total says nothing"
        return _taken_back(assessment, moved)
    if state.verdict is Growth.LEAK:
        return _leak(assessment, watch, metric, history)
    control = watch.series[metric].control_state()
    if control.verdict is Growth.LEAK and metric in watch.deciding:
        return _control_leak(assessment, control, metric, history)
    if state.verdict is Growth.STABLE:
        return _stable(assessment, watch, metric, history)
    return _with(assessment, Status.UNKNOWN, _joined(state.reason, *_remarks(watch, metric)))


def _leak(assessment: Assessment, watch: GrowthWatch, metric: str, history: History) -> Assessment:
    finding = _finding(watch, metric, history)
    if _is_only_kept(watch, metric, history):
        kept = f"{finding.title}, but malloc_trim returned it: the allocator kept it, it is no leak"
        return _taken_back(assessment, kept)
    if watch.may_be_somebody_elses(metric):
        return _with(assessment, Status.UNKNOWN, f"{finding.title}, {_beside_deciding(watch)}")
    reason = _joined(finding.title, *_remarks(watch, metric))
    return _with(assessment, Status.FAIL, reason, findings=(finding,), counts=True)


def _is_only_kept(watch: GrowthWatch, metric: str, history: History) -> bool:
    """Host memory that a trim gives back was free: retention, which is no leak."""
    is_host = channel(metric) is Channel.HOST
    return is_host and reclaim.is_retention(reclaim.trimmed(history, metric), _grown(watch, metric))


def _grown(watch: GrowthWatch, metric: str) -> int:
    """What the treatment cycles have added in all, in bytes."""
    values = watch.series[metric].values(Arm.TREATMENT)
    return values[-1] - values[0] if values else 0


def _beside_deciding(watch: GrowthWatch) -> str:
    showing = [metric for metric in watch.deciding if watch.is_leak(metric)]
    if showing:
        return f"as {', '.join(showing)} shows too"
    return "but the metrics that decide do not show it: another process may be the cause"


def _control_leak(assessment: Assessment, control: GrowthState, metric: str, history: History) -> Assessment:
    """The arm that should be healthy leaks by itself, so that nothing can be said of the treatment."""
    first = next(reading for reading in cycle_readings(history) if reading.is_judged and reading.arm is Arm.CONTROL)
    grows = format_bytes(control.bytes_per_cycle or 0.0)
    finding = Finding(
        kind="leak",
        checker=_NAME,
        title=f"{metric} grows by {grows} per cycle in {first.phase}, a control arm",
        metric=metric,
        bytes_per_cycle=control.bytes_per_cycle,
        interval_bytes_per_cycle=control.interval,
        position=Position(first.phase, first.arm, first.cycle, "main", 0),
        evidence=(f"rule {control.rule}, after {control.cycles_used} control cycles",),
    )
    return _with(assessment, Status.FAIL, finding.title, findings=(finding,))


def _stable(assessment: Assessment, watch: GrowthWatch, metric: str, history: History) -> Assessment:
    lost = next((event for event in history.of(MetricLost) if event.metric == metric), None)
    if lost is not None:
        return _with(assessment, Status.UNKNOWN, f"{metric} was lost during the run ({lost.reason})")
    if watch.left_out:
        return _with(assessment, Status.UNKNOWN, _joined("not called stable", *_remarks(watch, metric)))
    grown = _growth_in_words(watch.series[metric].state)
    excluded = format_bytes(assessment.excluded_bytes_per_cycle or 0.0)
    found = f"{grown}; a leak of {excluded} per {watch.unit} would have been found"
    return _with(assessment, Status.PASS, _joined(found, *_remarks(watch, metric)))


def _growth_in_words(state: GrowthState) -> str:
    if state.rule == "slow":
        return "no growth but single pages now and then, as of an allocator that warms up"
    return "no growth" if state.shape == "flat" else f"no growth beyond a {state.shape}"


def _with(
    assessment: Assessment,
    status: Status,
    reason: str,
    findings: tuple[Finding, ...] = (),
    counts: bool | None = None,
) -> Assessment:
    is_counted = assessment.counts if counts is None else counts
    return replace(assessment, status=status, reason=reason, findings=findings, counts=is_counted)


def _taken_back(assessment: Assessment, reason: str) -> Assessment:
    """What the series alone says is not so, or not of the server."""
    changed = replace(assessment, verdict=Growth.INCONCLUSIVE.value, rule="", plain_words=f"{reason}.")
    return _with(changed, Status.UNKNOWN, reason)


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _remarks(watch: GrowthWatch, metric: str) -> list[str]:
    """Name what was left out, and readings that had not settled."""
    remarks = []
    for arm in Arm:
        left = watch.left_out.get(arm)
        if left is not None:
            shown = f"{left.first.phase} cycle {left.first.cycle}, {left.first.mismatch}"
            remarks.append(f"{left.count} {arm.value} cycles are left out, the first: {shown}")
    series = watch.series[metric]
    if series.unsettled:
        remarks.append(f"{series.unsettled} readings had not settled")
    if series.missing:
        remarks.append(f"{series.missing} cycles have no reading")
    return remarks


# --- the finding ---------------------------------------------------------------------------------


def _finding(watch: GrowthWatch, metric: str, history: History) -> Finding:
    state, first = watch.series[metric].state, watch.first_treatment
    grows = format_bytes(state.bytes_per_cycle or 0.0)
    beside = _beside(watch, metric)
    phase = first.phase if first else ""
    return Finding(
        kind="leak",
        checker=_NAME,
        title=f"{metric} grows by {grows} per {watch.unit} in {phase} ({beside})",
        metric=metric,
        bytes_per_cycle=state.bytes_per_cycle,
        interval_bytes_per_cycle=state.interval,
        position=Position(first.phase, first.arm, first.cycle, "main", 0) if first else None,
        evidence=tuple(_evidence(watch, metric, history)),
        undocumented=has_undocumented(history, Arm.TREATMENT),
        per=watch.unit,
        footprint_bytes=_footprint(watch, metric, history) or None,
        ladder=reclaim.climb(history, metric, _grown(watch, metric)),
    )


def _beside(watch: GrowthWatch, metric: str) -> str:
    state = watch.series[metric].state
    if not watch.series[metric].values(Arm.CONTROL):
        return "no control arm"
    # Pairs repeat their loads in both arms, a control block before them does not.
    per = " per cycle of one load" if state.loads > 1 and state.e_value is None else ""
    return f"control: {format_bytes(state.control_bytes_per_cycle)}{per}"


def _footprint(watch: GrowthWatch, metric: str, history: History) -> int:
    return watch.series[metric].footprint or reclaim.footprint_on_ladder(history, metric)


def _evidence(watch: GrowthWatch, metric: str, history: History) -> list[str]:
    series = watch.series[metric]
    lines = [f"rule {series.state.rule}, after {series.state.cycles_used} treatment cycles"]
    footprint = _footprint(watch, metric, history)
    share = (series.state.bytes_per_cycle or 0.0) / footprint if footprint > 0 else 0.0
    if share:
        lines.append(f"each {watch.unit} keeps {share:.2g} of a loaded model ({format_bytes(footprint)})")
    lines += _who_holds_it(history, metric, _grown(watch, metric))
    lines += [f"loads before a reading in {phase}: {loads}" for phase, loads in watch.loads_in_words().items()]
    blocks = series.blocks()
    if len(blocks) > _SHOWN_BLOCKS:  # coin-ordered pairs
        blocks = [(arm, series.values(arm)) for arm in (Arm.CONTROL, Arm.TREATMENT)]
    for arm, values in blocks:
        ends = f"{format_bytes(values[0])} to {format_bytes(values[-1])}"
        lines.append(f"post-unload readings of {len(values)} {arm.value} cycles: {ends}")
    if channel(metric) is Channel.HOST and not series.values(Arm.CONTROL):
        lines.append("no control arm: memory that the allocator keeps for good is told from a leak only by its growth")
    return lines


def _who_holds_it(history: History, metric: str, grown: int) -> list[str]:
    ladder = reclaim.climb(history, metric, grown)
    if ladder is not None:
        return [reclaim.ladder_in_words(ladder)]
    returned = reclaim.trimmed(history, metric)
    if returned is None or channel(metric) is not Channel.HOST:
        return []
    return [f"malloc_trim returned {format_bytes(max(returned, 0))} of {format_bytes(grown)} grown: the rest is in use"]
