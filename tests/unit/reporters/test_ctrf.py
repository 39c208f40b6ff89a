"""ctrf.json: what becomes of each case; `long`: read by CTRF's own validator (npm package ctrf)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import leaking_run
from tests.kept_runs import FORMAT_1, copy_of
from tests.unit.reporters.test_junit import BESIDE, PASSED, UNKNOWN, run_with
from tritonchaos.judging import judge_history
from tritonchaos.plugins import load_plugins
from tritonchaos.reporters.ctrf import Ctrf
from tritonchaos.store import open_history
from tritonchaos.summary import FinishedEntry, FinishedRun, FinishedSet

load_plugins()


def written(run: FinishedRun, folder: Path) -> Any:
    assert Ctrf().render(run, folder) == [folder / "ctrf.json"]
    return json.loads((folder / "ctrf.json").read_text(encoding="utf-8"))


def test_each_check_is_a_test_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("a report")
    report = written(leaking_run(), tmp_path)
    assert report["reportFormat"] == "CTRF"
    tests = report["results"]["tests"]
    assert [(test["name"], test["status"]) for test in tests] == [
        ("run", "passed"),
        ("memory_growth [host_private_bytes]", "failed"),
        ("memory_growth [host_pss_bytes]", "skipped"),
    ]
    assert tests[1]["message"] == "leak: host_private_bytes grows with each failed load"
    assert "cycle 5: 107 MiB" in tests[1]["trace"]
    assert tests[1]["attachments"] == [{"name": "report.md", "contentType": "text/markdown", "path": "report.md"}]
    assert tests[0]["extra"]["run_id"] == "run-1"
    summary = report["results"]["summary"]
    assert (summary["tests"], summary["passed"], summary["failed"], summary["skipped"]) == (3, 1, 1, 1)
    assert summary["start"] == 1767225600000  # 2026-01-01T00:00:00Z


def test_what_cannot_be_told_is_other_and_never_a_pass(tmp_path: Path) -> None:
    report = written(run_with(PASSED, UNKNOWN, BESIDE), tmp_path)
    assert [test["status"] for test in report["results"]["tests"]] == ["passed", "passed", "other", "skipped"]
    assert report["results"]["tests"][2]["rawStatus"] == "unknown"
    assert report["results"]["summary"]["other"] == 1


def test_a_set_is_one_file(tmp_path: Path) -> None:
    entries = (
        FinishedEntry("leaking", "", "leaking", leaking_run(), 1),
        FinishedEntry("broken", "a=1", "", None, 2, "found nothing"),
    )
    Ctrf().render_set(FinishedSet("set-1", entries, 1), tmp_path)
    report = json.loads((tmp_path / "ctrf.json").read_text())
    assert [test["suite"] for test in report["results"]["tests"]] == [["leaking"]] * 3 + [["broken [a=1]"]]
    assert report["results"]["tests"][-1]["status"] == "other"
    assert report["results"]["summary"]["suites"] == 2


@pytest.mark.long
def test_the_validator_of_the_format_accepts_a_real_run(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm")
    subprocess.run([npm, "install", "--silent", "ctrf"], cwd=tmp_path, check=True, timeout=240)
    folder = copy_of(FORMAT_1, tmp_path)
    written(judge_history(open_history(folder)), folder)
    program = "import {validateStrict} from 'ctrf'; import fs from 'fs'; " + (
        "validateStrict(JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))); console.log('valid')"
    )
    (tmp_path / "check.mjs").write_text(program)
    command = ["node", "check.mjs", str(folder / "ctrf.json")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "valid\n", done.stderr
