"""What a run leaves on disk: complete, portable, judged again with the same answer; nothing else is left."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.server.cli import run_scenario, tritonchaos

pytestmark = pytest.mark.server

LONG_RUN = """\
scenario: long-run
seed: 1
target: [{local: {}}]
models:
  ident: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}
  other: {template: identity, variant: python, parameters: {datatype: FP32, dims: [4]}}
phases:
  - phase: with_a_stub
    steps: [{load: other}]
  - phase: many
    cycles: 200
    each: [{load: ident}, {wait: 20ms}, {unload: ident}]
check: [memory_growth, server_alive]
"""


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_judging_a_copied_folder_writes_the_same_results(tmp_path: Path) -> None:
    called = run_scenario("planted-leak", tmp_path)
    before = _sha256(called.folder / "results.json")
    copy = tmp_path / "elsewhere" / "copied-run"
    shutil.copytree(called.folder, copy)
    (copy / "results.json").unlink()
    judged = tritonchaos("judge", copy, cwd=tmp_path)
    assert judged.returncode == called.exit_code, judged.stderr
    assert _sha256(copy / "results.json") == before
    reported = tritonchaos("report", copy, cwd=tmp_path)
    assert reported.returncode == 0
    assert "report.md" in reported.stdout


def test_the_run_directory_holds_what_the_design_names_and_no_scratch(tmp_path: Path) -> None:
    called = run_scenario("failed-reload", tmp_path, "--set", "server.flags.exit-timeout-secs=1")
    names = {path.name for path in called.folder.iterdir()}
    assert names >= {"run.db", "scenario.yaml", "results.json", "server.log", "report.md", "repository"}
    assert "scratch" not in names
    assert str(tmp_path) not in (called.folder / "results.json").read_text()


def _processes_below(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in part for part in process.info["cmdline"] or ()):
            found.append(" ".join(process.info["cmdline"]))
    return found


def _wait_until(condition, deadline_s: float) -> bool:
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _start(tmp_path: Path) -> subprocess.Popen[str]:
    (tmp_path / "long.yaml").write_text(LONG_RUN)
    command = [sys.executable, "-m", "tritonchaos", "run", "long.yaml", "--out", "runs/one"]
    return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _kill_at(tmp_path: Path, after_s: float) -> bool:
    """Kill a run after some time and look at everything it may have left; False if it had ended by itself."""
    process = _start(tmp_path)
    try:
        time.sleep(after_s)
        if process.poll() is not None:
            return False
    finally:
        process.kill()
        process.communicate()
    scratch = tmp_path / "runs" / "one" / "scratch"
    assert _wait_until(lambda: not _processes_below(scratch), 10), _processes_below(scratch)
    if not (tmp_path / "runs" / "one" / "run.db").exists():
        return True  # killed before the run had begun
    remembered = tritonchaos("clean", "--runs", "runs", "--dry-run", cwd=tmp_path).stdout
    prefixes = {word.rsplit("_", 1)[0] for word in remembered.split() if word.startswith("tc_")}
    cleaned = tritonchaos("clean", "--runs", "runs", cwd=tmp_path)
    assert cleaned.returncode == 0, cleaned.stderr
    assert not scratch.exists()
    names = [path.name for path in Path("/dev/shm").iterdir()]
    assert not [name for name in names if any(name.startswith(prefix) for prefix in prefixes)]
    judged = tritonchaos("judge", "runs/one", cwd=tmp_path)
    assert judged.returncode in {1, 3, 130}, f"{judged.returncode}: {judged.stderr}"
    results = json.loads((tmp_path / "runs" / "one" / "results.json").read_text())
    assert results["interrupted"] is True
    for phase in results["phases"]:
        for values in phase["post_unload"].values():
            assert len(values) == phase["cycles"]
    assert tritonchaos("report", "runs/one", cwd=tmp_path).returncode == 0
    return True


@pytest.mark.parametrize("after_s", [0.8, 3.0])
def test_a_killed_run_leaves_nothing_and_can_be_judged(tmp_path: Path, after_s: float) -> None:
    assert _kill_at(tmp_path, after_s)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_run_killed_at_20_random_instants_leaves_nothing(tmp_path: Path) -> None:
    instants = random.Random(20)
    killed = 0
    while killed < 20:
        folder = tmp_path / f"{killed}-{instants.random()}"
        folder.mkdir()
        killed += _kill_at(folder, instants.uniform(0.3, 8.0))


def test_one_interrupt_finishes_the_cycle_judges_and_reports(tmp_path: Path) -> None:
    process = _start(tmp_path)
    database = tmp_path / "runs" / "one" / "run.db"
    assert _wait_until(database.exists, 30)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=90)
    assert process.returncode == 130, stderr
    results = json.loads((tmp_path / "runs" / "one" / "results.json").read_text())
    assert results["interrupted"] is True
    assert not _processes_below(tmp_path / "runs" / "one" / "scratch")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_end_signal_stops_everything_at_once(tmp_path: Path, number: signal.Signals) -> None:
    process = _start(tmp_path)
    assert _wait_until((tmp_path / "runs" / "one" / "run.db").exists, 30)
    time.sleep(2)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=90)
    assert process.returncode == 130, stderr
    assert "`tritonchaos judge runs/one` judges what was recorded" in stderr
    assert not _processes_below(tmp_path / "runs" / "one" / "scratch")
    assert not (tmp_path / "runs" / "one" / "scratch").exists()
