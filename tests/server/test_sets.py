"""Several scenarios as one set: one exit code, one table, one set.json; time limits, fail-fast, cells, overrides."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tritonchaos
from tests.in_process import Called
from tests.in_process import tritonchaos as call
from tritonchaos.errors import ScenarioError, UsageError
from tritonchaos.observations import CycleFinished

pytestmark = pytest.mark.server

PASSING = """\
# Does nothing much.
scenario: passing
seed: 1
target: [{local: {}}]
models:
  ident: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}
phases:
  - phase: many
    cycles: 2
    each: [{load: ident}, {wait: 20ms}, {unload: ident}]
check: [server_alive]
"""
FAILING = PASSING.replace("passing", "failing").replace(
    "{load: ident}", "{load: {model: ident, expect: {error: refused}}}"
)
FAILING = FAILING.replace("[server_alive]", "[expectations]")
UNDECIDED = PASSING.replace("passing", "undecided").replace("[server_alive]", "[memory_growth]")
VARIED = FAILING.replace("failing", "varied").replace("seed: 1", "seed: 1\nvary: {sample.count: [3, 2]}")
LONG = PASSING.replace("passing", "long").replace("cycles: 2", "cycles: 3000")


def run_set(folder: Path, scenarios: dict[str, str], *options: str) -> tuple[Called, Any]:
    (folder / "set").mkdir()
    for name, text in scenarios.items():
        (folder / "set" / name).write_text(text)
    done = call("run", "set", "--out", "out", *options, cwd=folder)
    assert "Traceback" not in done.stderr, done.stderr
    file = folder / "out" / "set.json"
    return done, json.loads(file.read_text()) if file.exists() else None


def test_a_folder_is_run_as_a_set_with_the_worst_exit_code(tmp_path: Path) -> None:
    scenarios = {
        "a.yaml": PASSING,
        "b.yaml": FAILING,
        "c.yml": UNDECIDED,
        "d.yaml": "scenario: broken",
        "e.yaml": VARIED,
        "notes.txt": "no scenario",
    }
    done, document = run_set(tmp_path, scenarios)
    assert done.returncode == document["exit_code"] == 1, done.stderr
    assert document["schema"] == "tritonchaos.set/1"
    found = [(run["scenario"], run["cell"], run["exit_code"]) for run in document["runs"]]
    assert found == [
        ("passing", None, 0),
        ("failing", None, 1),
        ("undecided", None, 3),
        ("d", None, 2),
        ("varied", "sample.count=3", 1),
        ("varied", "sample.count=2", 1),
    ]
    for run in document["runs"]:
        assert (run["folder"] is None) == (run["exit_code"] == 2)
        if run["folder"]:
            results = json.loads((tmp_path / "out" / run["folder"] / "results.json").read_text())
            assert results["verdict"] == run["verdict"]
            assert results["run_id"] == f"out-{run['folder']}"
            assert results["assessments"] == run["assessments"]
    assert str(tmp_path) not in (tmp_path / "out" / "set.json").read_text()
    assert "6 runs: 1 pass, 3 findings, 1 inconclusive, 1 usage; exit code 1" in done.stdout
    assert "cells of varied" in done.stdout
    assert "[1] sample.count=3 (control)" in done.stdout


def test_fail_fast_begins_nothing_after_a_failure(tmp_path: Path) -> None:
    done, document = run_set(tmp_path, {"a.yaml": FAILING, "b.yaml": PASSING}, "--fail-fast", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == document
    assert [run["exit_code"] for run in document["runs"]] == [1, None]
    assert document["runs"][1]["error"] == "not run: failing failed before"


def test_no_target_for_one_scenario_does_not_keep_the_others_from_being_run(tmp_path: Path) -> None:
    elsewhere = PASSING.replace("local: {}", "local: {server_path: /no/such/server}").replace("passing", "elsewhere")
    done, document = run_set(tmp_path, {"a.yaml": elsewhere, "b.yaml": PASSING})
    assert done.returncode == 4
    assert [run["exit_code"] for run in document["runs"]] == [4, 0]
    assert "/no/such/server" not in json.dumps(document)


def test_a_folder_without_scenarios_is_wrong_usage(tmp_path: Path) -> None:
    done, _ = run_set(tmp_path, {"notes.txt": ""})
    assert done.returncode == 2
    assert "found no scenario file in the folder set" in done.stderr


def test_a_run_whose_time_is_over_is_judged_and_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(LONG)
    done = call("run", "s.yaml", "--out", "out", "--max-time", "2s", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["interrupted"] is False
    assert results["verdict"] == "inconclusive"
    assert 0 < results["phases"][0]["cycles"] < 3000
    assert [a["reason"] for a in results["assessments"] if a["checker"] == "max_time"]
    assert call("judge", "out", cwd=tmp_path).returncode == 3


def test_the_scenario_as_run_holds_what_was_overridden(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(PASSING)
    options = ("--set", "phases.many.cycles=3", "--set", "models.ident.parameters.dims=[16]", "--seed", "5")
    assert call("run", "s.yaml", "--out", "out", *options, cwd=tmp_path).returncode == 0
    text = (tmp_path / "out" / "scenario.yaml").read_text()
    assert text.startswith("# Does nothing much.\n# As run")
    assert "#   phases.many.cycles = 3\n" in text
    again = call("run", "out/scenario.yaml", "--out", "again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    results = json.loads((tmp_path / "again" / "results.json").read_text())
    assert (results["seed"], results["phases"][0]["cycles"]) == (5, 3)


def test_without_overrides_the_scenario_is_kept_word_for_word(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(PASSING)
    assert call("run", "s.yaml", "--out", "out", cwd=tmp_path).returncode == 0
    assert (tmp_path / "out" / "scenario.yaml").read_text() == PASSING


def test_an_interrupt_ends_the_run_in_progress_and_begins_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(LONG)
    (tmp_path / "b.yaml").write_text(PASSING)
    process = subprocess.Popen(
        [sys.executable, "-m", "tritonchaos", "run", "a.yaml", "b.yaml", "--out", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = iter(process.stderr.readline, "")
    assert any("cycle" in line for line in lines)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "finishing the cycle" in stderr
    document = json.loads((tmp_path / "out" / "set.json").read_text())
    assert document["interrupted"] is True
    assert [run["exit_code"] for run in document["runs"]] == [130, None]
    assert "1 interrupted, 1 not run; exit code 130" in stdout


# --- from Python ---------------------------------------------------------------------------------


def test_python_runs_the_same_as_the_command_line(tmp_path: Path) -> None:
    cycles = []

    def see(event: object) -> None:
        if isinstance(event, CycleFinished):
            cycles.append(event.cycle)

    run = tritonchaos.run(PASSING, set={"phases.many.cycles": 3}, out=tmp_path / "run", observers=[see])
    assert run.finished.exit_code == 0
    assert run.finished.results["scenario"] == "passing"
    assert cycles == [0, 1, 2]
    assert (run.folder / "results.json").exists()


def test_python_takes_plain_values_and_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="unknown key 'no_such_key'"):
        tritonchaos.run({"scenario": "a", "no_such_key": 1}, out=tmp_path / "run")
    with pytest.raises(UsageError, match="more than one run"):
        tritonchaos.run(VARIED, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_python_says_what_is_no_time_as_the_command_line_does(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--max-time: found 'soon', expected a time"):
        tritonchaos.run(PASSING, max_time="soon", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
