"""memory_growth: clean passes, a leak fails, too short or not matching is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import CONTROL, TREATMENT, failed_load, failed_load_run, make_cycle, make_step, ok, refused, run
from tritonchaos.checkers.memory_growth import MemoryGrowth
from tritonchaos.observations import MetricLost, StepFinished
from tritonchaos.plugins import Advice
from tritonchaos.post_unload import cycle_readings
from tritonchaos.units import MIB
from tritonchaos.verdict import Status

HOST, DEVICE, PROCESS = "host_private_bytes", "nvml_device_used_bytes", "nvml_process_used_bytes"
FLAT = [100 * MIB] * 6


def climb(cycles, each=MIB, start=100 * MIB):
    return [start + each * (cycle + 1) for cycle in range(cycles)]


def check(history, **fields):
    return MemoryGrowth(**fields).check(history)


def only(history, **fields):
    [assessment] = check(history, **fields)
    return assessment


def two_metrics(device, host, cycles=60, **facts):
    builder = run().start()
    for cycle in range(6 + cycles):
        arm = CONTROL if cycle < 6 else TREATMENT
        values = {DEVICE: device(cycle - 5), HOST: host(cycle - 5)}
        more = {} if arm is CONTROL else failed_load()
        builder.add(*make_cycle(values, phase=arm.value, arm=arm, cycle=cycle, **more))
    return builder.history(**facts)


# --- clean, leaking, too short -------------------------------------------------------------------


def test_a_flat_run_passes_and_says_what_it_would_have_found():
    found = only(failed_load_run(HOST, FLAT, [100 * MIB] * 60))
    assert (found.status, found.verdict, found.rule) == (Status.PASS, "STABLE", "flat")
    assert found.excluded_bytes_per_cycle == pytest.approx(1640, rel=0.4)
    assert "would have been found" in found.reason


def test_single_pages_now_and_then_pass_and_are_named():
    touched = [100 * MIB + 8192 * (cycle // 12) for cycle in range(80)]
    found = only(failed_load_run(HOST, FLAT, touched))
    assert (found.status, found.rule) == (Status.PASS, "slow")
    assert found.reason.startswith(
        "no growth but single pages now and then, as of an allocator that warms up; a leak of"
    )
    assert found.excluded_bytes_per_cycle < 4096


def test_a_small_host_leak_without_a_control_arm_is_unknown_and_asks_for_one():
    found = only(failed_load_run(HOST, [], climb(120, each=16384)))
    assert (found.status, found.findings) == (Status.UNKNOWN, ())
    assert "a control arm that goes flat before it" in found.reason


def test_a_mib_per_failed_load_is_a_leak():
    found = only(failed_load_run(HOST, FLAT, climb(20)))
    assert (found.status, found.verdict) == (Status.FAIL, "LEAK")
    [leak] = found.findings
    assert leak.title == "host_private_bytes grows by 1 MiB per cycle in wrong_output_datatype (control: 0 B)"
    assert (leak.kind, leak.metric, leak.counts) == ("leak", HOST, True)
    assert leak.bytes_per_cycle == pytest.approx(MIB, rel=0.02)
    assert leak.position.phase == "wrong_output_datatype"


def test_the_readings_before_during_and_after_the_treatment_are_evidence():
    builder = run().start().phase("baseline", CONTROL, HOST, FLAT)
    builder.phase("bad", TREATMENT, HOST, climb(20), **failed_load()).phase("restored", CONTROL, HOST, [120 * MIB])
    [leak] = only(builder.history()).findings
    assert leak.evidence == (
        "rule steady, after 13 treatment cycles",
        "post-unload readings of 6 control cycles: 100 MiB to 100 MiB",
        "post-unload readings of 20 treatment cycles: 101 MiB to 120 MiB",
        "post-unload readings of 1 control cycles: 120 MiB to 120 MiB",
    )


def test_ten_cycles_are_too_short():
    found = only(failed_load_run(HOST, FLAT[:3], FLAT))
    assert (found.status, found.verdict, found.counts) == (Status.UNKNOWN, "INCONCLUSIVE", True)
    assert found.reason == "44 flat treatment cycles are needed, 3 of the 6 run count: 41 more"


def test_without_a_finished_cycle_nothing_is_known():
    assert only(run().start().stop().history()).status is Status.UNKNOWN


def test_a_leaking_control_arm_is_a_leak_of_its_own():
    found = only(failed_load_run(HOST, climb(40), [140 * MIB] * 10))
    assert found.status is Status.FAIL
    assert "grows by 1 MiB per cycle in baseline, a control arm" in found.findings[0].title


def test_one_arm_alone_is_on_trial():
    builder = run().start().phase("good_load", TREATMENT, HOST, climb(40))
    assert only(builder.history()).status is Status.FAIL
    assert "no control arm" in only(builder.history()).findings[0].title


# --- which cycles count --------------------------------------------------------------------------


@pytest.mark.parametrize("reply", [ok(), refused("something else")])
def test_a_treatment_load_that_did_not_fail_as_it_should_is_left_out_and_named(reply):
    history = failed_load_run(HOST, FLAT, [100 * MIB] * 60)
    wrong = make_cycle({HOST: 100 * MIB}, phase="wrong_output_datatype", cycle=60, **failed_load(reply=reply))
    found = only(replace(history, events=(*history.events, *wrong)))
    assert (found.status, found.verdict, found.counts) == (Status.UNKNOWN, "STABLE", True)
    assert "1 treatment cycles are left out, the first: wrong_output_datatype cycle 60, load ident" in found.reason


def test_a_control_load_that_failed_is_left_out_and_named():
    history = failed_load_run(HOST, FLAT, [100 * MIB] * 60)
    wrong = make_cycle({HOST: 100 * MIB}, phase="restored", arm=CONTROL, reply=refused("no"))
    found = only(replace(history, events=(*history.events, *wrong)))
    assert found.status is Status.UNKNOWN
    assert "1 control cycles are left out" in found.reason


def test_a_run_without_one_matching_treatment_cycle_is_unknown():
    builder = run().start().phase("baseline", CONTROL, HOST, FLAT)
    builder.phase("bad", TREATMENT, HOST, [100 * MIB] * 100, **failed_load(reply=ok()))
    found = only(builder.history())
    assert found.status is Status.UNKNOWN
    assert "100 treatment cycles are left out" in found.reason


def test_warm_up_cycles_do_not_count():
    builder = run().start().phase("baseline", CONTROL, HOST, FLAT)
    builder.phase("bad", TREATMENT, HOST, [100 * MIB] * 60, is_warm_up=True, **failed_load())
    assert only(builder.history()).status is Status.UNKNOWN


def test_a_restart_in_the_middle_breaks_the_series():
    builder = run().start().phase("baseline", CONTROL, HOST, FLAT)
    builder.phase("bad", TREATMENT, HOST, [100 * MIB] * 30, **failed_load())
    builder.start(start=2).phase("bad", TREATMENT, HOST, [90 * MIB] * 30, start=2, **failed_load())
    assert only(builder.history()).status is Status.UNKNOWN


# --- which metrics decide ------------------------------------------------------------------------


def still(_):
    return 100 * MIB


def restless(cycle):
    """A step now and then: no verdict within 60 cycles."""
    return 100 * MIB + 2 * MIB * (cycle // 25)


def grows(cycle):
    return 100 * MIB + 2 * MIB * max(cycle, 0)


def test_host_memory_cannot_replace_device_memory_of_a_gpu_variant():
    history = failed_load_run(HOST, FLAT, [100 * MIB] * 60, uses_gpu=True, unavailable={DEVICE: "no driver"})
    first, host = check(history)
    assert (first.status, first.counts) == (Status.UNKNOWN, True)
    assert "no driver" in first.reason
    assert (host.metric, host.counts) == (HOST, False)


def test_device_memory_decides_for_a_gpu_variant_and_host_memory_may_stay_unknown():
    device, host = check(two_metrics(still, restless, uses_gpu=True))
    assert (device.metric, device.status, device.counts) == (DEVICE, Status.PASS, True)
    assert (host.metric, host.counts) == (HOST, False)


def test_a_device_leak_beside_that_of_the_servers_own_memory_is_not_laid_to_others():
    builder = run().start()
    for cycle in range(30):
        arm = CONTROL if cycle < 6 else TREATMENT
        level = grows(cycle - 5)
        more = {} if arm is CONTROL else failed_load()
        builder.add(*make_cycle({PROCESS: level, DEVICE: level}, phase=arm.value, arm=arm, cycle=cycle, **more))
    process, device = check(builder.history(uses_gpu=True))
    assert (process.metric, process.status) == (PROCESS, Status.FAIL)
    assert (device.metric, device.status, device.counts) == (DEVICE, Status.UNKNOWN, False)
    assert device.reason.endswith(f"as {PROCESS} shows too")


def test_a_host_leak_counts_also_for_a_gpu_variant():
    device, host = check(two_metrics(still, grows, uses_gpu=True))
    assert device.status is Status.PASS
    assert (host.status, host.counts, host.findings[0].counts) == (Status.FAIL, True, True)


def test_a_growing_device_without_a_gpu_variant_is_somebody_elses_and_does_not_count():
    host, device = check(two_metrics(grows, still))
    assert (host.metric, host.status) == (HOST, Status.PASS)
    assert (device.status, device.counts, device.findings) == (Status.UNKNOWN, False, ())
    assert "another process" in device.reason


def test_metrics_that_are_asked_for_all_decide():
    found = check(two_metrics(still, still), metrics=(DEVICE, HOST))
    assert [(a.metric, a.status, a.counts) for a in found] == [
        (DEVICE, Status.PASS, True),
        (HOST, Status.PASS, True),
    ]


def test_a_metric_that_was_lost_is_never_stable():
    history = failed_load_run(HOST, FLAT, [100 * MIB] * 60)
    lost = MetricLost(9, HOST, "permission denied")
    found = only(replace(history, events=(*history.events, lost)))
    assert found.status is Status.UNKNOWN
    assert "permission denied" in found.reason


def test_a_leak_behind_an_undocumented_step_says_so():
    history = failed_load_run(HOST, FLAT, climb(20))
    events = [
        replace(e, spec=replace(e.spec, undocumented=True)) if isinstance(e, StepFinished) else e
        for e in history.events
    ]
    assert only(replace(history, events=tuple(events))).findings[0].undocumented


# --- the stopping rule ---------------------------------------------------------------------------


def advice_at_each_cycle(history):
    watch = MemoryGrowth().watch(history.facts.uses_gpu, history.facts.metrics)
    return [watch.see(reading) for reading in cycle_readings(history)], watch


def test_the_run_may_stop_at_the_leak_and_judging_offline_gives_the_same_cycle():
    history = failed_load_run(HOST, FLAT, climb(40))
    advice, watch = advice_at_each_cycle(history)
    enough = advice.index(Advice.ENOUGH)
    assert watch.has_leak
    assert only(history).cycles_used == enough + 1 - len(FLAT)
    stopped = failed_load_run(HOST, FLAT, climb(enough + 1 - len(FLAT)))
    assert only(stopped).status is Status.FAIL


def test_the_run_may_stop_when_the_deciding_metric_is_stable():
    history = two_metrics(still, restless, uses_gpu=True)
    advice, watch = advice_at_each_cycle(history)
    assert advice[-1] is Advice.ENOUGH
    assert advice[:40] == [Advice.GO_ON] * 40
    assert not watch.has_leak


def test_one_more_control_cycle_after_stable_changes_nothing():
    builder = run().start().phase("baseline", CONTROL, HOST, FLAT)
    builder.phase("bad", TREATMENT, HOST, [100 * MIB] * 60, **failed_load())
    builder.phase("restored", CONTROL, HOST, [101 * MIB]).add(make_step("stop_server", None))
    assert only(builder.history()).status is Status.PASS


def test_per_process_memory_decides_before_device_memory():
    builder = run().start()
    for cycle in range(60):
        builder.add(*make_cycle({PROCESS: 0, DEVICE: grows(cycle)}, cycle=cycle))
    process, device = check(builder.history(uses_gpu=True))
    assert (process.metric, process.status) == (PROCESS, Status.PASS)
    assert (device.metric, device.counts) == (DEVICE, False)


# --- a run that goes on after a verdict ----------------------------------------------------------


def test_what_was_stable_may_still_become_a_leak():
    flat = [100 * MIB] * 60
    assert only(failed_load_run(HOST, FLAT, flat)).verdict == "STABLE"
    late = only(failed_load_run(HOST, FLAT, flat + climb(150)))
    assert (late.status, late.verdict) == (Status.FAIL, "LEAK")


def test_what_was_a_leak_stays_one():
    grown = climb(40)
    assert only(failed_load_run(HOST, FLAT, grown)).verdict == "LEAK"
    after = only(failed_load_run(HOST, FLAT, grown + [grown[-1]] * 100))
    assert (after.status, after.verdict) == (Status.FAIL, "LEAK")
    assert after.cycles_used <= 40


@pytest.mark.parametrize("series", [[100 * MIB] * 60, climb(40), [100 * MIB] * 5])
def test_every_verdict_has_a_paragraph_in_plain_words(series):
    found = only(failed_load_run(HOST, FLAT, series))
    assert found.plain_words.endswith(".")
    assert any(character.isdigit() for character in found.plain_words)
