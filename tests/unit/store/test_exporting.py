"""Tables of a run, read back by other readers: csv, json, pyarrow."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builders import make_facts
from tests.in_process import tritonchaos
from tests.kept_runs import FORMAT_1
from tritonchaos.judging import judge_history
from tritonchaos.plugins import load_plugins
from tritonchaos.store import RunStore, export, open_history

load_plugins()
NAMES = ["series", "samples", "readings", "steps", "events"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    folder = tmp_path_factory.mktemp("out") / "csv"
    written = export(open_history(FORMAT_1), "csv", folder)
    assert [path.name for path in written] == [f"{name}.csv" for name in NAMES]
    return {path.stem: list(csv.DictReader(path.open(encoding="utf-8"))) for path in written}


def test_the_series_are_those_of_the_results(tables: dict[str, list[dict[str, str]]]) -> None:
    results = judge_history(open_history(FORMAT_1)).results
    for phase in results["phases"]:
        for metric, values in phase["post_unload"].items():
            found = [
                int(row["value"])
                for row in tables["series"]
                if (row["phase"], row["arm"], row["metric"]) == (phase["phase"], phase["arm"], metric)
                and row["is_warm_up"] == "False"
            ]
            assert found == [value for value in values if value is not None]


def test_steps_have_what_was_answered_and_whether_that_was_expected(tables: dict[str, list[dict[str, str]]]) -> None:
    steps = [row for row in tables["steps"] if row["phase"] == "refused_otherwise" and row["step"] == "load"]
    assert [(row["cycle"], row["status"], row["track"]) for row in steps] == [
        ("0", "500", "main"),
        ("1", "500", "main"),
    ]
    assert steps[0]["error"].startswith("failed to load 'ident'")
    assert "expected 'this text is not what Triton says'" in steps[0]["not_as_expected"]
    crashed = [row for row in tables["steps"] if row["no_answer"]]
    assert [(row["phase"], row["no_answer"], row["status"]) for row in crashed] == [("crashes", "closed", "")]


def test_events_and_samples_are_complete(tables: dict[str, list[dict[str, str]]]) -> None:
    history = open_history(FORMAT_1)
    assert [row["event"] for row in tables["events"]] == [type(event).__name__ for event in history.events]
    assert all(isinstance(json.loads(row["fields"]), dict) for row in tables["events"])
    assert len(tables["samples"]) == sum(len(history.samples[metric]) for metric in history.samples)


@pytest.mark.parametrize("to", ["jsonl", "parquet"])
def test_every_format_holds_the_same(to: str, tables: dict[str, list[dict[str, str]]], tmp_path: Path) -> None:
    if to == "parquet":
        pytest.importorskip("pyarrow", reason="comes with the extra `parquet`", exc_type=ImportError)
    for path in export(open_history(FORMAT_1), to, tmp_path / "out"):
        rows = read(path)
        shown = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in rows]
        assert shown == tables[path.stem]


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    import pyarrow.parquet

    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


def test_the_command_says_where_the_tables_are_and_writes_over_nothing(tmp_path: Path) -> None:
    done = tritonchaos("export", FORMAT_1, "--to", "jsonl", cwd=tmp_path)
    assert done.stdout.splitlines() == [f"format-1-jsonl/{name}.jsonl" for name in NAMES]
    again = tritonchaos("export", FORMAT_1, "--to", "jsonl", cwd=tmp_path)
    assert again.returncode == 2
    assert "format-1-jsonl is not empty" in again.stderr
    unknown = tritonchaos("export", FORMAT_1, "--to", "xls", cwd=tmp_path)
    assert (unknown.returncode, "expected csv, jsonl, parquet" in unknown.stderr) == (2, True)
    assert tritonchaos("export", tmp_path, cwd=tmp_path).returncode == 2


def test_a_missing_library_is_told_before_anything_is_written(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None; sys.argv[1:] = "
        f"['export', {str(FORMAT_1)!r}, '--to', 'parquet', '--out', {str(tmp_path / 'out')!r}]; "
        "from tritonchaos.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "writing Parquet needs pyarrow" in done.stderr
    assert "pip install 'tritonchaos[parquet]'" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_run_without_a_cycle_gives_tables_without_rows(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "run", make_facts(), "scenario: s\n") as store:
        store.finish(interrupted=False)
    for path in export(open_history(tmp_path / "run"), "csv", tmp_path / "out"):
        assert len(path.read_text().splitlines()) == 1


def test_only_the_tables_that_are_wanted_are_written(tmp_path: Path) -> None:
    done = tritonchaos("export", FORMAT_1, "--tables", "steps, series", "-o", tmp_path / "out", cwd=tmp_path)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["series.csv", "steps.csv"]
    assert done.stdout.splitlines() == [str(tmp_path / "out" / f"{name}.csv") for name in ("series", "steps")]
    unknown = tritonchaos("export", FORMAT_1, "--tables", "serie", "-o", tmp_path / "other", cwd=tmp_path)
    assert (unknown.returncode, "unknown table 'serie'" in unknown.stderr) == (2, True)
    assert not (tmp_path / "other").exists()
