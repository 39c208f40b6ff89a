"""index_consistent: agreement passes, a contradiction fails, not asked is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import gone_probe, make_history, make_position, make_probe, make_step, ok, refused, run
from tritonchaos.checkers.index_consistent import IndexConsistent
from tritonchaos.verdict import Status

GONE = {"gone_after_ns": 1}


def only(*events):
    [assessment] = IndexConsistent().check(make_history(events))
    return assessment


def load(probe, reply=None):
    return (make_step(reply=reply), probe)


def unload(probe, **step):
    return (make_step("unload", observed=GONE, **step), probe)


def title(*events):
    found = only(*events)
    assert found.status is Status.FAIL
    [finding] = found.findings
    assert finding.kind == "wrong_state"
    return finding.title


def test_it_asks_for_probes():
    assert IndexConsistent.needs_probe


def test_load_and_unload_that_all_agree_on_pass():
    found = only(*load(make_probe()), *unload(gone_probe()), *load(gone_probe(), refused()), *unload(gone_probe()))
    assert (found.status, found.reason) == (Status.PASS, "index, model ready and metadata agreed after 4 steps")


def test_a_run_without_probes_is_unknown():
    assert only(make_step(), make_step("unload")).status is Status.UNKNOWN


def test_an_index_that_did_not_answer_is_unknown():
    assert only(*load(make_probe()), *load(replace(make_probe(), index=None))).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("probe", "wrong"),
    [
        (make_probe(states={}), "answered 200, but the model is not READY in the index (model ready answers 200)"),
        (
            make_probe(states={"ident": "UNAVAILABLE"}, model_ready=400),
            "answered 200, but the model is not READY in the index (nor is it served)",
        ),
        (make_probe(model_ready=400), "answered 200, but model ready answers 400"),
        (make_probe(metadata=None), "answered 200, but metadata answers nothing"),
    ],
)
def test_a_load_that_answered_200_must_be_ready_everywhere(probe, wrong):
    assert title(*load(probe)) == f"load ident {wrong}"


@pytest.mark.parametrize(
    ("probe", "wrong"),
    [
        (make_probe(), "answered 400, but the model is READY in the index"),
        (
            make_probe(states={"ident": "UNAVAILABLE"}),
            "answered 400, but model ready answers 200",
        ),
        (
            make_probe(states={}, model_ready=400),
            "answered 400, but metadata answers 200",
        ),
    ],
)
def test_a_model_whose_first_load_failed_must_not_be_served(probe, wrong):
    assert title(*load(probe, refused())) == f"load ident {wrong}"


def test_an_unloaded_model_must_not_be_served():
    assert title(*load(make_probe()), *unload(make_probe())) == (
        "unload ident answered 200, but the model is READY in the index"
    )


def test_after_a_failed_reload_the_old_version_may_stay_or_go_but_all_must_agree():
    assert only(*load(make_probe()), *load(make_probe(), refused())).status is Status.PASS
    assert only(*load(make_probe()), *load(gone_probe(), refused())).status is Status.PASS
    assert title(*load(make_probe()), *load(make_probe(model_ready=400), refused())) == (
        "load ident left a model that is READY in the index while model ready answers 400, metadata 200"
    )


@pytest.mark.parametrize("state", ["LOADING", "UNLOADING"])
def test_a_model_on_the_way_is_left_to_hang(state):
    assert only(*unload(gone_probe(state=state))).status is Status.PASS


def test_an_unload_that_was_not_seen_to_end_is_left_to_hang():
    stuck = make_step("unload", observed={"stuck": "UNLOADING"})
    assert only(*load(make_probe()), stuck, make_probe()).status is Status.PASS


def test_a_model_that_is_gone_must_not_serve():
    infer = make_step("infer", reply=ok())
    assert title(*load(make_probe()), *unload(gone_probe()), infer) == (
        "infer ident was answered although the index does not show the model READY"
    )
    assert only(*load(make_probe()), infer).status is Status.PASS
    assert only(*unload(gone_probe()), make_step("infer", reply=refused())).status is Status.PASS


def test_a_restart_forgets_what_was_ready():
    restarted = run().start(start=2).events
    assert title(*load(make_probe()), *restarted, *load(make_probe(), refused())) == (
        "load ident answered 400, but the model is READY in the index"
    )


def test_a_model_that_a_track_beside_changes_is_not_judged():
    beside = make_step("unload", position=make_position(track="other"))
    assert only(beside, *load(make_probe(states={}))).status is Status.UNKNOWN


def test_other_models_do_not_answer_for_this_one():
    assert "not READY" in title(*load(make_probe(states={"other": "READY"})))


def test_the_answers_are_evidence_and_the_step_is_named():
    [finding] = only(*load(make_probe(states={}))).findings
    assert finding.evidence == ("index: empty", "model ready: 200, metadata: 200")
    assert finding.step == "load ident"
