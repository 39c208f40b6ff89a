"""expectations: every reply as it should be passes, another one fails, no answer that nobody explains is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import make_history, make_position, make_step, no_answer, ok, refused
from tritonchaos.checkers.expectations import Expectations
from tritonchaos.observations import Expectation, ServerExited, TrafficSummary
from tritonchaos.verdict import Status

FAILS = Expectation(kind="fields", error="unexpected datatype")
BOTH = (("hang", {}), ("server_alive", {}))


def only(*events, **facts):
    [assessment] = Expectations().check(make_history(events, **facts))
    return assessment


def test_steps_that_are_answered_as_expected_pass():
    found = only(make_step(), make_step(reply=refused(), expect=FAILS), make_step("unload"))
    assert (found.status, found.reason) == (Status.PASS, "3 steps, 0 not as expected")


@pytest.mark.parametrize(
    ("step", "kind", "title"),
    [
        (
            make_step(reply=ok(), expect=FAILS),
            "wrong_error",
            "load ident succeeded, expected an error with 'unexpected datatype'",
        ),
        (
            make_step(reply=refused("disk full"), expect=FAILS),
            "wrong_error",
            "load ident was refused with another text than 'unexpected datatype'",
        ),
        (
            make_step(reply=refused("no such model", 404)),
            "wrong_error",
            "load ident answered 404 instead of 200: no such model",
        ),
        (
            make_step("infer", observed={"match": False, "first_mismatch": "[3] is 1, not 2"}),
            "wrong_output",
            "infer ident returned wrong outputs",
        ),
        (
            make_step(observed={"states": {}}, expect=Expectation(state={"ident": "READY"})),
            "wrong_state",
            "load ident left a wrong state: state of ident is ABSENT, expected READY",
        ),
        (
            make_step(reply=ok(elapsed_ns=3_000_000_000), expect=Expectation(within_s=1)),
            "slowdown",
            "load ident took longer than 1 s",
        ),
        (
            make_step(observed={"reason": "unloaded"}, expect=Expectation(reason="datatype")),
            "wrong_error",
            "load ident left another reason in the index than 'datatype'",
        ),
    ],
)
def test_each_unmet_expectation_is_a_finding(step, kind, title):
    found = only(make_step(), step)
    [finding] = found.findings
    assert (found.status, finding.kind, finding.title, finding.step) == (Status.FAIL, kind, title, step.spec.label())
    assert finding.evidence


def test_what_was_found_is_evidence():
    [finding] = only(make_step(reply=refused("disk full"), expect=FAILS)).findings
    assert finding.evidence == ("error text 'disk full', expected 'unexpected datatype'",)


def test_sightings_of_one_defect_are_counted_at_the_first_position():
    steps = [make_step(reply=ok(), expect=FAILS, position=make_position(cycle=cycle)) for cycle in range(3)]
    [finding] = only(*steps).findings
    assert (finding.occurrences, finding.position.cycle) == (3, 0)


def test_steps_beside_the_main_track_are_judged_too():
    beside = make_step("infer", reply=refused(), position=make_position(track="load"))
    assert only(make_step(), beside).findings[0].position.track == "load"


def test_an_undocumented_step_is_reported_apart():
    assert only(make_step(reply=refused(), undocumented=True)).findings[0].undocumented


@pytest.mark.parametrize(
    "step",
    [
        make_step(reply=refused(), expect=Expectation(kind="any")),
        replace(make_step("wait", None), reply=None),
        make_step(reply=refused(), observed={"skipped": "only at each 100th cycle"}),
    ],
)
def test_a_run_that_expects_nothing_is_unknown(step):
    assert only(step).status is Status.UNKNOWN
    assert only().status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("step", "checks", "status"),
    [
        (make_step(reply=no_answer("deadline")), BOTH, Status.PASS),
        (make_step(reply=no_answer("deadline")), (), Status.UNKNOWN),
        (make_step("unload", observed={"stuck": "UNLOADING"}), BOTH, Status.PASS),
        (make_step("unload", observed={"stuck": "UNLOADING"}), (), Status.UNKNOWN),
        (make_step(reply=no_answer("reset")), BOTH, Status.UNKNOWN),
    ],
)
def test_no_answer_is_left_to_the_checker_that_reports_it_and_is_unknown_without_one(step, checks, status):
    found = only(make_step(), step, checks=checks)
    assert found.status is status
    assert "1 without an answer, stuck or in vain" in found.reason


@pytest.mark.parametrize("step", ["wait_for", "limit_memory"])
def test_what_was_waited_or_asked_for_in_vain_leaves_the_result_unknown(step):
    refused_limit = make_step(step, reply=None, observed={"not_reached": "could not limit to 64 MiB: in use"})
    found = only(make_step(), refused_limit, checks=BOTH)
    assert found.status is Status.UNKNOWN
    assert found.reason.startswith("2 steps, 0 not as expected, 1 without an answer, stuck or in vain")
    assert found.reason.endswith("could not limit to 64 MiB: in use")


def test_a_connection_that_broke_because_the_server_died_is_left_to_server_alive():
    events = (make_step(reply=no_answer("reset")), ServerExited(2, make_position(), -11))
    assert only(*events, checks=BOTH).status is Status.PASS
    assert only(*events).status is Status.UNKNOWN


def test_requests_that_were_only_counted_count():
    step = make_step("infer", "busy", position=make_position(track="traffic"))
    summary = TrafficSummary(9, 1, "p", "traffic", step.spec, 1000, 1000, 0, (1, 2, 3, 4))
    assert only(step, summary).reason == "1001 steps, 0 not as expected"
    refusal = make_step("infer", "busy", reply=refused(), position=make_position(track="traffic"))
    found = only(refusal, TrafficSummary(9, 1, "p", "traffic", step.spec, 500, 0, 0, (1, 2, 3, 4)))
    assert found.status is Status.FAIL
    assert found.reason.startswith("501 steps, 501 not as expected")
