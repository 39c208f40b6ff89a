"""How often the steps of a cycle are done before its reading."""

from __future__ import annotations

from tests.builders import TREATMENT
from tritonchaos.plugins import Advice, load_plugins
from tritonchaos.scenario import parse_scenario
from tritonchaos.scenario_engine.amplifying import Amplifier
from tritonchaos.schedule import Cycle, ScheduledPhase, expand

SCENARIO = """\
scenario: s
target: [{{local: {{}}}}]
models: {{ident: {{template: identity}}}}
phases: [{{phase: p, cycles: 100, amplify: {amplify}, each: [{{load: ident}}, {{unload: ident}}]}}]
check: [memory_growth]
"""


def phase(amplify: str = "true") -> ScheduledPhase:
    load_plugins()
    return expand(parse_scenario(SCENARIO.format(amplify=amplify), "s.yaml")).phases[0]


def see(amplifier: Amplifier, repeats: int, advice: Advice = Advice.DOUBLE_LOADS, *, is_warm_up: bool = False) -> int:
    amplifier.see(Cycle(0, TREATMENT, is_warm_up, (), repeats), advice)
    return amplifier.repeats


def test_it_doubles_up_to_32() -> None:
    amplifier = Amplifier(phase())
    assert [see(amplifier, amplifier.repeats) for _ in range(7)] == [2, 4, 8, 16, 32, 32, 32]


def test_nothing_else_makes_it_double() -> None:
    amplifier = Amplifier(phase())
    assert see(amplifier, 1, Advice.GO_ON) == 1
    assert see(amplifier, 1, Advice.ENOUGH) == 1
    assert see(amplifier, 1, is_warm_up=True) == 1


def test_the_second_cycle_of_a_pair_does_not_double_once_more() -> None:
    amplifier = Amplifier(phase())
    assert see(amplifier, 1) == 2
    assert see(amplifier, 1) == 2


def test_a_phase_without_amplify_never_doubles() -> None:
    assert see(Amplifier(phase("false")), 1) == 1
