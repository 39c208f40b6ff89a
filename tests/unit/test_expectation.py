"""What a step's reply is compared with."""

from __future__ import annotations

import pytest

from tests.builders import make_step, no_answer, ok, refused
from tritonchaos.expectation import error_text, mismatch, unmet
from tritonchaos.observations import Answer, Expectation

WRONG = "unexpected datatype TYPE_FP32 for inference output 'OUTPUT', expecting TYPE_INT32"


def fields(**demands):
    return Expectation(kind="fields", **demands)


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (make_step(), None),
        (make_step(reply=refused()), "status"),
        (make_step(reply=no_answer()), "no_answer"),
        (make_step("infer", reply=no_answer("garbage: inference response: ValueError: size 2")), "outputs"),
        (make_step(reply=no_answer(), expect=Expectation(kind="any")), None),
        (make_step(reply=refused(), observed={"skipped": "not this cycle"}), None),
        (make_step(reply=refused(WRONG), expect=fields(error="unexpected datatype TYPE_FP32")), None),
        (make_step(reply=refused("load: " + WRONG), expect=fields(error="datatype TYPE_FP32 .*TYPE_INT32")), None),
        (make_step(reply=refused("other"), expect=fields(error="unexpected")), "error"),
        (make_step(reply=ok(), expect=fields(error="unexpected")), "status"),
        (make_step(reply=refused("x", 404), expect=fields(status=(404,))), None),
        (make_step(reply=refused("x", 500), expect=fields(status=(400, 404))), "status"),
        (make_step(reply=refused("x", 400), expect=fields(status=(400,), error="y")), "error"),
        (make_step(reply=ok(elapsed_ns=2_000_000_000), expect=fields(within_s=1)), "time"),
        (make_step(reply=ok(elapsed_ns=500_000_000), expect=fields(within_s=1)), None),
        (make_step(observed={"stuck": "UNLOADING"}), "stuck"),
        (make_step("infer", observed={"match": False, "first_mismatch": "[0] is 1, not 2"}), "outputs"),
        (make_step("infer", observed={"match": False}, expect=fields(status=(200,))), None),
        (make_step("infer", observed={"match": False}, expect=fields(outputs="match")), "outputs"),
        (make_step("infer", observed={"match": True}), None),
    ],
)
def test_the_first_unmet_demand_is_named(step, kind):
    found = unmet(step)
    assert (None if found is None else found.kind) == kind
    assert mismatch(step) == (None if found is None else found.text)


@pytest.mark.parametrize(
    ("states", "wanted", "matches"),
    [
        ({"ident": "READY"}, "READY", True),
        ({"ident": "UNAVAILABLE"}, "READY", False),
        ({}, "ABSENT", True),
        ({"ident": "UNAVAILABLE"}, "ABSENT", True),
        ({"ident": "LOADING"}, "ABSENT", False),
    ],
)
def test_absent_means_neither_ready_nor_on_the_way(states, wanted, matches):
    step = make_step(observed={"states": states}, expect=fields(state={"ident": wanted}))
    assert (unmet(step) is None) is matches


def test_the_reason_in_the_index_is_searched():
    wanted = fields(reason="unexpected datatype")
    assert unmet(make_step(observed={"reason": WRONG}, expect=wanted)) is None
    assert unmet(make_step(observed={"reason": "unloaded"}, expect=wanted)).kind == "reason"


def test_what_was_found_and_expected_is_said():
    step = make_step(reply=refused("no such model"), expect=fields(error="unexpected"))
    assert mismatch(step) == "error text 'no such model', expected 'unexpected'"


@pytest.mark.parametrize(
    ("body", "text"),
    [(b'{"error": "no"}', "no"), (b'{"error": 3}', '{"error": 3}'), (b"plain \xff", "plain �"), (b"[1]", "[1]")],
)
def test_the_error_text_is_the_json_member_or_the_whole_body(body, text):
    assert error_text(Answer(400, body, 1)) == text


@pytest.mark.parametrize(
    ("observed", "expect", "kind"),
    [
        ({"versions": ["1", "2"]}, fields(version=("2", "1")), None),
        ({"versions": ["1"]}, fields(version=("1", "2")), "version"),
        ({"versions": ["1", "3"]}, fields(version=("1",)), "version"),
        ({}, fields(version=("1",)), "version"),
        ({"answered_by": ["2"], "versions": ["1", "2"]}, fields(version=("2", "3")), None),
        ({"answered_by": ["1", "2"], "versions": ["1"]}, fields(version=("1",)), "version"),
        ({"log": "one\ntwo words\n"}, fields(log="two w"), None),
        ({"log": "one\ntwo"}, fields(log="one.*two"), "log"),
        ({}, fields(log="one"), "log"),
        ({"log": "one\ntwo"}, fields(not_log="three"), None),
        ({"log": "one\ntwo"}, fields(not_log="^two"), "log"),
        ({"processes": {"stub": 1, "server": 1}}, fields(processes={"stub": 1}), None),
        ({"processes": {"stub": 2}}, fields(processes={"stub": 1}), "processes"),
        ({"processes": {}}, fields(processes={"stub": 0}), "processes"),
        ({"live": 200, "ready": 400}, fields(live=True, ready=False), None),
        ({"live": 400}, fields(live=True), "health"),
        ({"ready": 200}, fields(ready=False), "health"),
        ({"live": None}, fields(live=True), "health"),
        ({"signalled": 0}, Expectation(), "no_process"),
        ({"signalled": 2}, Expectation(), None),
        ({"not_reached": "waited 5 s for ident READY, found UNAVAILABLE"}, Expectation(), "not_reached"),
        ({"not_reached": "less than is in use"}, Expectation("any"), None),
    ],
)
def test_what_was_looked_at_after_the_step_is_held_against_the_expectation(observed, expect, kind):
    found = unmet(make_step(observed=observed, expect=expect))
    assert (None if found is None else found.kind) == kind
