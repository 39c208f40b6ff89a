"""The page's markup and data, without a browser."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import CONTROL, TREATMENT, failed_load, make_position, make_step, no_answer, run
from tests.finished_runs import HOST, leaking_run
from tritonchaos.html_page import render_page
from tritonchaos.html_page.log_lines import LogLines
from tritonchaos.html_page.markup import json_island, tag
from tritonchaos.html_page.time_line import read_time_line
from tritonchaos.observations import CycleStarted, PhaseFacts, ServerStopped
from tritonchaos.reporters.html import HtmlReport
from tritonchaos.summary import FinishedRun, finish
from tritonchaos.units import MIB
from tritonchaos.verdict import Finding, Status, Verdict


class _Outline(HTMLParser):
    """Collects ids, what refers to them, labels and headings; complains about elements that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.refers: list[str] = []
        self.open: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        if name not in ("meta", "input"):
            self.open.append(name)
        for key, value in attributes:
            if key == "id" and value:
                self.ids.append(value)
            if key in ("aria-labelledby", "aria-describedby", "for") and value:
                self.refers.append(value)
            if key == "href" and value and value.startswith("#"):
                self.refers.append(value[1:])
        if re.fullmatch("h[1-6]", name):
            self.headings.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name


def outline(text: str) -> _Outline:
    found = _Outline()
    found.feed(text)
    assert found.open == []
    return found


def data_of(text: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    return dict(json.loads(match[1]))


def long_run(cycles: int, spike_at: int) -> FinishedRun:
    values = [100 * MIB + (50 * MIB if cycle == spike_at else 0) for cycle in range(cycles)]
    history = (
        run()
        .phase("long", TREATMENT, HOST, values, **failed_load())
        .history(phases=(PhaseFacts("long", TREATMENT, "cycles", cycles),))
    )
    log = b"".join(b"I1201 line %d of a log that is much longer than a page may be\n" % n for n in range(60_000))
    samples = {HOST: [(n * 1_000_000, 999 * MIB if n == 7777 else n) for n in range(20_000)]}
    return finish(replace(history, log=log, samples=samples), Verdict(Status.PASS, (), ()), 0)


def test_verdict_and_finding_come_before_everything_else(tmp_path) -> None:
    assert HtmlReport().render(leaking_run(), tmp_path) == [tmp_path / "report.html"]
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    order = ["1 leak, 4 cycles", 'id="findings"', "512 KiB to 1.5 MiB", 'id="memory"', 'id="timeline"', 'id="log"']
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "scenario failed-load" not in text[: places[0]]


def test_the_markup_is_well_formed_and_every_reference_leads_somewhere() -> None:
    found = outline(render_page(leaking_run(treatment_cycles=30)))
    assert len(found.ids) == len(set(found.ids))
    assert set(found.refers) <= set(found.ids)
    assert found.headings[:3] == ["h1", "h2", "h3"]


def test_facts_say_what_was_calibrated() -> None:
    told = "calibrated on this machine: a leak of 2 MiB per cycle is found"
    history = run().history(calibration=told, target={"target": "docker", "image": "tritonserver@sha256:00"})
    text = render_page(finish(history, Verdict(Status.UNKNOWN, (), ()), 3))
    assert f"<td><code>{told}</code></td>" in text
    assert "<dt>Image</dt><dd>tritonserver@sha256:00</dd>" in text


def test_curves_are_there_as_tables_too() -> None:
    text = render_page(leaking_run(treatment_cycles=30))
    assert "<summary>Table: host_private_bytes, cycle by cycle</summary>" in text
    for value in ("102.000", "131.000", "10 more"):
        assert f"<td>{value}</td>" in text


def test_a_long_run_is_short_enough_and_keeps_its_spikes() -> None:
    finished = long_run(3000, spike_at=1234)
    text = render_page(finished)
    data = data_of(text)
    assert len(text.encode()) < 3_000_000
    (shown,) = data["charts"]["curves"]
    assert max(shown["values"]) == 150 * MIB
    assert shown["places"][shown["values"].index(150 * MIB)] == 1234
    assert len(shown["values"]) < shown["readings"] == 3000
    (samples,) = data["samples"]
    assert max(samples["values"]) == 999 * MIB
    assert samples["samples"] == 20_000
    kept = sum(len(lines) for _, lines in data["log"]["pieces"])
    assert kept < data["log"]["lines"] == 60_000
    assert data["started"] == 3000
    assert [data["cycles"][0]["cycle"], data["cycles"][-1]["cycle"]] == [0, 2999]


def test_an_unfinished_cycle_is_shown_with_its_edit() -> None:
    at = make_position("wrong", cycle=0)
    edit = make_step("delete_file", position=make_position("wrong", cycle=None))
    edit = replace(edit, reply=None, spec=replace(edit.spec, fields={"model": "ident", "path": "1/model.py"}))
    events = [edit, CycleStarted(3, "wrong", TREATMENT, 0, False), make_step(reply=no_answer(), position=at)]
    history = run().start().phase("good", CONTROL, HOST, [MIB]).add(*events).stop(forced=True).history()
    finding = Finding("hang", "hang", "load ident was not answered", position=at, step="load ident")
    text = render_page(finish(history, Verdict(Status.FAIL, (), (finding,)), 1))
    last = data_of(text)["cycles"][-1]
    assert (last["at"], data_of(text)["texts"][last["faults"]]) == (-1, "ident: 1/model.py deleted")
    assert "<dt>Edit in force</dt><dd><code>ident: 1/model.py deleted</code></dd>" in text
    assert text.index('id="timeline"') < text.index('id="memory"')


def test_a_run_without_cycles_log_or_scenario_has_a_page_all_the_same() -> None:
    text = render_page(finish(run().history(), Verdict(Status.UNKNOWN, (), ()), 3))
    outline(text)
    assert "No cycle was finished" in text
    assert "The run has no server.log." in text


def test_marks_of_a_lane_stay_few_and_the_worst_is_kept() -> None:
    builder = run()
    for number in range(5000):
        step = make_step("infer", position=make_position(cycle=None), reply=no_answer() if number == 2500 else None)
        builder.add(replace(step, started_ns=number * 1_000_000, t_ns=number * 1_000_000 + 500_000))
    line = read_time_line(finish(builder.history(), Verdict(Status.PASS, (), ()), 0))
    marks = line.lanes["infer ident"].marks
    assert len(marks) <= 1200
    assert sum(mark.count for mark in marks) == 5000
    assert [mark.text.split(";")[0] for mark in marks if mark.outcome == 2] == ["no answer (deadline)"]
    assert all(before.start_ns < after.start_ns for before, after in itertools.pairwise(marks))


def test_the_server_has_a_lane_of_its_own() -> None:
    history = run().start().add(ServerStopped(9, "SIGKILL", -9, True, False, 4)).history()
    line = read_time_line(finish(history, Verdict(Status.PASS, (), ()), 0))
    assert [(m.outcome, m.text) for m in line.lanes["tritonserver"].marks] == [
        (0, "start 1: live"),
        (2, "stopped with SIGKILL, exit code -9"),
    ]


# --- parts ---------------------------------------------------------------------------------------


def test_texts_are_escaped_and_markup_is_not() -> None:
    assert (
        tag("p", "a < b & c", tag("b", '"x"'), title='"<')
        == '<p title="&quot;&lt;">a &lt; b &amp; c<b>&quot;x&quot;</b></p>'
    )
    assert tag("p", "/opt/tritonserver/bin/tritonserver \x1b[31m") == "<p>tritonserver �[31m</p>"
    assert tag("p", data_cycle=0, hidden=True, id=None, open=False) == '<p data-cycle="0" hidden></p>'


@pytest.mark.parametrize("text", ["</script>", "<!--", "<script", "\u2028", "a & b"])
def test_data_can_not_end_its_element_and_comes_back_the_same(text: str) -> None:
    island = json_island("data", {"text": text})
    assert re.sub("^<script [^>]*>|</script>$", "", island).find("<") == -1
    assert data_of(str(island)) == {"text": text}


def test_lines_of_a_log_are_found_by_byte_offset() -> None:
    log = LogLines(b"one\ntwo\nthr\xffee\n\nfive")
    assert log.total == 5
    assert log.between(4, 8) == (1, 2)
    assert log.between(0, 10**9) == (0, 5)
    assert log.between(10**9, 10**9) == (5, 5)
    assert log.chosen([]) == [(0, ["one", "two", "thr�ee", "", "five"])]


def test_of_a_long_log_beginning_end_and_what_is_wanted_are_kept() -> None:
    log = LogLines(b"".join(b"%06d %s\n" % (number, b"x" * 100) for number in range(20_000)))
    pieces = log.chosen([(9000, 9003), (9003, 9005), (0, 20_000)])
    assert [(first, len(lines)) for first, lines in pieces] == [(0, 200), (9000, 5), (19_600, 400)]
    assert pieces[1][1][0].startswith("009000 ")


@given(st.lists(st.sampled_from([b"ab", b"\n", b"c" * 9])), st.integers(0, 60), st.integers(0, 60))
def test_lines_are_those_of_the_whole_log(parts: list[bytes], start: int, end: int) -> None:
    log = b"".join(parts)
    begins = [at for at in range(len(log)) if at == 0 or log[at - 1 : at] == b"\n"]
    lines = LogLines(log)
    first = sum(at < start for at in begins)
    assert lines.total == len(begins)
    assert lines.between(start, end) == (first, max(first, sum(at < end for at in begins)))
