"""A cycle as lines for the terminal: nothing is left out, nothing is judged anew."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from tritonchaos.expectation import mismatch
from tritonchaos.observations import (
    Answer,
    CycleFinished,
    Event,
    Evidence,
    History,
    ModelState,
    Probe,
    Reading,
    SettleWindow,
    StepFinished,
    StepSpec,
    TrafficSummary,
)
from tritonchaos.post_unload import CycleReading, cycle_table
from tritonchaos.summary import amount_text, at_position, cycle_counts, printable, reply_text, without_folders
from tritonchaos.units import format_seconds

if TYPE_CHECKING:
    from tritonchaos.summary import CycleEvents

_MOST_LOG_LINES: Final = 400


def overview_lines(history: History) -> Iterator[str]:
    """Print what there is to show: each phase with its cycles."""
    counts = cycle_counts(history)
    yield f"run {history.facts.run_id}, scenario {history.facts.scenario}"
    for phase in history.facts.phases:
        number = counts.get(phase.name, 0)
        what = f"{number} cycle{'' if number == 1 else 's'}" if phase.kind == "cycles" else "steps"
        arm = f" ({phase.arm.value})" if phase.arm else ""
        yield f"  --phase {phase.name}{arm}: {what}"


def phase_lines(history: History, phase: str, step: int | None) -> Iterator[str]:
    """Print what a phase did outside of its cycles, then a line for each cycle."""
    outside = at_position(history, phase)
    if outside is not None:
        yield from cycle_lines(history, outside, step)
    if step is not None:
        return
    table = cycle_table(history)
    for reading in table.readings(table.select(lambda kind: kind.phase == phase)):
        yield f"cycle {reading.cycle} ({_kind(reading)}): {_cycle_summary(reading)}"


def _kind(reading: CycleReading) -> str:
    return f"{reading.arm.value}, warm-up" if reading.is_warm_up else reading.arm.value


def _cycle_summary(reading: CycleReading) -> str:
    memory = [f"{metric} {amount_text(metric, value)}" for metric, value in reading.values.items() if _is_main(metric)]
    unmet = f"; not as expected: {_clean(reading.mismatch)}" if reading.mismatch else ""
    return (", ".join(memory) or "no reading") + unmet


def _is_main(metric: str) -> bool:
    return metric.partition("@")[0] in ("host_private_bytes", "nvml_process_used_bytes", "nvml_device_used_bytes")


def cycle_lines(history: History, one: CycleEvents, step: int | None = None) -> Iterator[str]:
    """Print a cycle.

    Args:
        step: Only the step of this number, and what belongs to it.
    """
    yield _title(one)
    for event in one.events:
        position = getattr(event, "position", None)
        if step is not None and (position is None or position.step_number != step):
            continue
        yield from (f"  {line}" for line in _event_lines(event, one.started_ns))
    start, end = one.log_span()
    if step is not None:
        steps = one.steps(step)
        start, end = min((s.log_start for s in steps), default=0), max((s.log_end for s in steps), default=0)
    yield from _log_lines(history, start, end)
    yield ""


def _title(one: CycleEvents) -> str:
    if one.cycle is None:
        return f"{one.phase}, outside its cycles, from {_at(one.started_ns)} on"
    if one.arm is None:
        return f"{one.phase}, round {one.cycle} of a track, from {_at(one.started_ns)} on"
    took = format_seconds((one.ended_ns - one.started_ns) / 1e9)
    kind = f"{one.arm.value}, warm-up" if one.is_warm_up else one.arm.value
    broke_off = "" if one.is_finished else "; it was not finished"
    return f"{one.phase}, cycle {one.cycle} ({kind}), from {_at(one.started_ns)} on, {took}{broke_off}"


def _at(t_ns: int) -> str:
    return f"{t_ns / 1e9:.3f} s"


def _event_lines(event: Event, start_ns: int) -> Iterator[str]:
    if isinstance(event, StepFinished):
        yield from _step_lines(event, start_ns)
    elif isinstance(event, Probe):
        yield from _probe_lines(event, start_ns)
    elif isinstance(event, Reading):
        yield f"{_after(event.t_ns, start_ns)}  reading {event.name}: {_values(event.values)}"
    elif isinstance(event, SettleWindow):
        yield from _window_lines(event, start_ns)
    elif isinstance(event, TrafficSummary):
        label = f"{event.track}: {_clean(event.spec.label())}"
        yield f"{_after(event.t_ns, start_ns)}  track {label}, {event.count} requests, {event.ok} as expected"
    elif isinstance(event, Evidence):
        yield f"{_after(event.t_ns, start_ns)}  evidence of {event.kind}: {_values(event.facts)}"
        yield from (f"    | {_clean(line)}" for line in event.lines)
    elif not isinstance(event, CycleFinished):
        fields = {name: getattr(event, name) for name in type(event).__dataclass_fields__ if name != "t_ns"}
        yield f"{_after(event.t_ns, start_ns)}  {type(event).__name__}: {_clean(_json(fields))}"


def _after(t_ns: int, start_ns: int) -> str:
    return f"+{(t_ns - start_ns) / 1e6:9.3f} ms"


def _step_lines(step: StepFinished, start_ns: int) -> Iterator[str]:
    track = "" if step.position.track == "main" else f"track {step.position.track}, "
    took = step.reply.elapsed_ns if step.reply is not None else step.t_ns - step.started_ns
    answer = "" if step.reply is None else f" -> {_clean(reply_text(step.reply))}"
    label = f"{track}step {step.position.step_number}  {_clean(step.spec.label())}"
    yield f"{_after(step.started_ns, start_ns)}  {label}{answer}  ({took / 1e6:.3f} ms)"
    if fields := _fields(step.spec):
        yield f"    with {_clean(fields)}"
    unmet = mismatch(step)
    if unmet is not None:
        yield f"    not as expected: {_clean(unmet)}"
    if step.observed:
        yield f"    observed {_clean(_json(dict(step.observed)))}"
    body = step.reply.body if isinstance(step.reply, Answer) else b""
    if body and len(body) <= 4096:
        yield f"    body {_clean(body.decode('utf-8', 'replace'))}"


def _fields(spec: StepSpec) -> str:
    kept = {
        name: value for name, value in spec.fields.items() if name != "model" and value not in (None, [], {}, False)
    }
    return _json(kept) if kept else ""


def _probe_lines(probe: Probe, start_ns: int) -> Iterator[str]:
    index = "no answer" if probe.index is None else ", ".join(map(_state, probe.index)) or "no model"
    statuses = {"ready": probe.model_ready, "metadata": probe.metadata, "live": probe.live, "server ready": probe.ready}
    told = ", ".join(f"{name} {status}" for name, status in statuses.items() if status is not None)
    model = f"{probe.model}: {told}" if told else probe.model
    yield f"{_after(probe.t_ns, start_ns)}  asked of {_clean(model)}; index: {_clean(index)}"


def _state(entry: ModelState) -> str:
    version = f" version {entry.version}" if entry.version else ""
    reason = f" ({entry.reason})" if entry.reason else ""
    return f"{entry.name}{version} {entry.state or 'without state'}{reason}"


def _window_lines(window: SettleWindow, start_ns: int) -> Iterator[str]:
    first = window.times_ns[0] if window.times_ns else start_ns
    yield f"{_after(first, start_ns)}  settle window, {len(window.times_ns)} readings"
    for metric, values in window.values.items():
        shown = ", ".join("-" if value is None else amount_text(metric, value) for value in values)
        yield f"    {metric}: {shown}{'' if metric in window.settled else '  (not settled)'}"


def _values(values: Mapping[str, object]) -> str:
    shown = (f"{name} {_value(name, value)}" for name, value in values.items())
    return _clean(", ".join(shown) or "nothing")


def _value(name: str, value: object) -> str:
    return (
        amount_text(name, value) if isinstance(value, int) and name.partition("@")[0].endswith("_bytes") else str(value)
    )


def _log_lines(history: History, start: int, end: int) -> Iterator[str]:
    lines = history.log_lines(start, end) if end > start else []
    if not lines:
        return
    yield f"  server.log, bytes {start} to {end}:"
    yield from (f"    | {_clean(line)}" for line in lines[:_MOST_LOG_LINES])
    if len(lines) > _MOST_LOG_LINES:
        yield f"    | ... and {len(lines) - _MOST_LOG_LINES} more lines"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _clean(text: str) -> str:
    return printable(without_folders(text))
