"""The time line of a run whose cycles are alike says what walking over all its events says."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.long_run import make
from tests.unit.html_page.test_page import data_of
from tritonchaos.html_page import render_page
from tritonchaos.html_page.lanes import Lane, Mark
from tritonchaos.html_page.time_line import read_time_line
from tritonchaos.observations import History
from tritonchaos.plugins import load_plugins
from tritonchaos.store import open_history
from tritonchaos.summary import FinishedRun, finish
from tritonchaos.verdict import Status, Verdict

load_plugins()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("runs") / "alike"
    make(folder, 4200)  # more cycles that are alike than are looked at one by one
    return open_history(folder, most_kept=0)


def finished(history: History) -> FinishedRun:
    return finish(history, Verdict(Status.PASS, (), ()), 0)


def test_marks_are_those_of_the_whole_run(history: History) -> None:
    assert history.stretches is not None
    skimmed = read_time_line(finished(history))
    walked = read_time_line(finished(replace(history, events=tuple(history.events))))
    assert list(skimmed.lanes) == list(walked.lanes)
    for label, lane in walked.lanes.items():
        found = skimmed.lanes[label].marks
        assert [(m.outcome, m.count, m.text, m.place) for m in found] == [
            (m.outcome, m.count, m.text, m.place) for m in lane.marks
        ]
        assert all(abs(one.start_ns - other.start_ns) < 1_000_000 for one, other in zip(found, lane.marks, strict=True))
    assert skimmed.cycles == walked.cycles
    assert (skimmed.started, skimmed.outside) == (walked.started, walked.outside)


def test_the_page_of_a_long_run_is_small_and_says_of_how_many_cycles_it_is(history: History) -> None:
    text = render_page(finished(history))
    data = data_of(text)
    assert len(text.encode()) < 500_000
    assert (data["started"], len(data["cycles"])) == (4200, 160)
    assert [sum(mark[3] for mark in lane["marks"]) for lane in data["lanes"] if "load" in lane["label"]] == [4200, 4200]


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=2000), st.integers(0, 2))
def test_marks_that_are_alike_may_be_given_together(shifts: list[int], outcome: int) -> None:
    one_by_one, together = Lane(), Lane()
    for lane in (one_by_one, together):
        lane.add(Mark(5, 9, 1, 1, "another", 7))
    for place, shift in enumerate(shifts):
        one_by_one.add(Mark(100 + shift, 200 + shift, outcome, 1, "a text", place))
    together.spread(Mark(100, 200, outcome, 1, "a text", 0), numpy.array(shifts), numpy.arange(len(shifts)))
    assert one_by_one.marks() == together.marks()
    assert len(together.marks()) <= 1200
