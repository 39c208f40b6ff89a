"""Latencies of steps with `record`, and what they are held against."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.builders import CONTROL, TREATMENT, make_cycle, make_history, make_position, refused
from tritonchaos.checkers.latency import Latency
from tritonchaos.observations import Event, History, Reading
from tritonchaos.post_unload import cycle_readings
from tritonchaos.verdict import Assessment, Status

MS = 10**6


def cycles(phase: str, arm, took_ms: Sequence[int], **changes) -> list[Event]:
    events: list[Event] = []
    for number, took in enumerate(took_ms):
        cycle = make_cycle({"host_private_bytes": 1}, phase=phase, arm=arm, cycle=number, **changes)
        at = make_position(phase, arm, number)
        events += [cycle[0], Reading(1, "record", at, {"latency_load_ns": took * MS}), *cycle[1:]]
    return events


def history(treatment: Sequence[int], control: Sequence[int] = ()) -> History:
    return make_history([*cycles("c", CONTROL, control), *cycles("t", TREATMENT, treatment)])


def assess(checker: Latency, told: History) -> Assessment:
    (assessment,) = checker.check(told)
    return assessment


@pytest.mark.parametrize(
    ("checker", "status"),
    [
        (Latency(at_most=0.010), Status.PASS),
        (Latency(at_most=0.009), Status.FAIL),
        (Latency(at_most=0.010, of="max"), Status.FAIL),
        (Latency(at_most=0.050, of="p99"), Status.PASS),
        (Latency(times_control=2.5), Status.PASS),
        (Latency(), Status.PASS),
        (Latency(times_control=1.9), Status.FAIL),
        (Latency("load", times_control=1.9, at_most=1.0), Status.FAIL),
        (Latency("other", at_most=1.0), Status.UNKNOWN),
    ],
)
def test_limits(checker: Latency, status: Status):
    assessment = assess(checker, history([10, 10, 50], control=[5, 5, 6]))
    assert assessment.status is status
    assert [finding.kind for finding in assessment.findings] == (["slowdown"] if status is Status.FAIL else [])


def test_a_limit_against_the_control_arm_needs_one():
    assert assess(Latency(), history([10])).status is Status.UNKNOWN


def test_warm_up_cycles_and_those_that_went_wrong_do_not_count():
    events = [
        *cycles("w", TREATMENT, [900], is_warm_up=True),
        *cycles("x", TREATMENT, [900], reply=refused()),
        *cycles("t", TREATMENT, [10]),
    ]
    assessment = assess(Latency(at_most=0.020, of="max"), make_history(events))
    assert (assessment.status, assessment.cycles_used) == (Status.PASS, 1)


def test_a_cycle_that_records_several_times_has_their_median_and_no_memory_of_that_name():
    events = cycles("t", TREATMENT, [10])
    at = make_position("t", TREATMENT, 0)
    more = [Reading(1, "record", at, {"latency_load_ns": took * MS}) for took in (1, 30)]
    (reading,) = cycle_readings(make_history([events[0], *more, *events[1:]]))
    assert reading.latencies == {"latency_load_ns": 10 * MS}
    assert reading.values == {"host_private_bytes": 1}
