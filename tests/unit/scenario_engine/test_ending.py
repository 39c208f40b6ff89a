"""When a phase ends before its last cycle."""

from __future__ import annotations

import pytest

from tests.builders import CONTROL, TREATMENT, make_cycle
from tritonchaos.plugins import Advice, load_plugins
from tritonchaos.post_unload import CycleReading, read_cycles
from tritonchaos.scenario import parse_scenario
from tritonchaos.scenario_engine.ending import Ending
from tritonchaos.schedule import Cycle, ScheduledPhase, expand

HOST = "host_private_bytes"
SCENARIO = """\
scenario: s
target: [{{local: {{}}}}]
models: {{ident: {{template: identity}}}}
phases: [{{phase: p, cycles: {cycles}, warm_up_cycles: {warm_up}, {body}}}]
check: [memory_growth]
"""
EACH = "each: [{load: ident}]"
PAIRS = "arms: {control: {each: [{load: ident}]}, treatment: {each: [{load: ident}]}}"
UNTIL_VERDICT = "{at_least: 6, at_most: 20, until: verdict}"
UNTIL_FLAT = "{at_least: 2, at_most: 20, until: flat}"


def phase(cycles: str, body: str = EACH, warm_up: int = 0) -> ScheduledPhase:
    load_plugins()
    return expand(parse_scenario(SCENARIO.format(cycles=cycles, body=body, warm_up=warm_up), "s.yaml")).phases[0]


def reading(used: int, start: int = 1) -> CycleReading:
    return read_cycles(make_cycle({HOST: used}, start=start), 3)[0]


def ended_after(ending: Ending, advice: Advice, levels: list[int], warm_up: int = 0) -> tuple[int, str] | None:
    """Number of cycles, and the reason, at which the phase ended."""
    for number, used in enumerate(levels):
        arm = CONTROL if number % 2 else TREATMENT
        reason = ending.see(Cycle(number, arm, number < warm_up, ()), reading(used), advice)
        if reason:
            return number + 1, reason
    return None


def test_a_verdict_ends_a_phase_from_at_least_on() -> None:
    assert ended_after(Ending(phase(UNTIL_VERDICT), False), Advice.ENOUGH, [0] * 20) == (6, "verdict")


def test_warm_up_cycles_do_not_count() -> None:
    ending = Ending(phase(UNTIL_VERDICT, warm_up=3), False)
    assert ended_after(ending, Advice.ENOUGH, [0] * 20, warm_up=3) == (9, "verdict")


def test_in_pairs_treatment_cycles_are_counted() -> None:
    assert ended_after(Ending(phase(UNTIL_VERDICT, PAIRS), False), Advice.ENOUGH, [0] * 40) == (12, "verdict")


@pytest.mark.parametrize("advice", [Advice.GO_ON, Advice.DOUBLE_LOADS])
def test_without_a_verdict_it_goes_on(advice: Advice) -> None:
    assert ended_after(Ending(phase(UNTIL_VERDICT), False), advice, [0] * 20) is None


def test_fixed_cycles_go_on_to_their_end_whatever_is_known() -> None:
    assert ended_after(Ending(phase("20"), False), Advice.ENOUGH, [0] * 20) is None


def test_a_flat_phase_ends_when_the_last_three_of_four_agree() -> None:
    levels = [10**9, 10**8, 10**8, 10**8 + 8192, 10**8]
    assert ended_after(Ending(phase(UNTIL_FLAT), False), Advice.GO_ON, levels) == (4, "flat")


def test_a_new_server_has_to_become_flat_anew() -> None:
    ending = Ending(phase(UNTIL_FLAT), False)
    for number, start in enumerate([1, 1, 1, 2, 2, 2]):
        assert ending.see(Cycle(number, CONTROL, False, ()), reading(10**8, start), Advice.GO_ON) is None
    assert ending.see(Cycle(6, CONTROL, False, ()), reading(10**8, 2), Advice.GO_ON) == "flat"
