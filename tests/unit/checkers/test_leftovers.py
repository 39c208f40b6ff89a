"""leftovers: clean passes, what piles up or stays behind fails, too short is unknown."""

from __future__ import annotations

import random

import pytest

from tests.builders import CONTROL, TREATMENT, failed_load, failed_load_run, make_cycle, ok, run
from tritonchaos.checkers.leftovers import Leftovers
from tritonchaos.observations import Left, MetricLost, ServerExited
from tritonchaos.units import MIB
from tritonchaos.verdict import Status


def check(history):
    return Leftovers().check(history)


def judged(history, metric):
    [found] = [a for a in check(history) if a.metric == metric]
    return found


def climb(start, cycles, each):
    return [start + each * (cycle + 1) for cycle in range(cycles)]


# --- clean, seeded defect, too short -------------------------------------------------------------


def test_counters_that_do_not_move_pass_even_in_a_short_run():
    found = judged(failed_load_run("server_fds", [20, 21, 21], [21] * 6), "server_fds")
    assert (found.status, found.verdict, found.rule) == (Status.PASS, "", "exact counter")
    assert found.reason == "did not move in 6 treatment cycles"


@pytest.mark.parametrize(
    ("metric", "each"),
    [
        ("temp_bytes", MIB),
        ("shm_bytes", MIB),
        ("shm_other_bytes", MIB),
        ("server_fds", 1),
        ("server_threads", 2),
        ("server_children", 1),
        ("server_zombies", 1),
    ],
)
@pytest.mark.parametrize("control_cycles", [4, 8])
def test_what_grows_by_a_constant_per_failed_load_is_found_in_a_short_run(metric, each, control_cycles):
    found = judged(failed_load_run(metric, [100 * each] * control_cycles, climb(100 * each, 12, each)), metric)
    assert found.status is Status.FAIL
    [leftover] = found.findings
    assert (leftover.kind, leftover.counts) == ("leftover", True)
    assert leftover.bytes_per_cycle == pytest.approx(each, rel=0.01)
    assert leftover.position.phase == "wrong_output_datatype"


def test_growth_is_found_without_a_control_arm_too():
    history = run().start().phase("good_load", TREATMENT, "temp_bytes", climb(0, 30, MIB)).history()
    assert judged(history, "temp_bytes").status is Status.FAIL


def test_two_treatment_cycles_are_too_short():
    found = judged(failed_load_run("server_fds", [20] * 4, [20, 20]), "server_fds")
    assert (found.status, found.counts) == (Status.UNKNOWN, True)
    assert found.reason == "2 treatment cycles did what they should, 3 are needed"


def test_growth_that_is_too_short_for_a_verdict_is_unknown_and_counts():
    found = judged(failed_load_run("server_fds", [20] * 3, climb(20, 6, 1)), "server_fds")
    assert (found.status, found.counts) == (Status.UNKNOWN, True)
    assert "went from 21 to 26 in 6 treatment cycles" in found.reason


def test_without_cycles_or_counters_nothing_is_known():
    assert check(run().start().history())[0].status is Status.UNKNOWN
    assert check(failed_load_run("host_private_bytes", [0] * 4, climb(0, 30, MIB)))[-1].reason == (
        "none of the counters could be read"
    )


def test_a_long_flat_run_passes_by_the_growth_test():
    found = judged(failed_load_run("server_fds", [20] * 4, [20] * 60), "server_fds")
    assert (found.status, found.verdict) == (Status.PASS, "STABLE")


# --- jitter and single steps ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_jitter_never_fails_and_never_leaves_the_run_unknown(seed):
    noise = random.Random(seed)
    control = [30 + noise.randrange(-2, 3) for _ in range(8)]
    treatment = [30 + noise.randrange(-2, 3) for _ in range(20)]
    found = judged(failed_load_run("server_threads", control, treatment), "server_threads")
    assert found.status is Status.PASS or not found.counts


def test_jitter_that_ends_no_higher_passes():
    found = judged(failed_load_run("server_threads", [30, 31, 30], [31, 29, 31, 30, 29, 30, 31, 29]), "server_threads")
    assert found.status is Status.PASS
    assert "between 29 and 31 without a trend" in found.reason


@pytest.mark.parametrize("seed", range(10))
def test_a_leak_below_jitter_is_never_passed(seed):
    noise = random.Random(seed)
    treatment = [30 + cycle + noise.randrange(-1, 2) for cycle in range(1, 21)]
    found = judged(failed_load_run("server_threads", [30] * 6, treatment), "server_threads")
    assert found.status is not Status.PASS


def test_a_single_step_that_stays_passes_and_says_for_how_long():
    found = judged(failed_load_run("server_threads", [30] * 3, [30, 30] + [31] * 10), "server_threads")
    assert found.status is Status.PASS
    assert found.reason == "moved once and then stayed for 10 of 12 treatment cycles"


@pytest.mark.parametrize("treatment", [[30] * 8 + [31] * 4, [30, 31, 31, 32] + [33] * 6])
def test_a_late_step_or_several_steps_stay_unknown(treatment):
    found = judged(failed_load_run("server_fds", [30] * 3, treatment), "server_fds")
    assert (found.status, found.counts) == (Status.UNKNOWN, True)


# --- what counts ---------------------------------------------------------------------------------


def test_cycles_that_did_not_do_what_they_should_are_not_judged():
    builder = run().start().phase("baseline", CONTROL, "server_fds", [20] * 4)
    builder.phase("bad", TREATMENT, "server_fds", climb(20, 12, 1), **failed_load(reply=ok()))
    assert judged(builder.history(), "server_fds").status is Status.UNKNOWN


def test_a_counter_that_was_lost_is_unknown():
    builder = run().start().phase("p", TREATMENT, "server_fds", [20] * 6)
    found = judged(builder.add(MetricLost(9, "server_fds", "gone")).history(), "server_fds")
    assert (found.status, found.counts) == (Status.UNKNOWN, True)


def test_shared_memory_under_other_names_may_be_somebody_elses_and_says_so():
    found = judged(failed_load_run("shm_other_bytes", [0] * 4, climb(0, 12, MIB)), "shm_other_bytes")
    assert any("may be another program's" in line for line in found.findings[0].evidence)


def test_each_counter_is_judged_by_itself():
    builder = run().start()
    for cycle in range(40):
        builder.add(*make_cycle({"server_fds": 20, "temp_bytes": cycle * MIB}, cycle=cycle))
    found = {a.metric: a.status for a in check(builder.history())}
    assert found == {"server_fds": Status.PASS, "temp_bytes": Status.FAIL}


# --- after the end -------------------------------------------------------------------------------


def after_end(*left, exited=False, **stop):
    builder = run().start().phase("p", TREATMENT, "server_fds", [20] * 6)
    if exited:
        builder.add(ServerExited(8, None, -11))
    else:
        builder.stop(**stop)
    return check(builder.add(*left).history())


def test_nothing_stayed_behind():
    assert [a.status for a in after_end()] == [Status.PASS, Status.PASS]


def test_of_a_server_that_runs_on_nothing_is_said_about_its_end():
    assert [a.metric for a in after_end(signal="", exit_code=None)] == ["server_fds"]


def test_what_stayed_behind_is_one_finding_per_kind():
    left = [Left(9, "shm", f"tc_1_{n}", 4096) for n in range(10)] + [
        Left(9, "process", "triton_python_backend_stub", 0)
    ]
    _, shm, process = after_end(*left)
    assert (shm.status, process.status) == (Status.FAIL, Status.FAIL)
    assert shm.findings[0].title == "10 shared memory regions stayed behind after the server's end (40 KiB)"
    assert shm.findings[0].evidence[-1] == "and 2 more"
    assert process.findings[0].evidence == ("triton_python_backend_stub",)


def test_what_may_be_somebody_elses_does_not_count():
    _, found = after_end(Left(9, "shm", "other", 4096, certain=False))
    assert (found.status, found.counts, found.findings[0].counts) == (Status.FAIL, False, False)


@pytest.mark.parametrize("end", [{"forced": True}, {"exited": True}])
def test_a_server_that_was_killed_could_not_clean_up(end):
    _, found = after_end(Left(9, "shm", "tc_1_a", 4096), **end)
    assert not found.counts
    assert "could not clean up" in found.reason


def test_what_was_seen_to_grow_is_not_told_twice():
    history = failed_load_run("temp_bytes", [0] * 4, climb(0, 12, MIB))
    events = (*history.events, Left(9, "temp", "a.bin", MIB))
    found = check(type(history)(history.facts, events))
    assert [a.metric for a in found] == ["temp_bytes"]
