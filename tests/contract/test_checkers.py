"""What every registered checker must do, whatever it judges."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tests.builders import failed_load_run, make_history
from tritonchaos.observations import History
from tritonchaos.plugins import CHECKERS, Watches, load_plugins
from tritonchaos.post_unload import cycle_readings
from tritonchaos.verdict import Assessment, Status

load_plugins()
NAMES = CHECKERS.names()
CLEAN = failed_load_run("host_private_bytes", [10**8] * 6, [10**8] * 50, ready={"host_private_bytes": 10**8})
HISTORIES = {
    "empty": make_history([]),
    "interrupted": make_history([], interrupted=True),
    "clean": CLEAN,
    "cut": make_history(CLEAN.events[:101]),
}


def check(name: str, history: History) -> list[Assessment]:
    return list(CHECKERS[name]().check(history))


def test_the_checkers_of_the_shipped_scenarios_are_there():
    assert {
        "memory_growth",
        "returns_to_baseline",
        "expectations",
        "server_alive",
        "hang",
        "index_consistent",
        "leftovers",
    } <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_its_help_is_one_sentence(name):
    assert CHECKERS.help(name).endswith(".")
    assert len(CHECKERS.help(name)) <= 120


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_frozen_record_that_needs_no_fields(name):
    assert dataclasses.is_dataclass(CHECKERS[name])
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        CHECKERS[name]().name = "other"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_its_assessments_are_complete_and_its_own(name, history):
    found = check(name, history)
    assert found
    for assessment in found:
        assert assessment.checker == name
        assert assessment.reason
        assert all(finding.checker == name for finding in assessment.findings)
        json.dumps([dataclasses.asdict(finding) for finding in assessment.findings], allow_nan=False)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_seen_is_unknown_and_counts(name):
    assert [(a.status, a.counts) for a in check(name, HISTORIES["empty"])] == [(Status.UNKNOWN, True)]


@pytest.mark.parametrize("name", NAMES)
def test_judging_twice_gives_the_same(name):
    assert check(name, CLEAN) == check(name, CLEAN)


@pytest.mark.parametrize("name", [name for name in NAMES if issubclass(CHECKERS[name], Watches)])
def test_a_stopping_rule_takes_every_cycle(name):
    watch = CHECKERS[name]().watch(False, ())
    advice = [watch.see(reading) for reading in cycle_readings(CLEAN)]
    assert len(advice) == 56
    assert watch.has_leak is False
