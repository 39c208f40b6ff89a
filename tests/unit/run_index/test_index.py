"""The index of a folder of runs: what it reads, what it need not read again, and what it survives."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import make_facts
from tests.in_process import tritonchaos
from tests.kept_runs import FORMAT_1, copy_of
from tritonchaos.errors import StoreError
from tritonchaos.plugins import load_plugins
from tritonchaos.run_index import INDEX_FILE, IndexedRun, index_runs, trends
from tritonchaos.running import judge_folder
from tritonchaos.store import RunStore

load_plugins()


def make_run(folder: Path, results: dict[str, Any] | None = None, **facts: Any) -> Path:
    """An empty run directory, with the results that a run could have."""
    with RunStore.create(folder, replace(make_facts(), **facts), "scenario: failed-load\n") as store:
        store.finish(interrupted=False)
    if results is not None:
        written = {"verdict": "pass", "exit_code": 0, "interrupted": False, "findings": [], "assessments": []}
        (folder / "results.json").write_text(json.dumps({**written, "phases": [{"cycles": 5}], **results}))
    return folder


def finding(kind: str, counts: bool = True) -> dict[str, Any]:
    return {"kind": kind, "counts": counts, "metric": None, "bytes_per_cycle": None}


def test_a_judged_run_has_its_verdict_findings_and_growth(tmp_path: Path) -> None:
    judge_folder(copy_of(FORMAT_1, tmp_path), ["results_json"])
    [run] = index_runs(tmp_path)
    assert (run.folder, run.scenario, run.version, run.verdict) == ("format-1", "kept-run", "2.51.0", "findings")
    assert run.kinds == "crash,leak,wrong_error"
    assert (run.metric, run.growth, run.cycles) == ("host_private_bytes", "LEAK", 28)
    assert run.bytes_per_cycle == pytest.approx(1024**2, rel=0.1)
    assert run.started_utc == "2026-12-01T01:29:01+00:00"


def test_runs_of_sets_are_found_with_their_cells_and_links_are_passed_over(tmp_path: Path) -> None:
    make_run(tmp_path / "alone", {})
    make_run(tmp_path / "a-set" / "varied.cell-1", {})
    make_run(tmp_path / "a-set" / "broken", None)
    entry = {"scenario": "failed-load", "exit_code": 0, "verdict": "pass", "error": None}
    runs = [{**entry, "folder": "varied.cell-1", "cell": "a=1"}, {**entry, "folder": "broken", "cell": None}]
    document = {"schema": "tritonchaos.set/1", "set_id": "s", "exit_code": 0, "runs": runs}
    (tmp_path / "a-set" / "set.json").write_text(json.dumps(document))
    (tmp_path / "latest").symlink_to("alone")
    (tmp_path / "notes.txt").write_text("no run")
    (tmp_path / "empty").mkdir()
    found = {run.folder: (run.cell, run.verdict) for run in index_runs(tmp_path)}
    assert found == {
        "alone": ("", "pass"),
        "a-set/varied.cell-1": ("a=1", "pass"),
        "a-set/broken": ("", "not judged"),
    }


def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    make_run(tmp_path / "one", {})
    index_runs(tmp_path)
    with sqlite3.connect(tmp_path / INDEX_FILE) as database:
        database.execute("UPDATE runs SET kinds = 'from the index'")
    database.close()
    assert index_runs(tmp_path)[0].kinds == "from the index"
    make_run(tmp_path / "two", {})
    assert [run.kinds for run in index_runs(tmp_path)] == ["from the index", ""]
    assert [run.kinds for run in index_runs(tmp_path, rebuild=True)] == ["", ""]


def test_a_run_that_is_judged_again_or_gone_is_seen(tmp_path: Path) -> None:
    run = make_run(tmp_path / "one", {})
    make_run(tmp_path / "two", {})
    index_runs(tmp_path)
    (run / "results.json").write_text((run / "results.json").read_text().replace('"pass"', '"inconclusive"'))
    shutil.rmtree(tmp_path / "two")
    assert [(run.folder, run.verdict) for run in index_runs(tmp_path)] == [("one", "inconclusive")]


@pytest.mark.parametrize("damage", [b"", b"this is no database" * 100, b"SQLite format 3\x00" + b"\xa5" * 4000])
def test_a_damaged_index_is_made_anew(damage: bytes, tmp_path: Path) -> None:
    make_run(tmp_path / "one", {})
    index_runs(tmp_path)
    (tmp_path / INDEX_FILE).write_bytes(damage)
    assert [run.folder for run in index_runs(tmp_path)] == ["one"]
    with sqlite3.connect(tmp_path / INDEX_FILE) as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    database.close()


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    make_run(tmp_path / "one", {})
    with sqlite3.connect(tmp_path / INDEX_FILE) as database:
        database.execute("CREATE TABLE runs (something)")
        database.execute("PRAGMA user_version = 99")
    database.close()
    assert [run.folder for run in index_runs(tmp_path)] == ["one"]


def test_where_no_index_can_be_written_all_is_read(tmp_path: Path) -> None:
    make_run(tmp_path / "one", {})
    (tmp_path / INDEX_FILE).mkdir()
    assert [run.folder for run in index_runs(tmp_path)] == ["one"]


def test_an_index_that_another_process_holds_is_left_to_it(tmp_path: Path) -> None:
    make_run(tmp_path / "one", {})
    index_runs(tmp_path)
    holder = sqlite3.connect(tmp_path / INDEX_FILE, isolation_level=None, timeout=0)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    try:
        assert [run.folder for run in index_runs(tmp_path, timeout_s=0.1)] == ["one"]
    finally:
        holder.close()
    assert (tmp_path / INDEX_FILE).exists()


def test_runs_that_cannot_be_read_are_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "no-database").mkdir()
    (tmp_path / "no-database" / "run.db").write_text("this is no database at all, whatever its name says")
    make_run(tmp_path / "bad-results", {})
    (tmp_path / "bad-results" / "results.json").write_text("{")
    make_run(tmp_path / "odd-results", {"findings": 3})
    newer = make_run(tmp_path / "newer", {})
    with sqlite3.connect(newer / "run.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'format_version'")
    database.close()
    found = {run.folder: (run.verdict, run.problem) for run in index_runs(tmp_path)}
    assert {verdict for verdict, _ in found.values()} == {"unreadable"}
    assert "not a database that tritonchaos wrote" in found["no-database"][1]
    assert "results.json is damaged" in found["bad-results"][1]
    assert "results.json is damaged" in found["odd-results"][1]
    assert "newer tritonchaos" in found["newer"][1]


def test_a_run_that_goes_on_is_running(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "one", make_facts(), "scenario: s\n") as store:
        store.commit()
        assert [run.verdict for run in index_runs(tmp_path)] == ["running"]
    assert [run.verdict for run in index_runs(tmp_path)] == ["not judged"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no folder"):
        index_runs(tmp_path / "nowhere")


# --- trends --------------------------------------------------------------------------------------


def run(verdict: str = "pass", version: str = "2.51.0", kinds: str = "", **changes: Any) -> IndexedRun:
    fields = {"scenario": "failed-load", "verdict": verdict, "version": version, "kinds": kinds, **changes}
    return IndexedRun("folder", "stamp", **fields)


def test_versions_are_told_in_the_order_in_which_they_were_run() -> None:
    [trend] = trends([run(), run("inconclusive"), run("findings", "2.60.0", "leak"), run(version="2.60.0"), run()])
    assert [(one.version, one.marks) for one in trend.versions] == [("2.51.0", ".?."), ("2.60.0", "F.")]
    assert trend.change == "2.60.0 against 2.51.0: new: leak"


@pytest.mark.parametrize(
    ("runs", "change"),
    [
        ([run()], ""),
        ([run(), run(version="2.60.0")], "2.60.0 against 2.51.0: as before"),
        ([run("findings", kinds="leak,hang"), run(version="2.60.0")], "2.60.0 against 2.51.0: gone: hang, leak"),
        ([run(), run("inconclusive", "2.60.0")], ""),  # it says nothing of the newer one
        ([run(), run("findings", "2.60.0", "leak"), run("inconclusive", "2.61.0")], "2.60.0 against 2.51.0: new: leak"),
        ([run(interrupted=True), run(version="2.60.0")], ""),
    ],
)
def test_the_change_is_that_between_the_last_two_versions_that_were_judged(runs: list[IndexedRun], change: str) -> None:
    assert trends(runs)[0].change == change


def test_cells_are_scenarios_of_their_own() -> None:
    assert [trend.title for trend in trends([run(cell="a=2"), run(cell="a=1"), run()])] == [
        "failed-load",
        "failed-load [a=1]",
        "failed-load [a=2]",
    ]


# --- the command ---------------------------------------------------------------------------------


def test_the_command_lists_runs_and_trends(tmp_path: Path) -> None:
    make_run(tmp_path / "one", {}, started_utc="2026-01-01T00:00:00+00:00")
    results = {"verdict": "findings", "exit_code": 1, "findings": [finding("hang"), finding("crash", counts=False)]}
    target = {"target": "docker", "image": "tritonserver:26.09-py3"}
    make_run(tmp_path / "two", results, started_utc="2026-02-01T00:00:00+00:00", target=target)
    make_run(tmp_path / "three", {}, scenario="other", started_utc="2026-03-01T00:00:00+00:00")
    shown = tritonchaos("history", tmp_path, "--scenario", "failed-load", cwd=tmp_path).stdout
    assert ": 2 runs, 1 scenario\n" in shown
    assert "tritonserver:26.09-py3 against 2.51.0: new: hang\n" in shown
    assert shown.rstrip().endswith("2026-02-01T00:00  failed-load  tritonserver:26.09-py3  findings (hang)  two")
    last = tritonchaos("history", tmp_path, "--last", "1", cwd=tmp_path).stdout
    assert "the last 1\n  2026-03-01T00:00  other" in last
    plain = json.loads(tritonchaos("history", tmp_path, "--json", cwd=tmp_path).stdout)
    assert [one["folder"] for one in plain["runs"]] == ["one", "two", "three"]
    assert plain["trends"][0]["change"] == "tritonserver:26.09-py3 against 2.51.0: new: hang"
    (tmp_path / "none").mkdir()
    assert tritonchaos("history", "none", cwd=tmp_path).stdout == "none: 0 runs, 0 scenarios\n"
    assert tritonchaos("history", "nowhere", cwd=tmp_path).returncode == 2


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    make_run(tmp_path / "one\x1b[2J", {}, scenario="evil\x1b]0;owned\x07\nline", target={"image": "/home/me/x/y\x1b"})
    shown = tritonchaos("history", tmp_path, cwd=tmp_path).stdout
    assert "\x1b" not in shown
    assert "/home/me" not in shown
    assert "evil" in shown
