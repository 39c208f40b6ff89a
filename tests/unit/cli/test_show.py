"""`show` prints all that happened in a cycle, and every figure of a report can be found there."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import make_facts, make_step, refused
from tests.in_process import tritonchaos
from tests.kept_runs import FORMAT_1, copy_of
from tritonchaos.judging import judge_history
from tritonchaos.observations import CycleFinished, CycleStarted, PhaseFacts, SettleWindow
from tritonchaos.observations.replies import Arm
from tritonchaos.plugins import load_plugins
from tritonchaos.store import RunStore, open_history
from tritonchaos.summary import at_position, cycles_of

load_plugins()


def show(*arguments: str, cwd: Path) -> str:
    done = tritonchaos("show", FORMAT_1, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_cycle_has_its_steps_replies_readings_and_log_lines(tmp_path: Path) -> None:
    shown = show("--phase", "wrong_output_datatype", "--cycle", "7", cwd=tmp_path)
    assert shown.startswith("wrong_output_datatype, cycle 7 (treatment), from ")
    assert "step 0  load ident -> 400: " in shown
    assert "step 1  unload ident -> 200" in shown
    assert re.search(r"settle window, 3 readings\n +host_private_bytes: [\d.]+ MiB, ", shown)
    assert "reading before_next: " in shown
    assert "reading loaded: " in show("--phase", "baseline", "--cycle", "7", cwd=tmp_path)
    assert "asked of ident: ready 400, metadata 404; index: " in shown
    assert "planted: retained 1048576 host bytes on purpose" in shown.split("server.log, bytes ")[1]
    assert len([line for line in shown.splitlines() if "loading: ident:1" in line]) == 1


def test_a_step_alone_has_what_belongs_to_it(tmp_path: Path) -> None:
    shown = show("--phase", "refused_otherwise", "--cycle", "0", "--step", "1", cwd=tmp_path)
    assert "step 1  unload ident" in shown
    assert "load ident -> 500" not in shown


def test_a_cycle_that_broke_off_ends_where_it_broke_off(tmp_path: Path) -> None:
    shown = show("--phase", "crashes", "--cycle", "1", cwd=tmp_path)
    assert "; it was not finished" in shown.splitlines()[0]
    assert "evidence of crash: exit_code -6" in shown
    assert "stop_server" not in shown


def test_without_a_phase_the_cycle_of_every_phase_is_shown(tmp_path: Path) -> None:
    shown = show("--cycle", "1", cwd=tmp_path)
    titles = [line.split(",")[0] for line in shown.splitlines() if ", cycle 1 (" in line]
    assert titles == ["baseline", "wrong_output_datatype", "refused_otherwise", "crashes"]
    assert "baseline, cycle 1 (control), " in shown


def test_an_overview_and_a_phase_lead_to_the_cycles(tmp_path: Path) -> None:
    overview = show(cwd=tmp_path)
    assert "--phase wrong_output_datatype (treatment): 12 cycles" in overview
    assert "--phase traffic (control): 1 cycle\n" in overview
    phase = show("--phase", "refused_otherwise", cwd=tmp_path)
    assert "step 0  edit_config ident" in phase
    assert 'with {"set": {"max_batch_size": -1}}' in phase
    assert "cycle 1 (treatment): host_private_bytes " in phase
    assert "not as expected: load ident: error text" in phase


def test_every_figure_of_the_results_is_found_in_its_cycle(tmp_path: Path) -> None:
    history = open_history(FORMAT_1)
    run = judge_history(history)
    for phase in run.results["phases"]:
        cycles = [one for one in cycles_of(history, phase["phase"]) if one.is_finished and not one.is_warm_up]
        values = phase["post_unload"]["host_private_bytes"]
        for one, value in zip(cycles, values, strict=True):
            [window] = [event for event in one.events if isinstance(event, SettleWindow)]
            assert value in window.values["host_private_bytes"]
    for finding in run.verdict.findings:
        assert finding.position is not None
        at = finding.position
        if at.track == "main":
            [one] = cycles_of(history, at.phase, at.cycle)
        else:
            one = at_position(history, at.phase, at.cycle, at.track)
        assert one is not None
        assert any(step.position == at for step in one.steps())


def test_a_round_of_a_track_is_shown_by_its_own_number(tmp_path: Path) -> None:
    shown = show("--phase", "traffic", "--track", "paced", "--cycle", "0", cwd=tmp_path)
    assert shown.startswith("traffic, round 0 of a track, from ")
    assert "track paced, step 0  infer ident -> 404: " in shown
    missing = tritonchaos("show", FORMAT_1, "--phase", "traffic", "--track", "paced", "--cycle", "2000", cwd=tmp_path)
    assert "nothing is recorded of round 2000 of track 'paced'" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cycle", "99"), "there is no cycle 99 in this run\nhint: it has: baseline 0 to 12"),
        (("--phase", "nope"), "there is no phase 'nope' in this run"),
        (("--step", "1"), "--step needs --cycle or --phase"),
    ],
)
def test_what_is_not_there_is_told(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = tritonchaos("show", FORMAT_1, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_hostile_texts_do_not_reach_the_terminal(tmp_path: Path) -> None:
    phases = (PhaseFacts("p", Arm.TREATMENT, "cycles", 1),)
    with RunStore.create(tmp_path / "run", replace(make_facts(), phases=phases), "scenario: s\n") as store:
        store.record(CycleStarted(0, "p", Arm.TREATMENT, 0, False))
        store.record(make_step(reply=refused("\x1b]0;owned\x07 /home/me/secret/model"), log=(0, 40)))
        store.record(CycleFinished(2, "p", 0))
        (tmp_path / "run" / "server.log").write_bytes(b"\x1b[2J wiped \xff /home/me/secret/x.so\n")
        store.finish(interrupted=False)
    done = tritonchaos("show", tmp_path / "run", "--cycle", "0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert "/home/me" not in done.stdout
    assert "wiped" in done.stdout


def test_a_run_without_a_cycle_says_so(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "run", make_facts(), "scenario: s\n") as store:
        store.finish(interrupted=False)
    assert tritonchaos("show", tmp_path / "run", cwd=tmp_path).stdout == "run run-1, scenario failed-load\n"
    done = tritonchaos("show", tmp_path / "run", "--cycle", "0", cwd=tmp_path)
    assert "it has: no cycle at all" in done.stderr


def test_bodies_are_shown_as_they_came(tmp_path: Path) -> None:
    shown = show("--phase", "refused_otherwise", "--cycle", "0", "--step", "0", cwd=tmp_path)
    body = next(line for line in shown.splitlines() if line.strip().startswith("body "))
    assert json.loads(body.strip().removeprefix("body "))["error"].startswith("failed to load 'ident'")


def test_a_copy_is_shown_without_writing_into_it(tmp_path: Path) -> None:
    copy = copy_of(FORMAT_1, tmp_path)
    before = sorted(path.name for path in copy.iterdir())
    assert tritonchaos("show", copy, "--cycle", "1", cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in copy.iterdir()) == before
