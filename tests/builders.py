"""Builders of histories: a test shows only what it is about, everything else is an ordinary run without defects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tritonchaos.observations import (
    Answer,
    Arm,
    CycleFinished,
    CycleStarted,
    Event,
    Expectation,
    History,
    ModelState,
    NoAnswer,
    Position,
    Probe,
    Reading,
    Reply,
    RunFacts,
    ServerStarted,
    ServerStopped,
    SettleWindow,
    StepFinished,
    StepSpec,
)

CONTROL, TREATMENT = Arm.CONTROL, Arm.TREATMENT
WRONG_DATATYPE = "unexpected datatype TYPE_FP32 for inference output 'OUTPUT', expecting TYPE_INT32"


def make_facts(**changes: Any) -> RunFacts:
    facts = RunFacts(
        run_id="run-1",
        tritonchaos_version="0.1.0",
        scenario="failed-load",
        seed=1,
        started_utc="2026-01-01T00:00:00Z",
        target={"target": "local", "triton_version": "2.51.0"},
        target_skipped=(),
        variants={"ident": "planted"},
        uses_gpu=False,
        unavailable={},
        sample_count=3,
        phases=(),
        checks=(),
    )
    return replace(facts, **changes)


# --- replies and steps ---------------------------------------------------------------------------


def ok(body: bytes = b"", elapsed_ns: int = 2_000_000) -> Answer:
    return Answer(200, body, elapsed_ns)


def refused(text: str = WRONG_DATATYPE, status: int = 400) -> Answer:
    return Answer(status, json.dumps({"error": text}).encode(), 2_000_000)


def no_answer(reason: str = "deadline", elapsed_ns: int = 30_000_000_000) -> NoAnswer:
    return NoAnswer(reason, elapsed_ns)


def make_position(phase="p", arm=TREATMENT, cycle: int | None = 0, track="main", step_number=0) -> Position:
    return Position(phase, arm, cycle, track, step_number)


def make_step(
    name: str = "load",
    model: str | None = "ident",
    *,
    reply: Reply | None = None,
    expect: Expectation | None = None,
    position: Position | None = None,
    observed: Mapping[str, Any] | None = None,
    undocumented: bool = False,
    deadline_s: float = 30.0,
    log: tuple[int, int] = (0, 0),
) -> StepFinished:
    """A step that was answered with 200 as expected, unless told otherwise."""
    return StepFinished(
        position=position or make_position(),
        started_ns=0,
        t_ns=1,
        spec=StepSpec(name, model, {}, expect or Expectation(), deadline_s, undocumented),
        reply=ok() if reply is None else reply,
        observed=observed or {},
        log_start=log[0],
        log_end=log[1],
    )


def make_probe(
    model: str = "ident",
    states: Mapping[str, str] | None = None,
    *,
    model_ready: int | None = 200,
    metadata: int | None = 200,
    position: Position | None = None,
) -> Probe:
    """What the server says after a step: by default the model is READY and everything agrees."""
    found = {"ident": "READY"} if states is None else states
    index = tuple(ModelState(name, "1", state, "") for name, state in found.items())
    return Probe(position or make_position(), 1, model, index, model_ready, metadata, 200, 200)


def gone_probe(position: Position | None = None, state: str = "UNAVAILABLE") -> Probe:
    return make_probe(states={"ident": state}, model_ready=400, metadata=400, position=position)


# --- cycles --------------------------------------------------------------------------------------


def make_window(phase: str, arm: Arm | None, cycle: int | None, values: Mapping[str, Any], start=1) -> SettleWindow:
    """Three equal readings per metric; a sequence gives the readings themselves."""
    readings = {m: tuple(v) if isinstance(v, Sequence) else (v,) * 3 for m, v in values.items()}
    return SettleWindow(phase, arm, cycle, start, (0, 10, 20), readings, frozenset(readings))


def make_cycle(
    values: Mapping[str, Any],
    *,
    phase: str = "p",
    arm: Arm = TREATMENT,
    cycle: int = 0,
    start: int = 1,
    is_warm_up: bool = False,
    loaded: Mapping[str, int] | None = None,
    reply: Reply | None = None,
    expect: Expectation | None = None,
) -> list[Event]:
    """The events of a load-unload cycle whose post-unload readings are `values`."""
    at = make_position(phase, arm, cycle)
    events: list[Event] = [
        CycleStarted(0, phase, arm, cycle, is_warm_up),
        make_step(position=at, reply=reply, expect=expect),
    ]
    if loaded is not None:
        events.append(Reading(1, "loaded", at, loaded))
    events += [
        make_step("unload", position=replace(at, step_number=1), observed={"gone_after_ns": 1_000_000}),
        make_window(phase, arm, cycle, values, start),
        CycleFinished(2, phase, cycle),
    ]
    return events


def failed_load(**more: Any) -> dict[str, Any]:
    """Arguments of `make_cycle` for a load that is refused as it should be."""
    return {"reply": refused(), "expect": Expectation(kind="fields", error="unexpected datatype"), **more}


@dataclass
class RunBuilder:
    """Collects the events of a run, phase after phase."""

    events: list[Event] = field(default_factory=list)

    def start(self, ready: Mapping[str, int] | None = None, start: int = 1) -> RunBuilder:
        self.events.append(ServerStarted(0, start, 4711, "http://127.0.0.1:8000", 1))
        if ready is not None:
            self.events.append(Reading(1, "ready", None, ready))
        return self

    def phase(self, name: str, arm: Arm, metric: str, series: Iterable[int], **cycle: Any) -> RunBuilder:
        """A block of cycles of one arm, with one reading per cycle."""
        for number, value in enumerate(series):
            self.events += make_cycle({metric: value}, phase=name, arm=arm, cycle=number, **cycle)
        return self

    def add(self, *events: Event) -> RunBuilder:
        self.events += events
        return self

    def stop(self, **changes: Any) -> RunBuilder:
        self.events.append(replace(ServerStopped(9, "SIGTERM", 0, False, False, 1_000_000), **changes))
        return self

    def history(self, **facts: Any) -> History:
        return make_history(self.events, **facts)


def run() -> RunBuilder:
    return RunBuilder()


def make_history(events: Sequence[Event], *, log: bytes = b"", interrupted: bool = False, **facts: Any) -> History:
    return History(make_facts(**facts), tuple(events), log=log, interrupted=interrupted)


def failed_load_run(
    metric: str,
    control: Iterable[int],
    treatment: Iterable[int],
    *,
    ready: Mapping[str, int] | None = None,
    **facts: Any,
) -> History:
    """A run in the shape of failed-load.yaml: a control block, then refused loads, then a regular stop."""
    builder = run().start(ready)
    builder.phase("baseline", CONTROL, metric, control)
    builder.phase("wrong_output_datatype", TREATMENT, metric, treatment, **failed_load())
    return builder.stop().history(**facts)
