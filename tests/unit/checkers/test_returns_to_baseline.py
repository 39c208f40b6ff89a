"""returns_to_baseline: clean passes, what stays above the limit fails, no baseline is unknown."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import CONTROL, TREATMENT, failed_load, failed_load_run, make_cycle, ok, run
from tritonchaos.checkers.returns_to_baseline import ReturnsToBaseline
from tritonchaos.observations import MetricLost
from tritonchaos.units import MIB
from tritonchaos.verdict import Status

HOST, DEVICE = "host_private_bytes", "nvml_device_used_bytes"
READY = {HOST: 50 * MIB}


def only(history, **fields):
    [assessment] = ReturnsToBaseline(**fields).check(history)
    return assessment


def test_a_run_that_comes_back_passes_whatever_its_first_cycles_set_up():
    found = only(failed_load_run(HOST, [900 * MIB] * 4, [901 * MIB] * 6, ready=READY))
    assert found.status is Status.PASS
    assert "850 MiB since the first cycles, 1 MiB later (limit 64 MiB)" in found.reason


def test_what_stays_above_the_limit_fails():
    found = only(failed_load_run(HOST, [60 * MIB] * 4, [60 * MIB, 160 * MIB, 160 * MIB], ready=READY))
    [finding] = found.findings
    assert (found.status, finding.kind, finding.metric) == (Status.FAIL, "retention", HOST)
    assert finding.title == "host_private_bytes stays 100 MiB above its level after the first cycles"
    assert (finding.position.phase, finding.position.cycle) == ("wrong_output_datatype", 1)


def test_what_came_and_went_passes():
    assert only(failed_load_run(HOST, [60 * MIB] * 4, [260 * MIB, 60 * MIB], ready=READY)).status is Status.PASS


def test_without_a_baseline_nothing_is_known():
    assert only(failed_load_run(HOST, [60 * MIB] * 4, [60 * MIB] * 4)).status is Status.UNKNOWN


def test_a_metric_that_was_lost_never_passes():
    history = failed_load_run(HOST, [60 * MIB] * 4, [60 * MIB] * 6, ready=READY)
    found = only(replace(history, events=(*history.events, MetricLost(9, HOST, "permission denied"))))
    assert found.status is Status.UNKNOWN
    assert "permission denied" in found.reason


def test_without_a_matching_cycle_nothing_is_known():
    builder = run().start(READY).phase("bad", TREATMENT, HOST, [60 * MIB] * 9, **failed_load(reply=ok()))
    assert only(builder.history()).reason == "no cycle did what it should"


def test_few_cycles_pass_only_below_the_limit():
    assert only(failed_load_run(HOST, [60 * MIB], [60 * MIB], ready=READY)).status is Status.PASS
    assert only(failed_load_run(HOST, [60 * MIB], [900 * MIB], ready=READY)).status is Status.UNKNOWN


def test_host_memory_does_not_answer_for_a_gpu_variant():
    found = only(failed_load_run(HOST, [60 * MIB] * 4, [60 * MIB] * 6, ready=READY, uses_gpu=True))
    assert (found.status, found.reason) == (Status.UNKNOWN, "device memory was not read")


def test_the_limit_is_the_scenarios():
    history = failed_load_run(HOST, [60 * MIB] * 4, [63 * MIB] * 6, ready=READY)
    assert only(history).status is Status.PASS
    assert only(history, limit=2 * MIB).status is Status.FAIL


def loaded_run(post, **facts):
    builder = run().start({DEVICE: 0})
    for cycle, level in enumerate(post):
        builder.add(*make_cycle({DEVICE: level}, arm=CONTROL, cycle=cycle, loaded={DEVICE: level + 100 * MIB}))
    return builder.history(uses_gpu=True, **facts)


def test_the_share_of_the_footprint_is_printed_and_may_be_the_limit():
    history = loaded_run([0, 0, 0, 20 * MIB])
    assert "(20.0% of a loaded model's 100 MiB)" in only(history).reason
    assert only(history, share=0.1).status is Status.FAIL
    assert only(history, share=0.3).status is Status.PASS


def test_a_share_needs_a_footprint():
    history = failed_load_run(HOST, [60 * MIB] * 4, [60 * MIB] * 6, ready=READY)
    assert only(history, share=0.1).status is Status.UNKNOWN


def test_the_baseline_of_the_same_start_counts():
    builder = run().start(READY).phase("p", TREATMENT, HOST, [60 * MIB] * 4)
    builder.start({HOST: 300 * MIB}, start=2).phase("q", TREATMENT, HOST, [301 * MIB] * 5, start=2)
    assert only(builder.history()).reason.startswith("1 MiB above the baseline after 5 cycles")
