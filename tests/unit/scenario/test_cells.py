"""`vary`: one scenario for each combination of values."""

from __future__ import annotations

import pytest

from tritonchaos.errors import ScenarioError
from tritonchaos.plugins import load_plugins
from tritonchaos.scenario import Scenario, parse_scenario
from tritonchaos.scenario.yaml_source import read_yaml
from tritonchaos.scenario.yaml_text import yaml_text

load_plugins()


def parse(vary: str) -> Scenario:
    text = f"""
scenario: s
target: [{{docker: {{image: a, gpus: [0]}}}}, {{docker: {{image: a}}}}, local]
models: {{m: {{template: identity}}}}
server: {{env: {{A: x}}}}
vary: {vary}
phases: [{{phase: p, cycles: 1, each: [load: m]}}]
"""
    return parse_scenario(text, "s.yaml")


def test_each_combination_is_a_scenario_and_the_first_values_come_first():
    cells = parse("{server.env.LD_PRELOAD: [none, /lib/x.so], phases.p.cycles: [2, 3]}").cells()
    assert [label for label, _ in cells] == [
        "server.env.LD_PRELOAD=none, phases.p.cycles=2",
        "server.env.LD_PRELOAD=none, phases.p.cycles=3",
        "server.env.LD_PRELOAD=/lib/x.so, phases.p.cycles=2",
        "server.env.LD_PRELOAD=/lib/x.so, phases.p.cycles=3",
    ]
    assert [
        (cell.server.env["LD_PRELOAD"], cell.phases[0].cycles.at_most) for _, cell in cells if cell.phases[0].cycles
    ] == [
        (None, 2),
        (None, 3),
        ("/lib/x.so", 2),
        ("/lib/x.so", 3),
    ]
    assert all(cell.server.env["A"] == "x" and not cell.vary for _, cell in cells)


def test_the_text_of_a_cell_is_a_scenario_of_its_own():
    label, cell = parse("{seed: [7]}").cells()[0]
    again = parse_scenario(cell.text, "cell.yaml")
    assert label == "seed=7"
    assert (again.seed, again.phases, again.target) == (7, cell.phases, cell.target)


def test_a_field_of_the_target_is_that_of_every_target():
    with pytest.raises(ScenarioError, match=r"target\[2\].local.gpus: found the unknown key"):
        parse("{target.gpus: [[0], [0, 1]]}")
    _, cell = parse("{'target[1].gpus': [[3]]}").cells()[0]
    assert [entry.fields for entry in cell.target] == [
        {"image": "a", "gpus": [0]},
        {"image": "a", "gpus": [3]},
        {},
    ]


def test_without_vary_the_scenario_is_its_own_cell():
    scenario = parse_scenario("scenario: s\nphases: [{phase: p, steps: [settle]}]\n", "s.yaml")
    assert scenario.cells() == [("", scenario)]


@pytest.mark.parametrize(
    ("vary", "told"),
    [
        ("3", "6:7: vary: found 3, expected a mapping"),
        ("{}", "vary: found an empty mapping"),
        ("{seed: 3}", "vary.seed: found 3, expected a list of values"),
        ("{seed: []}", "vary.seed: found an empty list"),
        ("{seed: [1, 1]}", "vary.seed: found a value a second time"),
        ("{sed: [1]}", "found a path that leads nowhere"),
        ("{vary.seed: [1]}", "found the path 'vary.seed'"),
        ("{seed: [x]}", "seed: found 'x', expected a whole number"),
        ("{phases.q.cycles: [1]}", "phases has no item 'q'"),
        ("{seed: [" + ",".join(map(str, range(300))) + "]}", "found 300 combinations, expected at most 256"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(vary: str, told: str):
    with pytest.raises(ScenarioError) as error:
        parse(vary)
    assert told in error.value.message


@pytest.mark.parametrize(
    "value",
    ["1e3", "yes", "010", "1:30", "", "a: b", "null", "-", "line\nline", "~", 3, 1.5, None, True, ["x"], {"a": []}],
)
def test_yaml_text_is_read_back(value: object):
    assert read_yaml(yaml_text({"key": value}), "s").value == {"key": value}
