"""What is taken from a run: times, peaks, and how late readings came; warm-up cycles are left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import CONTROL, TREATMENT, make_cycle, make_history, no_answer
from tests.kept_runs import FORMAT_1, copy_of
from tritonchaos.comparing.runs import lateness_ns, peaks, read_run, times_ns
from tritonchaos.errors import StoreError
from tritonchaos.observations import CycleFinished, CycleStarted, Event, History, SettleWindow
from tritonchaos.plugins import load_plugins

load_plugins()
HOST = "host_private_bytes"


def at(events: list[Event], start_ns: int, end_ns: int, late_ns: int = 0) -> list[Event]:
    """Give a cycle its place in time, and its settle window readings that come late."""
    moved: list[Event] = []
    for event in events:
        if isinstance(event, CycleStarted):
            event = replace(event, t_ns=start_ns)
        elif isinstance(event, CycleFinished):
            event = replace(event, t_ns=end_ns)
        elif isinstance(event, SettleWindow):
            event = replace(event, times_ns=tuple(end_ns + number * (10_000_000 + late_ns) for number in range(3)))
        moved.append(event)
    return moved


def test_times_are_by_phase_and_arm_without_warm_up_and_unanswered_calls() -> None:
    events = [
        *at(make_cycle({HOST: 1}, phase="good", arm=CONTROL, cycle=0, is_warm_up=True), 0, 9),
        *at(make_cycle({HOST: 1}, phase="good", arm=CONTROL, cycle=1), 10, 19),
        *at(make_cycle({HOST: 1}, phase="bad", arm=TREATMENT, cycle=0), 20, 29, late_ns=1_000_000),
        *at(make_cycle({HOST: 1}, phase="bad", arm=TREATMENT, cycle=1, reply=no_answer()), 30, 39),
    ]
    assert times_ns(make_history(events)) == {
        "load ident in phase good (control)": [2_000_000],
        "unload ident in phase good (control)": [2_000_000],
        "settling in phase good (control)": [20_000_000],
        "load ident in phase bad (treatment)": [2_000_000],
        "unload ident in phase bad (treatment)": [2_000_000, 2_000_000],
        "settling in phase bad (treatment)": [22_000_000, 20_000_000],
    }


def test_a_peak_between_two_readings_is_in_the_samples() -> None:
    events = [
        *at(make_cycle({HOST: 10}, loaded={HOST: 30}, cycle=0), 0, 99),
        *at(make_cycle({HOST: 11}, loaded={HOST: 31}, cycle=1), 100, 199),
    ]
    history = make_history(events)
    history = History(history.facts, history.events, samples={HOST: ((50, 20), (150, 77), (250, 900))})
    assert peaks(history) == {HOST: {"in phase p (treatment)": [30, 77]}}


def test_lateness_is_that_of_the_settle_windows() -> None:
    events = [
        event
        for cycle in range(20)
        for event in at(make_cycle({HOST: 1}, cycle=cycle), cycle, cycle, late_ns=3_000_000)
    ]
    assert lateness_ns(make_history(events)) == pytest.approx(3_000_000)
    assert lateness_ns(make_history([])) == 0


def test_a_kept_run_is_read_whole(tmp_path: Path) -> None:
    run = read_run(FORMAT_1)
    assert run.title == "kept-run"
    assert len(run.times_ns["load ident in phase wrong_output_datatype (treatment)"]) == 12
    assert len(run.peaks[HOST]["in phase wrong_output_datatype (treatment)"]) == 12
    assert {finding.kind for finding in run.findings} == {"crash", "leak", "wrong_error"}
    copy = copy_of(FORMAT_1, tmp_path)
    (copy / "scenario.yaml").unlink()
    with pytest.raises(StoreError, match=r"cannot read .*scenario\.yaml"):
        read_run(copy)
