"""Reports chosen by name: of a run, of a set, written again; wrong names are told before anything starts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from junitparser import JUnitXml

from tests.in_process import tritonchaos as call
from tests.server.test_sets import FAILING, PASSING

pytestmark = pytest.mark.server

OUTSIDE = {
    "schema": "tritonchaos.set/1",
    "set_id": "s",
    "exit_code": 0,
    "runs": [{"scenario": "a", "cell": None, "folder": "../a", "exit_code": 0, "verdict": "pass", "error": None}],
}


def test_a_set_writes_the_chosen_reports_of_each_run_and_one_of_the_whole(tmp_path: Path) -> None:
    for name, text in {"a": PASSING, "b": FAILING, "c": "scenario: broken"}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    done = call("run", "a.yaml", "b.yaml", "c.yaml", "--out", "out", "--report", "junit", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    out = tmp_path / "out"
    assert {path.name for path in (out / "passing").glob("*.*")} == {
        *("judged.json", "junit.xml", "results.json", "run.db", "scenario.yaml", "server.log")
    }
    suites = {suite.name: suite for suite in JUnitXml.fromfile(str(out / "junit.xml"))}
    assert {name: (suite.failures, suite.errors) for name, suite in suites.items()} == {
        "passing": (0, 0),
        "failing": (1, 0),
        "c": (0, 1),
    }
    before = (out / "junit.xml").read_bytes()
    (out / "junit.xml").unlink()
    copy = tmp_path / "elsewhere"
    shutil.move(out, copy)
    again = call("report", copy, "--report", "junit", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    names = [Path(line).relative_to(copy).as_posix() for line in again.stdout.splitlines()]
    assert names == [
        *(f"{run}/{name}" for run in ("passing", "failing") for name in ("results.json", "junit.xml")),
        "junit.xml",
    ]
    assert (copy / "junit.xml").read_bytes() == before


def test_a_report_that_does_not_exist_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(PASSING)
    done = call("run", "a.yaml", "--out", "out", "--report", "markdown,jnuit", cwd=tmp_path)
    assert done.returncode == 2
    assert "found the unknown report 'jnuit', expected" in done.stderr
    assert "did you mean junit?" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"schema": "tritonchaos.set/9"}', "was written by another tritonchaos"),
        ('{"schema": "tritonchaos.set/1"}', "is damaged"),
        (json.dumps(OUTSIDE), "expected the name of one within the set"),
    ],
)
def test_the_folder_of_a_set_that_is_damaged_is_told_as_such(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "set.json").write_text(text)
    done = call("report", tmp_path, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
