"""An old run judged by other checks than its own: another answer, and the run directory stays as it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.in_process import tritonchaos
from tests.kept_runs import FORMAT_1, copy_of


def digests(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def test_other_checks_give_another_answer_and_leave_the_run_alone(tmp_path: Path) -> None:
    run = copy_of(FORMAT_1, tmp_path)
    before = digests(run)
    assert tritonchaos("judge", run, "--checks", "hang,index_consistent", cwd=tmp_path).returncode == 0
    strict = tritonchaos("judge", run, "--checks", "[{returns_to_baseline: 1MiB}]", "--json", cwd=tmp_path)
    assert strict.returncode == 1, strict.stderr
    results = json.loads(strict.stdout)
    assert [finding["kind"] for finding in results["findings"]] == ["retention"]
    assert results["notes"][-1].startswith("judged by other checks than the run's own: returns_to_baseline in place of")
    # This run recorded no latency of a judged treatment cycle: that is no pass.
    assert tritonchaos("judge", run, "--checks", "latency", cwd=tmp_path).returncode != 0
    assert digests(run) == before


def test_reports_of_other_checks_go_into_a_folder_of_their_own(tmp_path: Path) -> None:
    run = copy_of(FORMAT_1, tmp_path)
    done = tritonchaos("judge", run, "--checks", "hang", "--out", "other", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "other" / "results.json").read_text())["verdict"] == "pass"
    again = tritonchaos("judge", run, "--checks", "hang", "--out", "other", cwd=tmp_path)
    assert again.returncode == 2
    assert "other is not empty" in again.stderr
    assert not (run / "results.json").exists()


def test_wrong_use_is_told(tmp_path: Path) -> None:
    run = copy_of(FORMAT_1, tmp_path)
    for arguments, message in (
        (("--checks", "hng"), "found the unknown checker 'hng'"),
        (("--out", "other"), "--out is for --checks"),
        (("--checks", "[{returns_to_baseline: {limt: 1}}]"), "did you mean 'limit'"),
    ):
        done = tritonchaos("judge", run, *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
