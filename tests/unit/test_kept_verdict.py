"""A verdict is taken from the file beside a run only where judging again would give the same."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks.long_run import make
from tests.kept_runs import RUNS
from tritonchaos.errors import StoreError
from tritonchaos.kept_verdict import FILE, judge_again, judge_again_unless_kept, judge_unless_kept
from tritonchaos.plugins import load_plugins
from tritonchaos.reporters.results_json import dump
from tritonchaos.store import from_plain, to_plain
from tritonchaos.verdict import Verdict

load_plugins()


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "judged"
    make(folder, 60)
    judge_again(folder)
    return folder


@pytest.fixture
def run(judged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged, tmp_path / "run"))


@pytest.fixture
def said() -> Iterator[list[str]]:
    yield []


def test_a_kept_verdict_gives_the_same_results_to_the_byte(tmp_path: Path, said: list[str]) -> None:
    for number, kept in enumerate(path for path in sorted(RUNS.iterdir()) if path.is_dir()):
        folder = Path(shutil.copytree(kept, tmp_path / str(number)))
        fresh = judge_again(folder)
        stored = judge_again_unless_kept(folder, said.append)
        assert fresh.verdict.findings
        assert stored.verdict == fresh.verdict
        assert dump(stored.results) == dump(fresh.results)
        assert (stored.headline, stored.blocks, stored.counts) == (fresh.headline, fresh.blocks, fresh.counts)
    assert not said


def test_it_is_taken_without_judging(run: Path, said: list[str]) -> None:
    document = json.loads((run / FILE).read_text())
    assert from_plain(Verdict, document["verdict"]) == judge_unless_kept(run, said.append).verdict
    assert to_plain(from_plain(Verdict, document["verdict"])) == document["verdict"]
    assert not said


def change_database(run: Path) -> None:
    with sqlite3.connect(run / "run.db") as database:
        database.execute("UPDATE meta SET value = replace(value, '2.51.0', '2.52.0') WHERE key = 'facts'")
    database.close()


def add_log(run: Path) -> None:
    (run / "server.log").write_text("Signal (11) received.\n")


def change_scenario(run: Path) -> None:
    (run / "scenario.yaml").write_text("scenario: other\n")


def leave_journal(run: Path) -> None:
    (run / "run.db-wal").write_bytes(b"")


@pytest.mark.parametrize("change", [change_database, add_log, change_scenario, leave_journal])
def test_a_run_that_has_changed_since_is_judged_again(run: Path, said: list[str], change) -> None:
    change(run)
    finished = judge_again_unless_kept(run, said.append)
    assert said == [f"judging {run} again: the run has changed since it was judged"]
    assert ("crash" in {f.kind for f in finished.verdict.findings}) is (change is add_log)


def edited(run: Path, path: list[str], value: object) -> None:
    document = json.loads((run / FILE).read_text())
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (run / FILE).write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (["basis", "version"], "0.0.9", "it was judged by tritonchaos 0.0.9"),
        (["basis", "code"], "00", "it was judged by other code"),
        (["verdict", "status"], "fail", f"{FILE} is damaged"),
        (["verdict"], None, f"{FILE} is damaged"),
        (["basis"], "no", f"{FILE} is damaged"),
    ],
)
def test_another_basis_or_a_damaged_file_is_told_and_judged_again(
    run: Path, said: list[str], path: list[str], value: object, why: str
) -> None:
    edited(run, path, value)
    finished = judge_again_unless_kept(run, said.append)
    assert said == [f"judging {run} again: {why}"]
    assert finished.verdict.status.value == "unknown"
    judge_again_unless_kept(run, said.append)  # it was kept anew
    assert len(said) == 1


def test_a_file_that_is_no_json_is_told(run: Path, said: list[str]) -> None:
    (run / FILE).write_bytes(b"\xff")
    judge_unless_kept(run, said.append)
    assert said == [f"judging {run} again: {FILE} is damaged"]
    assert (run / FILE).read_bytes() == b"\xff"


def test_the_verdict_of_an_interrupted_run_is_not_kept(run: Path) -> None:
    with sqlite3.connect(run / "run.db") as database:
        database.execute("DELETE FROM meta WHERE key = 'end'")
    database.close()
    assert judge_again(run).history.interrupted
    assert not (run / FILE).exists()


def test_a_damaged_run_is_never_judged_by_what_was_kept(run: Path) -> None:
    (run / "run.db").write_bytes((run / "run.db").read_bytes()[:5000])
    with pytest.raises(StoreError):
        judge_again_unless_kept(run)


def test_a_folder_that_cannot_be_written_is_judged_all_the_same(run: Path) -> None:
    (run / FILE).unlink()
    (run / f".{FILE}").mkdir()
    assert judge_again(run).verdict.assessments
    assert not (run / FILE).exists()
