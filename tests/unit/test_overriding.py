"""Values of the command line in place of the scenario's: found by their path, kept as run, errors that help."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonchaos.errors import ScenarioError, UsageError
from tritonchaos.overriding import Overrides, override
from tritonchaos.plugins import load_plugins
from tritonchaos.scenario import Scenario
from tritonchaos.scenario.parsing import parse_document
from tritonchaos.scenario.yaml_source import read_yaml
from tritonchaos.scenario.yaml_text import yaml_text

SCENARIO = """\
# Does it hold?
scenario: one
seed: 1
target:
  - docker: {image: "a:1", gpus: [0]}
  - local: {}
models:
  ident: {template: identity, parameters: {dims: [4]}}   # a comment
phases:
  - phase: good
    arm: control
    cycles: 3
    each: [{load: ident}, {unload: ident}]
  - phase: bad
    cycles: {at_least: 3, at_most: 9, until: verdict}
    before: [{edit_config: {model: ident, set: {"output[0].data_type": TYPE_INT32}}}]
    each: [{load: ident}, {unload: ident}]
check: [memory_growth, hang]
"""


@pytest.fixture(autouse=True, scope="module")
def _plugins() -> None:
    load_plugins()


def changed(*settings: str, **options: object) -> dict:
    return override(read_yaml(SCENARIO, "s.yaml"), Overrides(settings=settings, **options)).value


def scenario(*settings: str, **options: object) -> Scenario:
    return parse_document(override(read_yaml(SCENARIO, "s.yaml"), Overrides(settings=settings, **options)))


def test_without_overrides_the_text_stays_as_it_is() -> None:
    document = read_yaml(SCENARIO, "s.yaml")
    assert override(document, Overrides()).text == SCENARIO


@pytest.mark.parametrize(
    ("setting", "where", "value"),
    [
        ("seed=7", ("seed",), 7),
        ("phases.bad.cycles=20", ("phases", 1, "cycles"), 20),
        ("phases[0].cycles=20", ("phases", 0, "cycles"), 20),
        ("phases.0.cycles=20", ("phases", 0, "cycles"), 20),
        ("phases.bad.cycles.at_most=20", ("phases", 1, "cycles", "at_most"), 20),
        ("models.ident.parameters.dims=[16]", ("models", "ident", "parameters", "dims"), [16]),
        ("models.ident.variant=python", ("models", "ident", "variant"), "python"),
        ("server.env.NAME=a=b", ("server", "env", "NAME"), "a=b"),
        ("phases.good.each.load.deadline=3s", ("phases", 0, "each", 0, "load"), None),
        ("check.hang.deadline_s=3", ("check", 1), {"hang": {"deadline_s": 3}}),
        ("check[1].hang={}", ("check", 1), {"hang": {}}),
        ("target.local.server_path=/x", ("target", 1), {"local": {"server_path": "/x"}}),
        ("target[0].gpus=[1]", ("target", 0, "docker", "gpus"), [1]),
        ("target[0].docker.gpus=[1]", ("target", 0, "docker", "gpus"), [1]),
        ("target.docker.gpus=[1]", ("target", 0, "docker", "gpus"), [1]),
        (
            'phases.bad.before.edit_config.set."output[0].data_type"=TYPE_FP16',
            ("phases", 1, "before", 0, "edit_config", "set", "output[0].data_type"),
            "TYPE_FP16",
        ),
        ("sample.count=", ("sample", "count"), None),
    ],
)
def test_a_path_leads_to_its_field(setting: str, where: tuple, value: object) -> None:
    if "each.load" in setting:
        with pytest.raises(UsageError, match=r"found 'ident' at phases\[0\]\.each\[0\]\.load"):
            changed(setting)
        return
    found = changed(setting)
    for part in where:
        found = found[part]
    assert found == value


def test_a_field_of_target_is_set_in_every_target() -> None:
    assert [next(iter(entry.values())).get("gpus") for entry in changed("target.gpus=[1]")["target"]] == [[1], [1]]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("sed=1", "did you mean 'seed'"),
        ("phases.baad.cycles=1", "did you mean 'bad'"),
        ("phases.bad.cycels=1", "did you mean 'cycles'"),
        ("phases.bad.cycles.at_mots=1", "did you mean 'at_most'"),
        ("models.idnt.parameters.dims=[1]", "did you mean 'ident'"),
        ("check.memory_grow.metrics=[]", "did you mean 'memory_growth'"),
        ("phases[7].cycles=1", "found 2 items"),
        ("seed.deeper=1", "found 1 at seed"),
        ("a..b=1", "cannot be read"),
        ("seed", "expected PATH=VALUE"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_with_what_is_near(setting: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        changed(setting)
    assert told in str(raised.value)


def test_a_value_that_is_no_yaml_says_whose_it_is() -> None:
    with pytest.raises(ScenarioError, match="--set seed"):
        changed("seed=[1")


def test_an_unknown_field_of_a_plugin_points_into_the_file() -> None:
    with pytest.raises(ScenarioError, match=r"s\.yaml:\d+:\d+: check\[1\]\.hang"):
        scenario("check.hang.no_such_field=3")


def test_named_options_change_what_they_name() -> None:
    value = changed(seed=5, variant="python", cycles=4)
    assert value["seed"] == 5
    assert value["models"]["ident"]["variant"] == "python"
    assert [phase["cycles"] for phase in value["phases"]] == [3, 4]


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({"server_path": "/t"}, [{"local": {"server_path": "/t"}}]),
        ({"image": "b:2"}, [{"docker": {"image": "b:2", "gpus": [0]}}]),
        ({"image": "b:2", "gpus": "1,2"}, [{"docker": {"image": "b:2", "gpus": [1, 2]}}]),
        ({"url": "http://h:1"}, [{"remote": {"url": "http://h:1"}}]),
        ({"target": "docker"}, [{"docker": {"image": "a:1", "gpus": [0]}}]),
        ({"target": "local"}, [{"local": {}}]),
        ({"target": "docker", "image": "b:2"}, [{"docker": {"image": "b:2", "gpus": [0]}}]),
        ({"pull": "never"}, [{"docker": {"image": "a:1", "gpus": [0], "pull": "never"}}, {"local": {}}]),
    ],
)
def test_a_named_target_is_the_only_one(options: dict, target: list) -> None:
    assert changed(**options)["target"] == target


def test_two_named_targets_are_refused() -> None:
    with pytest.raises(UsageError, match="expected one of them"):
        changed(image="a", url="http://h")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"target": "doker"}, "expected one of docker, local, remote"),
        ({"target": "local", "image": "a"}, "expected --target docker with it"),
        ({"target": "local", "pull": "never"}, "has no target docker"),
    ],
)
def test_a_target_that_does_not_fit_is_refused(options: dict, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        changed(**options)


def test_the_scenario_as_run_says_what_was_changed_and_reads_back_the_same() -> None:
    document = override(read_yaml(SCENARIO, "s.yaml"), Overrides(settings=("phases.bad.cycles=20",), seed=9))
    lines = document.text.splitlines()
    assert lines[0] == "# Does it hold?"
    assert "#   seed = 9" in lines
    assert "#   phases.bad.cycles = 20" in lines
    assert read_yaml(document.text, "again").value == document.value


def test_a_value_with_line_breaks_stays_inside_the_comment() -> None:
    document = override(read_yaml(SCENARIO, "s.yaml"), Overrides(settings=('about="a\\nseed: 3"',)))
    assert read_yaml(document.text, "again").value["seed"] == 1


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co", "Zl", "Zp")), max_size=12)
    | st.sampled_from(["1e3", "010", "1:30", "0x1f", "1_000", "yes", "null", "~", "2026-01-01", "-", ".5", "=", "<<"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_values_are_written_so_that_they_read_back_the_same(value: object) -> None:
    assert read_yaml(yaml_text({"key": value}), "w").value == {"key": value}
