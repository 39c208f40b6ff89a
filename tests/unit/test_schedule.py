"""The schedule: positions, coin-ordered pairs, warm-up cycles, randomness by seed alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonchaos.errors import ScenarioError
from tritonchaos.observations import Arm, Position
from tritonchaos.plugins import Contract, Registry, Workbench, load_plugins
from tritonchaos.scenario import Families, parse_scenario
from tritonchaos.schedule import (
    Cycle,
    Schedule,
    ScheduledPhase,
    ScheduledStep,
    ScheduledTogether,
    describe,
    expand,
    plain,
)

# No deadline: how long an example takes says nothing about the schedule.
calm = settings(deadline=None, max_examples=30)


@dataclass(frozen=True, slots=True)
class Mark:
    """Leave a mark."""

    name: ClassVar[str] = "mark"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    text: str
    times: int = 1

    def apply(self, bench: Workbench) -> None: ...


def schedule(phases: str, seed: int = 1) -> Schedule:
    steps: Registry[Any] = Registry("steps")
    steps.register(Mark)
    text = f"scenario: s\nseed: {seed}\nphases:\n{phases}"
    return expand(parse_scenario(text, "s.yaml", families=Families(steps=steps)))


def only(phases: str, seed: int = 1) -> ScheduledPhase:
    return schedule(phases, seed).phases[0]


def marks(steps: Any) -> list[str]:
    return [scheduled.step.text for scheduled in steps]


def arms(cycles: list[Cycle]) -> str:
    return "".join(cycle.arm.value[0] for cycle in cycles)


ONE_ARM = """
  - phase: p
    arm: control
    cycles: {at_least: 2, at_most: 5, until: flat}
    warm_up_cycles: 2
    before: [mark: b]
    each: [mark: e, {mark: {text: f, deadline: 3s, expect: any}}]
    after: [mark: a]
    meanwhile: [{track: side, each: [mark: s, mark: t]}]
"""

PAIRS = """
  - phase: p
    cycles: 40
    warm_up_cycles: {warm_up}
    arms:
      control: {{before: [mark: cb], each: [mark: c], after: [mark: ca]}}
      treatment: {{before: [mark: tb], each: [mark: t], after: [mark: ta]}}
"""


def test_one_arm_has_warm_up_cycles_first_and_counts_on():
    phase = only(ONE_ARM)
    cycles = list(phase.cycles())
    assert [cycle.number for cycle in cycles] == list(range(7))
    assert [cycle.is_warm_up for cycle in cycles] == [True] * 2 + [False] * 5
    assert {cycle.arm for cycle in cycles} == {Arm.CONTROL}
    assert (phase.kind, phase.arm, phase.at_least, phase.at_most, phase.until) == ("cycles", Arm.CONTROL, 2, 5, "flat")


def test_positions_and_specs():
    phase = only(ONE_ARM)
    cycle = next(islice(phase.cycles(), 3, None))
    assert [step.position for step in cycle.steps] == [
        Position("p", Arm.CONTROL, 3, "main", 0),
        Position("p", Arm.CONTROL, 3, "main", 1),
    ]
    assert cycle.steps[0].step == Mark("e")
    spec = cycle.steps[1].spec
    assert (spec.fields, spec.expect.kind, spec.deadline_s) == ({"text": "f", "times": 1}, "any", 3.0)
    assert [step.position for step in phase.before()] == [Position("p", Arm.CONTROL, None, "main", 0)]
    # The numbers go on, so that no two steps of a phase share a position.
    assert [step.position for step in phase.after()] == [Position("p", Arm.CONTROL, None, "main", 1)]
    assert list(phase.steps()) == []


def test_tracks_repeat_by_round():
    track = only(ONE_ARM).tracks[0]
    assert track.name == "side"
    assert marks(track.iteration(7)) == ["s", "t"]
    assert [step.position for step in track.iteration(7)] == [
        Position("p", Arm.CONTROL, 7, "side", 0),
        Position("p", Arm.CONTROL, 7, "side", 1),
    ]


def test_an_arm_on_its_own_is_on_trial():
    assert only("  - {phase: p, cycles: 1, each: [mark: x]}\n").arm is Arm.TREATMENT


def test_plain_steps_belong_to_no_arm_and_no_cycle():
    phase = only("  - {phase: p, when: leak, steps: [mark: x, mark: y]}\n")
    assert (phase.kind, phase.arm, phase.when, phase.at_most) == ("steps", None, "leak", 0)
    assert marks(phase.steps()) == ["x", "y"]
    assert [step.position for step in phase.steps()] == [
        Position("p", None, None, "main", 0),
        Position("p", None, None, "main", 1),
    ]
    assert list(phase.cycles()) == []


@calm
@given(seed=st.integers(0, 2**32), warm_up=st.integers(0, 5))
def test_each_pair_has_one_cycle_of_each_arm(seed: int, warm_up: int):
    cycles = list(only(PAIRS.format(warm_up=warm_up), seed).cycles())
    assert [cycle.number for cycle in cycles] == list(range(warm_up + 80))
    assert [cycle.is_warm_up for cycle in cycles] == [True] * warm_up + [False] * 80
    assert arms(cycles[:warm_up]) == ("ct" * 3)[:warm_up]
    judged = arms(cycles[warm_up:])
    assert {judged[i : i + 2] for i in range(0, 80, 2)} <= {"ct", "tc"}


@calm
@given(seed=st.integers(0, 2**32), warm_up=st.integers(0, 3))
def test_before_and_after_run_when_the_arm_changes_and_only_then(seed: int, warm_up: int):
    phase = only(PAIRS.format(warm_up=warm_up), seed)
    previous = ""
    last = None
    for cycle in phase.cycles():
        arm = cycle.arm.value[0]
        change = [f"{previous}a"] * bool(previous) + [f"{arm}b"] if arm != previous else []
        assert marks(cycle.steps) == [*change, arm]
        assert [step.position.step_number for step in cycle.steps] == list(range(len(cycle.steps)))
        assert {step.position.arm for step in cycle.steps} == {cycle.arm}
        previous, last = arm, cycle
    assert last is not None
    assert marks(phase.after()) == marks(phase.after(last.arm)) == [f"{previous}a"]
    assert marks(phase.before()) == []


def test_a_phase_of_pairs_that_ended_early_is_left_by_its_last_arm():
    phase = only(PAIRS.format(warm_up=0))
    assert (marks(phase.after(Arm.CONTROL)), marks(phase.after(Arm.TREATMENT))) == (["ca"], ["ta"])
    assert (phase.arm, phase.at_least, phase.at_most) == (None, 40, 40)


def test_the_coin_is_fair_and_differs_by_seed_and_phase():
    first = Counter(next(only(PAIRS.format(warm_up=0), seed).cycles()).arm for seed in range(400))
    assert 150 < first[Arm.CONTROL] < 250
    orders = {arms(list(only(PAIRS.format(warm_up=0), seed).cycles())) for seed in range(20)}
    assert len(orders) == 20
    two = schedule(PAIRS.format(warm_up=0) + PAIRS.format(warm_up=0).replace("phase: p", "phase: q"))
    assert arms(list(two.phases[0].cycles())) != arms(list(two.phases[1].cycles()))


def everything(whole: Schedule) -> list[tuple[Position, float]]:
    steps: list[ScheduledStep] = []
    for phase in whole.phases:
        steps += [*phase.before(), *(step for cycle in phase.cycles() for step in cycle.steps), *phase.after()]
        steps += [step for track in phase.tracks for number in range(3) for step in track.iteration(number)]
    return [(step.position, step.random().random()) for step in steps]


@calm
@given(seed=st.integers(-5, 2**40))
def test_the_seed_decides_everything(seed: int):
    phases = ONE_ARM + PAIRS.format(warm_up=1).replace("phase: p", "phase: q")
    once, again = everything(schedule(phases, seed)), everything(schedule(phases, seed))
    assert once == again
    positions = [position for position, _ in once]
    assert len(set(positions)) == len(positions)
    assert len({draw for _, draw in once}) == len(once)
    assert [draw for _, draw in everything(schedule(phases, seed + 1))] != [draw for _, draw in once]


def test_a_step_draws_the_same_whatever_ran_before():
    step = next(only(ONE_ARM).cycles()).steps[0]
    step.random().random()
    assert step.random().random() == step.random().random()
    # Fixed for good: a recorded seed must mean the same in every later version.
    assert step.random().random() == Random("1/p/main/0/0").random()


def test_a_billion_cycles_cost_nothing_until_they_are_run():
    phase = only("  - {phase: p, cycles: 1000000000, each: [mark: x]}\n")
    assert [cycle.number for cycle in islice(phase.cycles(), 2)] == [0, 1]
    lines = list(describe(schedule("  - {phase: p, cycles: 1000000000, each: [mark: x]}\n")))
    assert lines[-1] == "  … and so on, up to 1000000000 cycles"


def test_describe_shows_the_first_cycles_and_what_is_expected():
    lines = list(describe(schedule(ONE_ARM)))
    assert lines[:2] == ["scenario s, seed 1", ""]
    assert lines[2] == "phase p: 2 to 5 control cycles until flat, 2 warm-up cycles in front"
    assert '      1  mark text="f" -> any (at most 3 s)' in lines
    assert "  cycle 2 (control)" in lines and "  cycle 3 (control)" not in lines
    assert "  … and so on, up to 7 cycles" in lines
    assert lines == list(describe(schedule(ONE_ARM)))


# --- repeat, together, every, fresh ---------------------------------------------------------------


def test_repeat_is_written_out_and_every_step_has_a_number_of_its_own():
    inner = "repeat: {times: 2, steps: [mark: c]}"
    phase = only(f"  - {{phase: p, steps: [mark: a, repeat: {{times: 2, steps: [mark: b, {inner}]}}, mark: d]}}")
    steps = list(plain(phase.steps()))
    assert marks(steps) == ["a", "b", "c", "c", "b", "c", "c", "d"]
    assert [step.position.step_number for step in steps] == list(range(8))


def test_a_repeat_of_a_billion_is_not_written_out_at_once():
    phase = only("  - {phase: p, steps: [repeat: {times: 1000000000, steps: [mark: a, mark: b]}, mark: c]}")
    first = list(islice(phase.steps(), 3))
    assert marks(plain(first)) == ["a", "b", "a"]
    assert len(list(describe(schedule("  - {phase: p, steps: [repeat: {times: 99999, steps: [mark: a]}]}")))) < 60


def test_steps_together_are_one_group_with_numbers_of_their_own():
    phase = only("  - {phase: p, steps: [mark: a, together: {gap: 5ms, steps: [mark: b, mark: c]}, mark: d]}")
    _, group, last = phase.steps()
    assert isinstance(group, ScheduledTogether)
    assert group.gap_s == 0.005
    assert [(step.step.text, step.position.step_number) for step in group.steps] == [("b", 1), ("c", 2)]
    assert isinstance(last, ScheduledStep) and last.position.step_number == 3


def test_every_counts_cycles_and_leaves_the_numbers_of_the_others_alone():
    phase = only(
        "  - {phase: p, cycles: 6, warm_up_cycles: 1, each: [{mark: {text: third, every: 3}}, mark: always,"
        " {together: {every: 2, steps: [mark: x]}}]}"
    )
    seen = [marks(plain(cycle.steps)) for cycle in phase.cycles()]
    assert seen == [
        ["always"],
        ["always"],
        ["always", "x"],
        ["third", "always"],
        ["always", "x"],
        ["always"],
        ["third", "always", "x"],
    ]
    numbers = {step.step.text: step.position.step_number for c in phase.cycles() for step in plain(c.steps)}
    assert numbers == {"third": 0, "always": 1, "x": 2}


@calm
@given(seed=st.integers(0, 2**32))
def test_every_treats_both_arms_alike(seed: int):
    phase = only(
        """
  - phase: p
    cycles: 8
    arms:
      control: {each: [mark: c, {mark: {text: ce, every: 4}}]}
      treatment: {each: [mark: t, {mark: {text: te, every: 4}}]}
""",
        seed,
    )
    told = Counter(mark for cycle in phase.cycles() for mark in marks(plain(cycle.steps)))
    assert told == {"c": 8, "t": 8, "ce": 2, "te": 2}


def test_every_counts_the_rounds_of_a_track():
    track = only(
        "  - {phase: p, steps: [mark: x], meanwhile: [{track: t, each: [{mark: {text: s, every: 2}}]}]}"
    ).tracks[0]
    assert [marks(plain(track.iteration(number))) for number in range(4)] == [[], ["s"], [], ["s"]]


FRESH = """
  - {{phase: a, cycles: 2, each: [mark: a]}}
  - {{phase: b, {server} cycles: 2, before: [mark: bb], each: [mark: b], after: [mark: ba]}}
  - {{phase: c, steps: [mark: c]}}
"""


def restarts(text: str, top: str = "") -> list[tuple[list[str], list[list[str]]]]:
    steps: Registry[Any] = Registry("steps")
    steps.register(Mark)
    whole = parse_scenario(f"scenario: s\n{top}phases:\n{text}", "s.yaml", families=Families(steps=steps))
    return [
        (
            [step.spec.fields["because"] for step in phase.restart()],
            [[step.spec.name for step in plain(cycle.steps)] for cycle in phase.cycles()],
        )
        for phase in expand(whole).phases
    ]


def test_without_fresh_there_is_one_server():
    assert [because for because, _ in restarts(FRESH.format(server=""))] == [[], [], []]


def test_a_fresh_server_for_each_phase_but_the_first():
    found = restarts(FRESH.format(server=""), "server: {fresh: phase}\n")
    assert [because for because, _ in found] == [[], ["fresh: phase"], ["fresh: phase"]]


def test_a_fresh_server_for_each_cycle_of_one_phase():
    found = restarts(FRESH.format(server="server: {fresh: cycle},"))
    assert [because for because, _ in found] == [[], ["fresh: cycle"], []]
    assert found[1][1] == [["restart_server", "mark"]] * 2
    assert found[0][1] == [["mark"]] * 2


def test_other_server_options_mean_a_restart_before_the_phase_and_one_after_it():
    text = FRESH.format(server="server: {flags: {log-verbose: 1}},")
    because = [because for because, _ in restarts(text)]
    assert because == [[], ["other server options in this phase"], ["other server options in this phase"]]
    phase = schedule(text).phases[1]
    (restart,) = phase.restart()
    assert restart.step.settings.flags == {"log-verbose": 1}
    numbers = [step.position.step_number for step in plain([*phase.restart(), *phase.before(), *phase.after()])]
    assert numbers == [0, 1, 2]


def test_the_same_options_once_more_mean_no_restart():
    text = FRESH.format(server="server: {flags: {a: 1}},")
    assert [because for because, _ in restarts(text, "server: {flags: {a: 1}}\n")] == [[], [], []]


# --- more than once before a reading -------------------------------------------------------------


def test_a_cycle_repeats_its_steps_as_often_as_is_asked_before_it() -> None:
    phase = only("  - {phase: p, cycles: 4, warm_up_cycles: 1, each: [{mark: a}, {mark: b}]}")
    asked = iter([1, 2, 2, 4])
    cycles = list(phase.cycles(lambda: next(asked)))
    assert [cycle.repeats for cycle in cycles] == [1, 1, 2, 2, 4]
    assert marks(cycles[-1].steps) == ["a", "b"] * 4
    assert [step.position.step_number for step in plain(cycles[-1].steps)] == list(range(8))


def test_both_arms_of_a_pair_repeat_alike_and_what_leads_to_an_arm_is_done_once() -> None:
    phase = only(
        "  - {phase: p, cycles: 20, arms: {control: {each: [{mark: c}]},"
        " treatment: {before: [{mark: edit}], each: [{mark: t}], after: [{mark: back}]}}}"
    )
    times = [1]
    repeats = []
    for cycle in phase.cycles(lambda: times[0]):
        repeats.append(cycle.repeats)
        times[0] = 3 if cycle.number >= 4 else 1
        done = marks(cycle.steps)
        assert done.count("edit") <= 1 and done.count("back") <= 1
        assert done.count("c" if cycle.arm is Arm.CONTROL else "t") == cycle.repeats
    assert repeats == [1] * 6 + [3] * 34


# --- the reclaim ladder --------------------------------------------------------------------------

LADDER = """\
scenario: s
target: [{{local: {{}}}}]
models: {{a: {{template: identity}}, b: {{template: identity}}}}
phases: [{{phase: who, ladder: {ladder}{more}}}]
check: [memory_growth]
"""


def ladder(models: str, more: str = "") -> ScheduledPhase:
    load_plugins()
    return expand(parse_scenario(LADDER.format(ladder=models, more=more), "s.yaml")).phases[0]


def test_a_ladder_is_climbed_after_a_leak_and_takes_everything_down_step_by_step() -> None:
    phase = ladder("a")
    assert phase.when == "leak"
    steps = [step.spec.label() for step in plain(phase.steps())]
    climbed = "rung, restore a, load a, wait, unload a, rung, unload a, unload b, rung, trim, stop_server, rung"
    assert ", ".join(steps) == climbed


def test_a_ladder_of_several_models_loads_each_of_them() -> None:
    loads = [step.spec.model for step in plain(ladder("[a, b]", ", when: crash").steps()) if step.spec.name == "load"]
    assert loads == ["a", "b"]


def test_a_ladder_stands_alone_in_its_phase_and_names_models() -> None:
    for wrong, told in [
        (("a", ", cycles: 3"), "cycles beside ladder"),
        (("a", ", steps: [settle]"), "both steps and ladder"),
        (("c",), "'c'"),
        (("[]",), "ladder"),
        (("3",), "ladder"),
    ]:
        with pytest.raises(ScenarioError) as error:
            ladder(*wrong)
        assert told in f"{error.value}", wrong
