"""Settle windows become one post-unload reading per finished cycle."""

from __future__ import annotations

import pytest

from tests.builders import (
    CONTROL,
    TREATMENT,
    failed_load,
    make_cycle,
    make_history,
    make_position,
    make_step,
    ok,
    refused,
    run,
)
from tritonchaos.observations import CycleStarted, Expectation, Reading
from tritonchaos.post_unload import (
    CycleReader,
    baseline,
    cycle_readings,
    has_settled,
    is_flat,
    primary_metrics,
    settle_quantum,
)
from tritonchaos.units import KIB, MIB


def only_reading(events, **facts):
    [reading] = cycle_readings(make_history(events, **facts))
    return reading


def test_the_reading_is_the_median_of_the_last_sample_count_readings():
    events = make_cycle({"host_private_bytes": (900, 500, 100, 300, 200)})
    assert only_reading(events, sample_count=3).values == {"host_private_bytes": 200}


def test_a_metric_without_a_value_in_the_last_readings_is_absent_not_zero():
    events = make_cycle({"a": (7, None, None, None), "b": (1, 2, None, 4)})
    assert only_reading(events, sample_count=3).values == {"b": 2}


def test_metrics_that_did_not_settle_are_named():
    events = make_cycle({"a": 1, "b": 2})
    window = events[-2]
    events[-2] = type(window)(**{f: getattr(window, f) for f in window.__slots__} | {"settled": frozenset({"a"})})
    assert only_reading(events).unsettled == {"b"}


def test_phase_arm_cycle_and_loads_are_told():
    reading = only_reading(make_cycle({"a": 1}, phase="baseline", arm=CONTROL, cycle=4, is_warm_up=True))
    assert (reading.phase, reading.arm, reading.cycle, reading.is_warm_up, reading.loads) == (
        "baseline",
        CONTROL,
        4,
        True,
        1,
    )


def test_a_cycle_that_was_not_finished_is_not_read():
    assert cycle_readings(make_history(make_cycle({"a": 1})[:-1])) == []


def test_a_cycle_without_a_settle_window_is_a_gap():
    events = [event for event in make_cycle({"a": 1}) if type(event).__name__ != "SettleWindow"]
    assert only_reading(events).values == {}


def test_the_last_settle_window_of_a_cycle_counts():
    first, second = make_cycle({"a": 1}), make_cycle({"a": 2})
    assert only_reading([*first[:-1], *second[-2:]]).values == {"a": 2}


@pytest.mark.parametrize(
    ("cycle", "expected"),
    [
        (failed_load(), None),
        (failed_load(reply=ok()), "load ident: status 200, expected an error with 'unexpected datatype'"),
        (failed_load(reply=refused("other")), "load ident: error text 'other', expected 'unexpected datatype'"),
        ({"reply": refused("no", 400)}, "load ident: status 400, expected 200: no"),
        ({"reply": refused("no"), "expect": Expectation(kind="any")}, None),
    ],
)
def test_a_cycle_counts_only_if_its_main_track_steps_did_what_they_should(cycle, expected):
    reading = only_reading(make_cycle({"a": 1}, **cycle))
    assert reading.mismatch == expected
    assert reading.is_judged == (expected is None)


def test_a_wrong_step_beside_the_main_track_does_not_spoil_the_cycle():
    beside = make_step("infer", reply=refused(), position=make_position(track="load"))
    events = make_cycle({"a": 1})
    assert only_reading([*events[:2], beside, *events[2:]]).mismatch is None


def test_the_loaded_reading_of_the_cycle_is_kept():
    assert only_reading(make_cycle({"a": 1}, loaded={"a": 50})).loaded == {"a": 50}
    assert only_reading(make_cycle({"a": 1})).loaded == {}


def test_a_live_reader_gives_the_same_readings_as_the_stored_history():
    history = run().start().phase("p", TREATMENT, "a", [1, 2, 3]).stop().history()
    reader = CycleReader(3)
    live = [reading for event in history.events if (reading := reader.see(event)) is not None]
    assert live == cycle_readings(history)
    assert [reading.values["a"] for reading in live] == [1, 2, 3]


def test_a_cycle_that_starts_again_forgets_what_was_open():
    events = [CycleStarted(0, "p", TREATMENT, 0, False), *make_cycle({"a": 1}, cycle=1)]
    assert only_reading(events).cycle == 1


def test_each_start_of_the_server_has_its_own_baseline():
    ready = Reading(1, "ready", None, {"a": 7})
    history = (
        run().start({"a": 5}).add(Reading(2, "idle", None, {"a": 1})).start({"a": 6}, start=2).add(ready).history()
    )
    assert baseline(history) == {"a": 5}
    assert baseline(history, 2) == {"a": 6}
    assert baseline(history, 3) == {}


@pytest.mark.parametrize(
    ("values", "expected"),
    [((9, 1, 2, 2), True), ((1, 2, 3), False), ((1, 1), False), ((1, None, 1), False), ((), False)],
)
def test_settled_means_the_last_readings_lie_within_one_quantum(values, expected):
    assert has_settled(values, 3, 1) is expected


@pytest.mark.parametrize(
    ("readings", "expected"), [((5, 1, 1, 1), True), ((1, 1, 1), False), ((1, 1, 1, 3), False), ((0, 1, 2, 2), True)]
)
def test_flat_means_four_readings_and_the_last_three_within_one_quantum(readings, expected):
    assert is_flat(readings, 1) is expected


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("nvml_device_used_bytes", 2 * MIB),
        ("nvml_process_used_bytes@GPU-1", 2 * MIB),
        ("host_private_bytes", 16 * KIB),
        ("stub_rss_bytes", 16 * KIB),
        ("shm_bytes", 4096),
        ("temp_bytes", 4096),
        ("server_fds", 1),
        ("cuda_streams_alive", 1),
    ],
)
def test_the_settle_quantum_follows_the_metric(metric, expected):
    assert settle_quantum(metric) == expected


def test_device_metrics_decide_only_where_a_gpu_is_used():
    read = ["host_private_bytes", "nvml_device_used_bytes", "nvml_process_used_bytes"]
    assert primary_metrics(True, read) == ("nvml_process_used_bytes",)
    assert primary_metrics(True, read[:2]) == ("nvml_device_used_bytes",)
    assert primary_metrics(False, read) == ("host_private_bytes",)
    assert primary_metrics(True, read[:1]) == ()


def test_with_several_gpus_there_is_one_deciding_metric_of_each():
    read = ["nvml_device_used_bytes@GPU-b", "nvml_device_used_bytes@GPU-a", "host_private_bytes"]
    assert primary_metrics(True, read) == ("nvml_device_used_bytes@GPU-a", "nvml_device_used_bytes@GPU-b")
