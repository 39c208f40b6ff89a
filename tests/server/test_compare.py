"""Comparing real runs: clean against clean is never worse, clean against planted is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.in_process import tritonchaos as call
from tests.server.test_sets import PASSING

pytestmark = pytest.mark.server

CLEAN = ("--set", "models.ident.parameters.retain_host_bytes_per_failed_load=0")


def run(folder: Path, name: str, *options: str) -> None:
    done = call("run", "planted-leak", "--out", name, "--report", "results_json", *options, cwd=folder)
    assert done.returncode in (0, 1), done.stderr


def compare(folder: Path, *arguments: str) -> tuple[int, str]:
    done = call("compare", *arguments, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def test_clean_and_planted_runs(tmp_path: Path) -> None:
    for name in ("clean/a", "clean/b"):
        run(tmp_path, name, *CLEAN)
    run(tmp_path, "planted")
    for base, candidate in (("clean/a", "clean/b"), ("clean/b", "clean/a")):
        exit_code, shown = compare(tmp_path, base, candidate)
        assert exit_code == 0, shown
    exit_code, shown = compare(tmp_path, "clean/a", "planted")
    assert exit_code == 2, shown
    assert "retain_host_bytes_per_failed_load" in shown
    unlike = "--different-scenarios"
    exit_code, shown = compare(tmp_path, "clean", "planted", unlike, "--json")
    assert exit_code == 1, shown
    rows = json.loads(shown)["rows"]
    assert [(row["kind"], row["outcome"]) for row in rows[:2]] == [("finding", "new"), ("growth", "worse")]
    exit_code, shown = compare(tmp_path, "planted", "clean/b", unlike)
    assert (exit_code, shown.startswith("BETTER")) == (0, True), shown
    assert "fixed" in shown


def test_sets_are_compared_scenario_by_scenario(tmp_path: Path) -> None:
    (tmp_path / "passing.yaml").write_text(PASSING)
    varied = PASSING.replace("passing", "varied").replace("seed: 1", "seed: 1\nvary: {sample.count: [3, 2]}")
    (tmp_path / "varied.yaml").write_text(varied)
    for out in ("base", "candidate"):
        done = call("run", "passing.yaml", "varied.yaml", "--out", out, "--report", "results_json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    exit_code, shown = compare(tmp_path, "base", "candidate", "--json")
    assert exit_code == 0, shown
    titles = {row["scenario"] for row in json.loads(shown)["rows"]}
    assert titles == {"passing", "varied [sample.count=3]", "varied [sample.count=2]"}
    # One run against the set: what the candidate does not have cannot be told.
    exit_code, shown = compare(tmp_path, "base", "candidate/passing")
    assert exit_code == 3, shown


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_pairs_of_clean_runs_are_never_worse(tmp_path: Path) -> None:
    for number in range(40):
        run(tmp_path, f"{number}", *CLEAN)
    seen = [compare(tmp_path, f"{number}", f"{number + 1}") for number in range(0, 40, 2)]
    assert [shown for exit_code, shown in seen if exit_code == 1] == []
    assert sum(exit_code == 0 for exit_code, _ in seen) >= 18, seen
