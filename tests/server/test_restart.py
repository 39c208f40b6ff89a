"""A server that crashed or hangs is started again, and the run goes on."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.server.cli import run_scenario
from tritonchaos.observations import CycleFinished, CycleStarted, ServerExited, ServerStarted, StepFinished
from tritonchaos.store import open_history

pytestmark = pytest.mark.server

CRASHES = """\
scenario: crashes
seed: 1
target: [{{local: {{}}}}]
server: {{flags: {{disable-auto-complete-config: true}}}}
models:
  ident:
    template: identity
    variant: planted
    parameters: {{datatype: FP32, dims: [4], {fault}_every_nth_load: {every}}}
phases:
  - phase: loads
    cycles: {cycles}
    each:
      - edit_config: {{model: ident, set: {{max_batch_size: 0}}}}
      - {{load: ident}}
      - {{wait: 20ms}}
      - {{unload: ident}}
      - {{restore: ident}}
  - phase: after_exit
    steps: [{{stop_server: {{}}}}, {{sample: {{name: after_exit}}}}]
check: [server_alive, hang, expectations, index_consistent]
"""
HANGS = """\
scenario: hangs
seed: 1
target: [{local: {}}]
server: {flags: {exit-timeout-secs: 1}}
models:
  slow: {template: identity, variant: planted, parameters: {sleep_ms_in_load: 600000}}
  good: {template: identity, variant: planted}
phases:
  - phase: hangs
    cycles: 1
    each: [{load: {model: slow, deadline: 1s}}]
  - phase: good_again
    arm: control
    cycles: 2
    each: [{load: good}, {wait: 20ms}, {unload: good}]
check: [server_alive, hang, expectations]
"""


def test_a_model_that_crashes_the_server_again_and_again_ends_no_run(tmp_path: Path) -> None:
    called = run_scenario(CRASHES.format(fault="abort", every=4, cycles=12), tmp_path)
    assert called.exit_code == 1, called.shown()
    history = open_history(called.folder)
    crashed = [event.position.cycle for event in history.of(ServerExited) if event.position]
    assert crashed == [3, 7, 11]
    # Nothing was left to do after the last one, so there is no start after it.
    assert [event.start_number for event in history.of(ServerStarted)] == [1, 2, 3]
    assert len(list(history.of(CycleStarted))) == 12
    assert {event.cycle for event in history.of(CycleFinished)} == set(range(12)) - set(crashed)
    # What a crash has skipped and what changes files is made up for: the next cycle finds the files as they should be.
    restored = [event.position.cycle for event in history.of(StepFinished) if event.spec.name == "restore"]
    assert restored == [*range(11)]
    [finding] = called.findings("crash")
    assert finding["title"] == "tritonserver died of SIGABRT during load ident"
    assert finding["evidence"][0] == "3 times: loads, cycles 3, 7, 11"
    assert any("abort in" in line for line in finding["evidence"]), called.shown()
    assert "planted: abort on purpose" in (called.folder / "server.log").read_text()
    assert Counter(reading["name"] for reading in called.results["readings"])["after_exit"]


@pytest.mark.long
def test_a_crash_in_every_tenth_of_a_hundred_cycles(tmp_path: Path) -> None:
    called = run_scenario(CRASHES.format(fault="abort", every=10, cycles=100), tmp_path)
    assert called.exit_code == 1, called.shown()
    [finding] = called.findings("crash")
    cycles = ", ".join(str(cycle) for cycle in range(9, 100, 10))
    assert finding["evidence"][0] == f"10 times: loads, cycles {cycles}"
    assert [phase["cycles"] for phase in called.results["phases"]] == [90]


def test_a_server_that_crashes_too_often_is_not_started_again(tmp_path: Path) -> None:
    scenario = CRASHES.format(fault="abort", every=1, cycles=4).replace("{flags", "{restarts_at_most: 2, flags")
    called = run_scenario(scenario, tmp_path)
    assert called.exit_code == 1, called.shown()
    assert called.results["server_starts"] == 3
    assert "the server was started again 2 times, and not once more" in called.results["notes"]
    assert "phase loads ended after 0 cycles: crash" in called.results["notes"]


def test_a_segfault_is_named_as_such(tmp_path: Path) -> None:
    called = run_scenario(CRASHES.format(fault="segfault", every=4, cycles=4), tmp_path)
    assert [f["title"] for f in called.findings("crash")] == ["tritonserver died of SIGSEGV during load ident"]


@pytest.mark.skipif(not (shutil.which("gdb") or shutil.which("eu-stack")), reason="needs gdb or eu-stack")
def test_after_a_hang_the_next_phase_has_a_fresh_server_and_the_threads_are_told(tmp_path: Path) -> None:
    called = run_scenario(HANGS, tmp_path)
    assert called.exit_code == 1, called.shown()
    assert called.results["server_starts"] == 2, called.shown()
    assert [phase["cycles"] for phase in called.results["phases"]] == [0, 2]
    [hang] = called.findings("hang")
    assert any(line.startswith("stacks: ") and "did not move" in line for line in hang["evidence"]), hang
    report = (called.folder / "report.md").read_text()
    assert "sleep_ms < behave" in report[report.index("<details>") : report.index("</details>")]
    assert "second look" in (called.folder / "evidence" / "hang-1.txt").read_text()
