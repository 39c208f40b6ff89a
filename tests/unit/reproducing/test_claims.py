"""What a finding claims, of literal runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.builders import (
    CONTROL,
    TREATMENT,
    make_cycle,
    make_history,
    make_position,
    make_probe,
    make_step,
    refused,
)
from tritonchaos.errors import UsageError
from tritonchaos.judging import judge_history
from tritonchaos.observations import Event, History, Reading
from tritonchaos.plugins import load_plugins
from tritonchaos.reproducing.claims import claim_of
from tritonchaos.verdict import Finding

load_plugins()
MS = 10**6


def timed(phase: str, arm: Any, took_ms: Sequence[int]) -> list[Event]:
    events: list[Event] = []
    for number, took in enumerate(took_ms):
        cycle = make_cycle({"host_private_bytes": 1}, phase=phase, arm=arm, cycle=number)
        at = make_position(phase, arm, number)
        events += [cycle[0], Reading(1, "record", at, {"latency_load_ns": took * MS}), *cycle[1:]]
    return events


def found(history: History) -> list[Finding]:
    return list(judge_history(history).verdict.findings)


def test_of_several_latency_checks_each_finding_has_its_own_limit() -> None:
    checks = (("latency", {"at_most": "50ms"}), ("latency", {"times_control": 5}))
    told = make_history([*timed("c", CONTROL, [10] * 5), *timed("t", TREATMENT, [60, 80, 90])], checks=checks)
    [limit, times] = [claim_of(finding, told) for finding in found(told)]
    assert (limit["record"], limit["at_most_s"], limit["recorded"]) == ("load", 0.05, 0.08)
    assert (times["at_most_s"], times["times_control"], times["recorded"]) == (None, 5, 8.0)
    assert limit["least_cycles"] == 3


def test_a_step_of_a_track_is_found_again_on_that_track() -> None:
    at = make_position("p", None, 7, track="traffic")
    told = make_history([make_step("infer", position=at, reply=refused())], checks=(("expectations", {}),))
    claim = claim_of(found(told)[0], told)
    assert (claim["step"], claim["phase"], claim["track"]) == ("infer ident", "p", "traffic")


def test_an_inference_that_should_not_be_answered_is_held_against_what_was_said_before() -> None:
    load, infer = make_position(step_number=0), make_position(step_number=1)
    probe = make_probe(states={}, position=load)
    events: list[Event] = [make_step(position=load), probe, make_step("infer", position=infer)]
    told = make_history(events, checks=(("index_consistent", {}),))
    claims = [claim_of(finding, told) for finding in found(told)]
    assert [claim["step"] for claim in claims] == ["load ident", "infer ident"]
    assert [claim["said"] for claim in claims] == [[True, False, True, True]] * 2


def test_a_finding_of_a_foreign_checker_needs_a_step_that_misses_its_expectation() -> None:
    wrong, good = make_position(cycle=0), make_position(cycle=1)
    told = make_history([make_step(position=wrong, reply=refused()), make_step(position=good)])
    assert claim_of(Finding("wrong_state", "mine", "odd", position=wrong), told)["by"] == "unmet"
    with pytest.raises(UsageError, match="cannot be put into a bundle"):
        claim_of(Finding("wrong_state", "mine", "odd", position=good), told)
