"""The command line itself: light, documented, completable, and its exit code is no accident of its output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer.core
import typer.main

import tritonchaos
from tritonchaos.cli.app import app

COMMANDS = [command.name for command in app.registered_commands]
HEAVY = ("numpy", "tritonclient", "pynvml", "pydantic", "yaml", "google.protobuf", "sqlite3")


def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tritonchaos", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
    )


def test_the_command_line_imports_nothing_heavy() -> None:
    code = "import sys, tritonchaos.cli.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout.split()
    assert [name for name in HEAVY if name in loaded] == []
    assert not [name for name in loaded if name.startswith("tritonchaos.running")]


def test_importing_the_package_is_light_and_run_is_there_when_asked_for() -> None:
    code = "import sys, tritonchaos; print(*[m for m in sys.modules if m.startswith('tritonchaos')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout.split()
    assert loaded == ["tritonchaos"]
    assert callable(tritonchaos.run)
    assert {"run", "run_set"} <= set(dir(tritonchaos))
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = tritonchaos.no_such_thing


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    called = call(command, "--help")
    assert called.returncode == 0
    assert "Usage" in called.stdout


def test_versions_that_matter_are_printed_ours_first() -> None:
    lines = call("--version").stdout.splitlines()
    assert lines[0] == f"tritonchaos {tritonchaos.__version__}"
    names = [line.rpartition(" ")[0].split()[0] for line in lines]
    assert {"python", "tritonclient", "numpy", "pydantic", "NVIDIA", "tritonserver"} <= set(names)


def test_a_wrong_option_is_wrong_usage() -> None:
    assert call("run", "--no-such-option", "good-load").returncode == 2
    assert call("no-such-command").returncode == 2
    assert call("run").returncode == 2


def test_completion_is_offered_for_commands_and_scenarios(tmp_path: Path) -> None:
    from tritonchaos.cli.run import _complete_scenario

    (tmp_path / "mine.yaml").write_text("")
    assert "failed-load" in _complete_scenario("failed")
    assert _complete_scenario(f"{tmp_path}/m") == [f"{tmp_path}/mine.yaml"]
    shown = subprocess.run(
        [Path(sys.executable).parent / "tritonchaos"],
        capture_output=True,
        text=True,
        env={**os.environ, "_TRITONCHAOS_COMPLETE": "complete_bash", "COMP_WORDS": "tritonchaos ju", "COMP_CWORD": "1"},
        timeout=60,
    )
    assert "judge" in shown.stdout


# --- standard output that goes away --------------------------------------------------------------


def shell(command: str) -> list[int]:
    """Run a pipeline; return the exit code of each part."""
    script = f'{command}; echo "${{PIPESTATUS[@]}}" >&2'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    return [int(code) for code in done.stderr.split()[-2:]]


@pytest.mark.parametrize("command", ["list", "schema", "--help", "doctor"])
def test_a_reader_that_goes_does_not_look_like_findings(command: str) -> None:
    assert shell(f"{sys.executable} -m tritonchaos {command} | true")[0] == 0


def test_a_full_disk_behind_standard_output_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tritonchaos", "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 0
    assert done.stderr == "tritonchaos: cannot write standard output: No space left on device\n"


def test_closed_standard_streams_do_no_harm() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m tritonchaos list >&- 2>&- <&-"], capture_output=True, timeout=60
    )
    assert done.returncode == 0


# --- documentation -------------------------------------------------------------------------------


def test_every_command_and_option_is_in_the_reference() -> None:
    text = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text()
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    for name, sub in command.commands.items():
        assert f"`{name}`" in text
        for option in sub.params:
            longest = max(option.opts, key=len)
            assert not longest.startswith("--") or longest in text, f"{longest} of {name}"
