"""hang: answers in time pass, a call without answer or a stuck model fails, nothing asked is unknown."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import make_history, make_position, make_probe, make_step, no_answer
from tritonchaos.checkers.hang import Hang
from tritonchaos.observations import Evidence, Expectation, ServerExited, ServerStarted
from tritonchaos.verdict import Status


def only(*events):
    [assessment] = Hang().check(make_history(events))
    return assessment


def test_calls_that_are_answered_pass():
    assert only(make_step(), make_step("unload"), make_probe()).status is Status.PASS


def test_a_call_without_an_answer_fails_with_what_still_answers():
    at = make_position(phase="without_model_file", cycle=0)
    step = make_step(reply=no_answer("deadline: 8 s"), position=at, deadline_s=8)
    facts = {"live_http": "200", "live_grpc": "200", "index": "ident LOADING"}
    evidence = Evidence(3, at, "hang", facts, ("I loading: ident:1",))
    other = Evidence(3, make_position(phase="other"), "hang", {"live_http": "no answer"}, ())
    found = only(make_step(), step, evidence, other)
    [finding] = found.findings
    assert (found.status, finding.kind, finding.step) == (Status.FAIL, "hang", "load ident")
    assert finding.title == "load ident was not answered within its deadline of 8 s"
    assert finding.position == at
    assert finding.evidence == ("live_http: 200", "live_grpc: 200", "index: ident LOADING", "I loading: ident:1")


def test_a_model_that_stays_unloading_fails():
    [finding] = only(make_step("unload", observed={"stuck": "UNLOADING"})).findings
    assert finding.title == "unload ident left the model stuck in UNLOADING past its deadline of 30 s"


def test_a_call_that_may_hang_is_no_finding():
    assert only(make_step(), make_step(reply=no_answer(), expect=Expectation(kind="any"))).status is Status.PASS


def test_a_connection_that_broke_is_no_hang():
    assert only(make_step(), make_step(reply=no_answer("reset"))).status is Status.PASS


def test_the_same_step_hanging_again_is_one_finding_and_a_later_one_is_told_apart():
    hung = make_step(reply=no_answer())
    first, second = only(hung, hung, make_step("infer", reply=no_answer())).findings
    assert (first.step, first.occurrences, second.step) == ("load ident", 2, "infer ident")
    assert second.evidence[0].startswith("2 calls hung before")


def test_calls_that_hung_on_an_earlier_start_of_the_server_hold_none_of_its_threads():
    again = ServerStarted(5, 2, 1, "http://127.0.0.1:1", 1)
    _, second = only(make_step(reply=no_answer()), again, make_step("infer", reply=no_answer())).findings
    assert second.evidence == ()


def test_threads_that_did_not_move_are_details():
    at = make_position(cycle=4)
    stacks = Evidence(3, at, "stacks", {}, ("server 7: 1 of 2 threads did not move", "  1 thread (7): poll < main"))
    [finding] = only(make_step(reply=no_answer(), position=at), stacks).findings
    assert (finding.details, finding.evidence) == (stacks.lines, ())


def test_a_server_that_answers_nothing_any_more_hangs_unless_it_died():
    probe = replace(make_probe(model_ready=None, metadata=None), index=None, live=None, ready=None)
    assert only(make_step(), probe).findings[0].title == "the server answers nothing any more after load ident"
    assert only(make_step(), probe, ServerExited(9, None, -11)).status is Status.PASS


def test_a_server_that_crashed_behind_its_answer_to_an_unload_did_not_hang():
    at = make_position(cycle=3)
    silent = make_step("unload", observed={"stuck": "an index that does not answer"}, position=at)
    assert only(silent, ServerExited(9, at, -11)).status is Status.PASS
    assert only(silent, ServerExited(9, make_position(cycle=4), -11)).status is Status.FAIL
    still_there = make_step("unload", observed={"stuck": "UNLOADING"}, position=at)
    assert only(still_there, ServerExited(9, at, -11)).status is Status.FAIL
    before = make_step(reply=no_answer(), position=at)
    assert len(only(before, silent, ServerExited(9, at, -11)).findings) == 1


def test_a_server_that_was_asked_nothing_is_unknown():
    assert only(replace(make_step("wait", None), reply=None)).status is Status.UNKNOWN


def test_an_undocumented_step_is_reported_apart():
    assert only(make_step(reply=no_answer(), undocumented=True)).findings[0].undocumented
