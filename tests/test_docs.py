"""Docs that cannot rot: everything has help and is described, scenarios expand, the README's commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tritonchaos.cli.app import app
from tritonchaos.plugins import CHECKERS, REPORTERS, SAMPLERS, STEPS, TARGETS, load_plugins
from tritonchaos.scenario import load_scenario
from tritonchaos.schedule import describe, expand

ROOT = Path(__file__).parents[1]
REGISTRIES = (TARGETS, STEPS, SAMPLERS, CHECKERS, REPORTERS)
load_plugins()
PLUGINS = [(registry, name) for registry in REGISTRIES for name in registry.names()]
COMMANDS = [command.name for command in app.registered_commands if command.name]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))


@pytest.mark.parametrize(("registry", "name"), PLUGINS, ids=[f"{r.family}-{n}" for r, n in PLUGINS])
def test_every_plugin_has_a_line_of_help(registry, name: str) -> None:
    line = registry.help(name)
    assert line.endswith(".") or len(line) > 20
    assert "str(object" not in line


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert len(shown.output) > 100


@pytest.mark.parametrize("name", [*STEPS.names(), *CHECKERS.names()])
def test_every_step_and_check_is_in_the_scenario_reference(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "scenario-file.md").read_text()


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_every_scenario_expands_and_is_in_the_readme(file: Path) -> None:
    schedule = expand(load_scenario(file))
    assert len(list(describe(schedule))) > 2
    assert f"`{file.stem}`" in (ROOT / "README.md").read_text()


def test_the_scenario_of_the_readme_is_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks):
        file = tmp_path / f"{number}.yaml"
        file.write_text(block)
        assert list(describe(expand(load_scenario(file))))


def test_every_command_in_the_readme_exists() -> None:
    used = set(re.findall(r"^tritonchaos (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert used
    assert used <= set(COMMANDS)


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text()
    assert [command for command in COMMANDS if f"tritonchaos {command}" not in text] == []
