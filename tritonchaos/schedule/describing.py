"""A schedule for people to read, before anything is started."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from tritonchaos.observations import Expectation
from tritonchaos.scenario import TrackEntry
from tritonchaos.scenario.plugin_forms import fields_set
from tritonchaos.schedule.expansion import RestartFresh
from tritonchaos.schedule.numbering import Scheduled, ScheduledStep
from tritonchaos.schedule.phases import Schedule, ScheduledPhase
from tritonchaos.units import format_seconds

_CYCLES_DESCRIBED: Final = 3
_STEPS_DESCRIBED: Final = 40


def describe(schedule: Schedule) -> Iterator[str]:
    """Print a schedule line by line: the first cycles of each phase, and how many may follow."""
    yield f"scenario {schedule.scenario}, seed {schedule.seed}"
    for phase in schedule.phases:
        yield ""
        yield _headline(phase)
        for track in phase.tracks:
            yield from _block(f"meanwhile {track.name}, {_how_long(track.entry)}", track.iteration(0))
        yield from _block("first", phase.restart())
        yield from _block("before", phase.before())
        yield from _block("steps", phase.steps())
        yield from _first_cycles(phase)
        yield from _block(_after_title(phase), phase.after() if phase.kind == "cycles" else ())


def _how_long(track: TrackEntry) -> str:
    rate = f"{track.rate:g} times a second" if track.rate is not None else "again and again"
    parts = [rate if track.workers == 1 else f"{rate} by {track.workers} workers"]
    if track.start is not None:
        after = f"{format_seconds(track.start.offset_s)} after " if track.start.offset_s else "when "
        parts.append(f"from {after}step {track.start.step} of {track.start.track} has {track.start.when}")
    if track.stop.times is not None:
        parts.append(f"{track.stop.times} times")
    else:
        is_timed = track.stop.after_s is not None
        parts.append(f"for {format_seconds(track.stop.after_s or 0)}" if is_timed else "until the phase is done")
    return ", ".join(parts)


def _headline(phase: ScheduledPhase) -> str:
    parts = [f"phase {phase.name}: {_size(phase)}"]
    if phase.warm_up_cycles:
        parts.append(f"{phase.warm_up_cycles} warm-up cycles in front")
    if phase.amplify:
        parts.append("steps of a cycle up to 32 times before it is read, twice as often whenever 12 cycles were flat")
    if phase.when:
        parts.append(f"only after a {phase.when}")
    return ", ".join(parts)


def _size(phase: ScheduledPhase) -> str:
    if phase.kind == "steps":
        return "steps"
    is_fixed = phase.at_least == phase.at_most
    count = f"{phase.at_most}" if is_fixed else f"{phase.at_least} to {phase.at_most}"
    until = f" until {phase.until}" if phase.until else ""
    what = f"{phase.arm.value} cycles" if phase.arm else "pairs of a control and a treatment cycle"
    return f"{count} {what}{until}"


def _after_title(phase: ScheduledPhase) -> str:
    return "after" if phase.arm else "after, if all cycles were run"


def _first_cycles(phase: ScheduledPhase) -> Iterator[str]:
    shown = 0
    for cycle in islice(phase.cycles(), _CYCLES_DESCRIBED):
        kind = ", warm-up" if cycle.is_warm_up else ""
        yield from _block(f"cycle {cycle.number} ({cycle.arm.value}{kind})", cycle.steps)
        shown += 1
    total = phase.warm_up_cycles + phase.at_most * (1 if phase.arm else 2)
    if phase.kind == "cycles" and total > shown:
        yield f"  … and so on, up to {total} cycles"


def _block(title: str, steps: Iterable[Scheduled]) -> Iterator[str]:
    listed = [line for scheduled in islice(steps, _STEPS_DESCRIBED + 1) for line in _lines(scheduled)]
    if listed:
        yield f"  {title}"
    yield from listed[:_STEPS_DESCRIBED]
    if len(listed) > _STEPS_DESCRIBED:
        yield "         … and so on"


def _lines(scheduled: Scheduled) -> Iterator[str]:
    if isinstance(scheduled, ScheduledStep):
        yield f"    {scheduled.position.step_number:>3}  {_told(scheduled)}"
        return
    gap = f", one every {format_seconds(scheduled.gap_s)}" if scheduled.gap_s else ""
    yield f"         together{gap}:"
    yield from (f"    {step.position.step_number:>3}  | {_told(step)}" for step in scheduled.steps)


def _told(scheduled: ScheduledStep) -> str:
    spec = scheduled.spec
    shown = spec.fields if isinstance(scheduled.step, RestartFresh) else fields_set(scheduled.step)
    fields = [f"{name}={json.dumps(value)}" for name, value in shown.items() if name != "model"]
    limit = f"(at most {spec.deadline_s:g} s)"
    record = f"[latency is {spec.record}]" if spec.record else ""
    undocumented = "[undocumented]" if spec.undocumented else ""
    return " ".join(
        part for part in (spec.label(), *fields, _expected(spec.expect), limit, record, undocumented) if part
    )


def _expected(expect: Expectation) -> str:
    if expect.kind != "fields":
        return "" if expect.kind == "ok" else f"-> {expect.kind}"
    parts = [f"status {' or '.join(map(str, expect.status))}"] if expect.status else []
    parts += [f"error /{expect.error}/"] if expect.error else []
    parts += [f"within {format_seconds(expect.within_s)}"] if expect.within_s is not None else []
    parts += [f"{model} {state}" for model, state in expect.state.items()]
    parts += [f"reason /{expect.reason}/"] if expect.reason else []
    parts += [f"version {' and '.join(expect.version)}"] if expect.version else []
    parts += ["outputs match"] if expect.outputs else []
    parts += [f"log /{expect.log}/"] if expect.log else []
    parts += [f"no log /{expect.not_log}/"] if expect.not_log else []
    parts += [f"{count} {role} processes" for role, count in expect.processes.items()]
    parts += [f"{'' if wanted else 'not '}live" for wanted in [expect.live] if wanted is not None]
    parts += [f"{'' if wanted else 'not '}ready" for wanted in [expect.ready] if wanted is not None]
    return f"-> {', '.join(parts)}"
