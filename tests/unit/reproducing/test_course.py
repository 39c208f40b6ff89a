"""From recorded events to the steps of repro.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import CONTROL, TREATMENT, failed_load, make_cycle, make_position, make_step, run
from tests.recorded_runs import HOST, edit_step
from tritonchaos.observations import Event, ServerStarted
from tritonchaos.plugins import load_plugins
from tritonchaos.reproducing.course import course, flat
from tritonchaos.reproducing.recorded import Edit
from tritonchaos.reproducing.shrinking import blocks, models_needed, most_loads
from tritonchaos.reproducing.together import Group, Groups
from tritonchaos.scenario import parse_scenario

load_plugins()

ADDED = [Edit("add-ident", "ident", "0001"), Edit("add-other", "other", "0002")]
WRONG, RIGHT = {"set": {"a": 1}}, {"set": {"a": 2}}


def used(events: list[Event], *edits: Edit) -> list[str]:
    parts = course(events, [*ADDED, *edits]).parts
    return [step["state"] for part in parts for step in part.steps if step["do"] == "use"]


def test_an_edit_becomes_the_state_that_it_brought_about() -> None:
    events: list[Event] = [edit_step(**WRONG), edit_step("restore")]
    assert used(events, Edit("edit_config-ident", "ident", "0003"), Edit("restore-ident", "ident", "0001")) == [
        "0003",
        "0001",
    ]


def test_an_edit_that_changes_nothing_is_no_step() -> None:
    events: list[Event] = [edit_step("restore"), edit_step(**WRONG), edit_step(**WRONG), edit_step(**RIGHT)]
    edits = [Edit("edit_config-ident", "ident", "0003"), Edit("edit_config-ident", "ident", "0004")]
    assert used(events, *edits)[0] == "0003"
    assert used([edit_step("restore")]) == []


def test_the_same_edit_in_every_cycle_finds_the_same_states() -> None:
    both = [Edit("edit_config-ident", "ident", "0003"), Edit("restore-ident", "ident", "0001")]
    events: list[Event] = [edit_step(**WRONG), edit_step("restore")] * 3
    assert used(events, *both * 3) == ["0003", "0001"] * 3


def test_steps_of_other_tracks_and_samples_are_left_out() -> None:
    events: list[Event] = [
        make_step(position=make_position(track="beside")),
        make_step("sample", None),
        make_step("unload"),
    ]
    assert [step["do"] for part in course(events, ADDED).parts for step in part.steps] == ["unload"]


def test_a_start_between_cycles_is_a_restart_that_is_written_down() -> None:
    events = run().start().phase("p", CONTROL, HOST, [1]).events
    events += [ServerStarted(0, 2, 1, "", 1), *make_cycle({HOST: 1}, cycle=1, start=2)]
    assert [part.steps[0]["do"] for part in course(events, ADDED).parts] == ["load", "restart_server"]


def test_cycles_that_do_the_same_are_one_block_and_left_out_edits_are_made_up_for() -> None:
    events = run().phase("good", CONTROL, HOST, [1, 1, 1]).events
    events += [edit_step(**WRONG), *run().phase("wrong", TREATMENT, HOST, [1, 2], **failed_load()).events]
    parts = course(events, [*ADDED, Edit("edit_config-ident", "ident", "0003")]).parts
    assert [(block["phase"], block["cycles"]) for block in blocks(parts)] == [("good", 3), ("wrong", 0), ("wrong", 2)]
    without_edit = [part for part in parts if part.cycle is not None]
    [_, made_up, last] = blocks(without_edit)
    assert made_up["each"] == [{"do": "use", "model": "ident", "state": "0003"}]
    assert (last["phase"], last["cycles"]) == ("wrong", 2)


def test_a_phase_that_repeats_its_loads_is_done_at_its_highest_number() -> None:
    def cycle(number: int, rounds: int) -> list[Event]:
        whole = make_cycle({HOST: 1}, cycle=number)
        return [whole[0], *whole[1:3] * rounds, *whole[3:]]

    events = [event for number, rounds in enumerate((1, 1, 2, 4, 4)) for event in cycle(number, rounds)]
    kept, rounds = most_loads(course(events, ADDED).parts)
    assert [part.cycle for part in kept] == [3, 4]
    assert rounds == 4


@pytest.mark.parametrize(
    ("configs", "needed"),
    [
        ({"ident": "", "other": ""}, {"ident"}),
        ({"ident": 'ensemble_scheduling { step { model_name: "other" } }', "other": ""}, {"ident", "other"}),
        ({"ident": 'step { model_name: "elsewhere" }'}, {"ident"}),
    ],
)
def test_models_that_a_needed_one_names_are_needed_too(configs: dict[str, str], needed: set[str]) -> None:
    parts = course([make_step()], ADDED).parts
    assert models_needed(parts, configs) == needed


def expectation_of(step: Any) -> dict[str, Any]:
    [part] = course([step], ADDED).parts
    return part.steps[0]["expect"]


def test_an_expectation_is_written_without_what_demands_nothing() -> None:
    [_, load, *_] = make_cycle({HOST: 1}, **failed_load())
    assert expectation_of(make_step()) == {"kind": "ok"}
    assert expectation_of(load) == {"kind": "fields", "error": "unexpected datatype"}


# --- at the same time ----------------------------------------------------------------------------

TOGETHER = """scenario: x
target: [{local: {}}]
models: {ident: {template: identity}}
phases:
  - phase: p
    cycles: 4
    before: [{together: {steps: [{load: ident}, {wait: 1s}]}}]
    each:
      - load: ident
      - together: {gap: 5ms, steps: [{infer: ident}, {unload: ident}]}
      - wait: 1s
check: [server_alive]
"""


def at(number: int, name: str, cycle: int | None = 0) -> Event:
    return make_step(name, position=make_position(cycle=cycle, step_number=number))


def test_steps_that_ended_in_any_order_are_one_group_in_their_own() -> None:
    groups = Groups(parse_scenario(TOGETHER, "x.yaml"))
    events = [at(0, "load"), at(2, "unload"), at(1, "infer"), at(3, "wait")]
    [part] = course(events, ADDED, groups, numbered=True).parts
    load, group, wait = part.steps
    assert (load["do"], wait["do"], group["do"], group["gap_s"]) == ("load", "wait", "together", 0.005)
    assert [(step["do"], step["number"]) for step in group["steps"]] == [("infer", 1), ("unload", 2)]
    assert [step["do"] for step in flat(part.steps)] == ["load", "infer", "unload", "wait"]


def test_groups_outside_of_cycles_are_known_too() -> None:
    groups = Groups(parse_scenario(TOGETHER, "x.yaml"))
    assert groups.of(make_position(cycle=None, step_number=1)) == Group(0, 0.0)
    assert groups.of(make_position(cycle=3, step_number=2)) == Group(1, 0.005)
    assert groups.of(make_position(cycle=3, step_number=0)) is None
    assert groups.of(make_position(phase="other")) is None


def test_an_edit_on_a_track_counts_among_the_states_and_is_kept_for_the_track() -> None:
    on_track = replace(edit_step(**WRONG), position=make_position("wrong", cycle=0, track="editor", step_number=3))
    edits = [Edit("edit_config-ident", "ident", "0003"), Edit("restore-ident", "ident", "0001")]
    told = course([on_track, edit_step("restore")], [*ADDED, *edits])
    assert told.track_states == {("wrong", "editor", 3): [[("ident", "0003")]]}
    assert [step["state"] for part in told.parts for step in part.steps] == ["0001"]
