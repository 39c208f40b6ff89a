"""Cycles are alike if only stamps, times, log offsets and values of readings differ; all else tells them apart."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from tests.builders import CONTROL, TREATMENT
from tritonchaos.observations import (
    Answer,
    CycleFinished,
    CycleStarted,
    Event,
    Evidence,
    Expectation,
    ModelState,
    NoAnswer,
    Note,
    Position,
    Probe,
    Reading,
    ServerStarted,
    SettleWindow,
    StepFinished,
    StepSpec,
    TrafficSummary,
)
from tritonchaos.store.likeness import Likeness

CYCLE = CycleStarted(5, "wrong", TREATMENT, 7, False)
AT = Position("wrong", TREATMENT, 7, "main", 1)
SPEC = StepSpec("load", "ident", {"model": "ident"}, Expectation(within_s=1.0), 30.0)
STEP = StepFinished(AT, 10, 20, SPEC, Answer(400, b"no", 9), {"gone_after_ns": 5, "match": True, "n": 1}, 100, 200)
PROBE = Probe(AT, 30, "ident", (ModelState("ident", "1", "READY", ""),), 200, 200, None, None)
LOADED = Reading(40, "loaded", AT, {"a_bytes": 1, "b_bytes": 2})
WINDOW = SettleWindow("wrong", TREATMENT, 7, 1, (1, 2), {"a_bytes": (1, 2)}, frozenset({"a_bytes"}))
FINISHED = CycleFinished(50, "wrong", 7)
OTHER_POSITIONS = [
    replace(AT, phase="other"),
    replace(AT, arm=CONTROL),
    replace(AT, cycle=8),
    replace(AT, cycle=None),
    replace(AT, track="beside"),
]


def alike(event: Event) -> Any:
    specs: list[StepSpec] = [SPEC]

    def number(spec: StepSpec) -> int:
        if spec not in specs:
            specs.append(spec)
        return specs.index(spec)

    return Likeness(number).of(event, CYCLE)


@pytest.mark.parametrize(
    ("event", "same"),
    [
        (STEP, {"started_ns": 11, "t_ns": 21, "log_start": 0, "log_end": 9}),
        (STEP, {"reply": Answer(400, b"no", 999_999_999)}),
        (STEP, {"observed": {"gone_after_ns": 6, "match": True, "n": 1}}),
        (PROBE, {"t_ns": 31}),
        (LOADED, {"t_ns": 41, "values": {"a_bytes": 8, "b_bytes": 9}}),
        (WINDOW, {"times_ns": (3, 4, 5), "values": {"a_bytes": (5, None, 6)}}),
        (FINISHED, {"t_ns": 51}),
        (CYCLE, {"t_ns": 6}),
    ],
)
def test_stamps_times_offsets_and_values_make_no_difference(event: Any, same: dict[str, Any]) -> None:
    assert alike(event) is not None
    assert alike(replace(event, **same)) == alike(event)


@pytest.mark.parametrize(
    ("event", "other"),
    [
        *((STEP, {"position": replace(AT, step_number=2)}), (PROBE, {"position": replace(AT, step_number=2)})),
        (STEP, {"spec": replace(SPEC, undocumented=True)}),
        (STEP, {"reply": None}),
        (STEP, {"reply": Answer(200, b"no", 9)}),
        (STEP, {"reply": Answer(400, b"yes", 9)}),
        (STEP, {"reply": Answer(400, b"no", 1_000_000_001)}),  # later than its expectation allows
        (STEP, {"reply": NoAnswer("deadline", 9)}),
        (STEP, {"observed": {}}),
        (STEP, {"observed": {"gone_after_ns": 5, "match": False, "n": 1}}),
        (STEP, {"observed": {"gone_after_ns": 5, "match": True, "n": 2}}),
        (STEP, {"observed": {"gone_after_ns": 5, "match": True, "n": 1.0}}),
        (STEP, {"observed": {"gone_after_ns": 5, "match": True, "n": True}}),
        (STEP, {"observed": {"gone_after_ns": 5.0, "match": True, "n": 1}}),
        (STEP, {"observed": {"gone_after_ns": 5, "match": True, "n": 1, "stuck": "LOADING"}}),
        (PROBE, {"model": "other"}),
        (PROBE, {"index": None}),
        (PROBE, {"index": ()}),
        (PROBE, {"index": (ModelState("ident", "1", "UNAVAILABLE", ""),)}),
        (PROBE, {"index": (ModelState("ident", "2", "READY", ""),)}),
        (PROBE, {"index": (ModelState("ident", "1", "READY", "why"),)}),
        *((PROBE, {name: 503}) for name in ("model_ready", "metadata", "live", "ready")),
        (LOADED, {"name": "record"}),
        (LOADED, {"values": {"a_bytes": 1}}),
        (LOADED, {"position": replace(AT, step_number=2)}),
        (WINDOW, {"start_number": 2}),
        (WINDOW, {"settled": frozenset()}),
        (WINDOW, {"values": {"b_bytes": (1, 2)}}),
        (CYCLE, {"is_warm_up": True}),
    ],
)
def test_everything_else_does(event: Any, other: dict[str, Any]) -> None:
    assert alike(replace(event, **other)) != alike(event)


def test_every_field_is_looked_at_or_left_out_on_purpose() -> None:
    """A field that is added later has to be put into one of the two tests above."""
    known = {
        StepFinished: "position started_ns t_ns spec reply observed log_start log_end",
        Probe: "position t_ns model index model_ready metadata live ready",
        Reading: "t_ns name position values",
        SettleWindow: "phase arm cycle start_number times_ns values settled",
        CycleStarted: "t_ns phase arm cycle is_warm_up",
        CycleFinished: "t_ns phase cycle",
        ModelState: "name version state reason",
        Position: "phase arm cycle track step_number",
        Answer: "status body elapsed_ns",
        NoAnswer: "reason elapsed_ns",
    }
    assert {kind: " ".join(f.name for f in fields(kind)) for kind in known} == known


@pytest.mark.parametrize(
    "event",
    [
        *(replace(event, position=at) for event in (STEP, PROBE, LOADED) for at in OTHER_POSITIONS),
        replace(LOADED, position=None),
        replace(LOADED, name="ready"),
        replace(WINDOW, cycle=8),
        replace(WINDOW, phase="other"),
        replace(FINISHED, cycle=8),
        Note(1, "text"),
        Evidence(1, AT, "hang", {}, ()),
        ServerStarted(1, 2, 3, "url", 0),
        TrafficSummary(2, 1, "wrong", "beside", SPEC, 1, 1, 0, (1, 1, 1, 1)),
    ],
)
def test_what_is_not_of_the_cycle_makes_it_like_no_other(event: Event) -> None:
    assert alike(event) is None
