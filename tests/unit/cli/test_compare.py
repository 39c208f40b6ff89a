"""`compare` from the command line: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from junitparser import JUnitXml
from typer.testing import CliRunner

from tests.builders import make_facts
from tests.in_process import tritonchaos
from tests.kept_runs import FORMAT_1, copy_of
from tests.unit.comparing.compared_runs import compared, crash, side, stable
from tritonchaos.cli.compare_table import compare_table
from tritonchaos.comparing.compare import compare_sides
from tritonchaos.comparing.html import page
from tritonchaos.store import RunStore


def call(*arguments: str | Path, cwd: Path) -> tuple[int, str, str]:
    done = tritonchaos("compare", *arguments, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return copy_of(FORMAT_1, tmp_path)


def test_a_run_is_the_same_as_itself_in_table_json_and_files(kept: Path, tmp_path: Path) -> None:
    exit_code, stdout, stderr = call(kept, kept, "--report", "html,junit", "--out", "out", cwd=tmp_path)
    assert exit_code == 0, stderr
    assert stdout.startswith("SAME: format-1 against format-1: ")
    suites = list(JUnitXml.fromfile(str(tmp_path / "out" / "compare-junit.xml")))
    assert [suite.name for suite in suites] == ["kept-run"]
    assert suites[0].failures == suites[0].errors == 0
    assert "<details open><summary>What is the same: " in (tmp_path / "out" / "compare.html").read_text()
    exit_code, stdout, _ = call(kept, kept, "--json", cwd=tmp_path)
    plain = json.loads(stdout)
    assert (exit_code, plain["exit_code"], plain["outcome"]) == (0, 0, "same")
    assert {row["kind"] for row in plain["rows"]} >= {"finding", "check", "growth", "time", "memory"}
    assert str(tmp_path) not in stdout


def test_files_that_are_there_are_never_written_over(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "compare.html").write_text("mine")
    exit_code, stdout, stderr = call(kept, kept, "--report", "html,junit", cwd=tmp_path)
    assert (exit_code, stdout) == (2, "")
    assert "compare.html exists already" in stderr
    assert (tmp_path / "compare.html").read_text() == "mine"
    assert not (tmp_path / "compare-junit.xml").exists()


def test_an_unknown_report_is_told(kept: Path, tmp_path: Path) -> None:
    exit_code, _, stderr = call(kept, kept, "--report", "pdf", cwd=tmp_path)
    assert exit_code == 2
    assert "found the unknown report 'pdf', expected html, junit" in stderr


def test_an_empty_folder_and_a_missing_one_are_told(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "empty holds no run" in call(kept, "empty", cwd=tmp_path)[2]
    assert "there is no folder nowhere" in call("nowhere", kept, cwd=tmp_path)[2]
    (tmp_path / "file").write_text("")
    assert call(kept, "file", cwd=tmp_path)[0] == 2


def test_a_run_that_is_incomplete_damaged_or_newer_is_told(kept: Path, tmp_path: Path) -> None:
    cut = copy_of(kept, tmp_path / "cut")
    (cut / "run.db").write_bytes((kept / "run.db").read_bytes()[:30_000])
    assert "cut short" in call(kept, cut, cwd=tmp_path)[2]
    damaged = copy_of(kept, tmp_path / "damaged")
    whole = bytearray((kept / "run.db").read_bytes())
    whole[20_000:24_000] = b"\xa5" * 4_000
    (damaged / "run.db").write_bytes(bytes(whole))
    exit_code, _, stderr = call(kept, damaged, cwd=tmp_path)
    assert (exit_code, "damaged" in stderr) == (2, True), stderr
    newer = copy_of(kept, tmp_path / "newer")
    with sqlite3.connect(newer / "run.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'format_version'")
    database.close()
    assert "written by a newer tritonchaos; found format 99" in call(kept, newer, cwd=tmp_path)[2]
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.db").write_text("this is no database at all, whatever its name says")
    assert "is not a database that tritonchaos wrote" in call(kept, other, cwd=tmp_path)[2]


def test_runs_without_a_cycle_cannot_be_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        facts = replace(make_facts(), checks=(("memory_growth", {}),))
        with RunStore.create(tmp_path / name, facts, "scenario: failed-load\n") as store:
            store.finish(interrupted=False)
    exit_code, stdout, stderr = call("a", "b", cwd=tmp_path)
    assert exit_code == 3, stderr
    assert stdout.startswith("CANNOT TELL: b against a")
    assert "no cycle was finished" in stdout.replace("\n", " ")


def test_another_scenario_is_refused_with_its_diff(kept: Path, tmp_path: Path) -> None:
    other = copy_of(kept, tmp_path / "other")
    text = (other / "scenario.yaml").read_text()
    (other / "scenario.yaml").write_text(text.replace("cycles: 12", "cycles: 13"))
    exit_code, _, stderr = call(kept, other, cwd=tmp_path)
    assert exit_code == 2
    assert "-  cycles: 12\n+  cycles: 13\n" in stderr
    assert call(kept, other, "--different-scenarios", cwd=tmp_path)[0] == 0


def test_folders_of_runs_are_compared_run_by_scenario(kept: Path, tmp_path: Path) -> None:
    for number in range(3):
        shutil.copytree(kept, tmp_path / "base" / f"run-{number}")
    (tmp_path / "base" / "latest").symlink_to("run-2")
    exit_code, stdout, stderr = call("base", kept, "--json", cwd=tmp_path)
    assert exit_code == 0, stderr
    assert json.loads(stdout)["base"]["runs"] == 3


def test_hostile_texts_stay_texts() -> None:
    hostile = "<script>alert(1)</script> \x1b[31m </pre> & \"'"
    name = "<b>name</b>"
    comparison = compare_sides(
        side(compared(stable()), name=name),
        side(compared(stable(), crash(title=hostile), text="scenario: s\nx: '</pre><script>'\n"), name=name),
        different_scenarios=True,
    )
    shown = page(comparison).decode()
    assert "<script" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "\x1b" not in shown + compare_table(comparison, 100, False)


def test_the_help_says_the_exit_codes() -> None:
    from tritonchaos.cli.app import app

    shown = CliRunner().invoke(app, ["compare", "--help"]).output
    assert "1 if something is worse or new" in " ".join(shown.split())
