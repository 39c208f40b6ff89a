import json
from dataclasses import replace

import pytest

from tests.builders import (
    CONTROL,
    TREATMENT,
    failed_load,
    make_cycle,
    make_position,
    make_step,
    no_answer,
    refused,
    run,
)
from tritonchaos.errors import ExitCode
from tritonchaos.observations import (
    Arm,
    MetricLost,
    Note,
    PhaseFacts,
    PhaseSkipped,
    PhaseStopped,
    Reading,
    SettleWindow,
    TrafficSummary,
)
from tritonchaos.summary import finish, printable, without_folders
from tritonchaos.units import MIB
from tritonchaos.verdict import Assessment, Finding, Status, Verdict

HOST = "host_private_bytes"
PHASES = (
    PhaseFacts("baseline", CONTROL, "cycles", 3),
    PhaseFacts("wrong", TREATMENT, "cycles", 200),
    PhaseFacts("after_exit", None, "steps", 1),
)
LEAK = Finding(
    "leak",
    "memory_growth",
    "host_private_bytes grows by 1 MiB per cycle",
    metric=HOST,
    step="load ident",
    bytes_per_cycle=MIB + 1 / 3,
    interval_bytes_per_cycle=(MIB - 1.0, float("inf")),
    position=make_position("wrong", cycle=3),
    evidence=("POST /v2/repository/models/ident/load answered 400", "I1 /opt/triton/backends/x/libtriton_x.so: loaded"),
    known="https://github.com/triton-inference-server/server/issues/8969",
)
FAILED = Assessment("memory_growth", Status.FAIL, "36 steps", HOST, "LEAK", "steps", 36, None, (LEAK,))
PASSED = Assessment("server_alive", Status.PASS, "one start")
STABLE = Assessment("memory_growth", Status.PASS, "flat", HOST, "STABLE", "bound", 60, 4096.0004999)
UNKNOWN = Assessment("memory_growth", Status.UNKNOWN, "48 more cycles are needed", HOST, "INCONCLUSIVE")


def verdict(*assessments) -> Verdict:
    status = max((a.status for a in assessments), key=["pass", "unknown", "fail"].index)
    return Verdict(status, assessments, tuple(f for a in assessments for f in a.findings))


def failed_load_run():
    return (
        run()
        .start({HOST: 100 * MIB})
        .phase("baseline", CONTROL, HOST, [101 * MIB] * 2)
        .phase("wrong", TREATMENT, HOST, [102 * MIB, 103 * MIB], **failed_load())
    )


def document(builder=None, *assessments, **facts):
    history = (builder or failed_load_run()).history(**{"phases": PHASES, **facts})
    return finish(history, verdict(*(assessments or (PASSED,))), ExitCode.PASS).results


MEMBERS = """
schema run_id tritonchaos_version scenario seed verdict exit_code interrupted target target_skipped variants
server_starts readings phases assessments findings notes
"""
OF_ASSESSMENT = "checker metric status verdict rule cycles_used excluded_bytes_per_cycle reason per plain_words"
OF_FINDING = """
id kind checker title metric bytes_per_cycle interval_bytes_per_cycle position evidence known undocumented counts
per footprint_bytes footprints ladder
"""


def test_the_document_has_the_members_of_the_schema_in_their_order():
    results = document(None, FAILED)
    assert list(results) == MEMBERS.split()
    assert list(results["assessments"][0]) == OF_ASSESSMENT.split()
    assert list(results["findings"][0]) == OF_FINDING.split()
    assert results["schema"] == "tritonchaos.results/1"
    assert results["server_starts"] == 1


def test_the_document_is_the_same_each_time():
    assert json.dumps(document(None, FAILED)) == json.dumps(document(None, FAILED))


def test_each_phase_with_cycles_has_one_value_per_cycle():
    assert document()["phases"] == [
        {"phase": "baseline", "arm": "control", "cycles": 2, "post_unload": {HOST: [101 * MIB, 101 * MIB]}},
        {"phase": "wrong", "arm": "treatment", "cycles": 2, "post_unload": {HOST: [102 * MIB, 103 * MIB]}},
    ]


def test_coin_ordered_arms_have_an_entry_each():
    mixed = run().start()
    for number, arm in enumerate((TREATMENT, CONTROL, CONTROL, TREATMENT)):
        mixed.add(*make_cycle({HOST: number}, phase="mixed", arm=arm, cycle=number))
    phases = document(mixed, phases=(PhaseFacts("mixed", None, "cycles", 2),))["phases"]
    assert [(entry["arm"], entry["post_unload"][HOST]) for entry in phases] == [
        ("control", [1, 2]),
        ("treatment", [0, 3]),
    ]


def test_a_metric_that_was_not_read_is_null_and_warm_up_is_left_out():
    builder = run().start()
    builder.add(*make_cycle({HOST: 7}, phase="baseline", arm=CONTROL, cycle=0, is_warm_up=True))
    builder.add(*make_cycle({HOST: 8, "server_fds": 9}, phase="baseline", arm=CONTROL, cycle=1))
    builder.add(*make_cycle({"server_fds": 9}, phase="baseline", arm=CONTROL, cycle=2))
    results = document(builder, phases=PHASES[:1])
    assert results["phases"][0]["cycles"] == 2
    assert results["phases"][0]["post_unload"] == {HOST: [8, None], "server_fds": [9, 9]}
    assert "phase baseline, control arm: 1 warm-up cycles are not judged" in results["notes"]


def test_readings_of_every_cycle_are_no_named_readings():
    builder = run().add(Reading(0, "idle", None, {"b": 2, "a": 1}), Reading(1, "loaded", None, {"a": 5}))
    builder.add(Reading(2, "before_next", None, {"a": 5}), Reading(3, "after_exit", None, {"a": 0}))
    assert document(builder)["readings"] == [
        {"name": "idle", "metric": "a", "bytes": 1},
        {"name": "idle", "metric": "b", "bytes": 2},
        {"name": "after_exit", "metric": "a", "bytes": 0},
    ]


def test_numbers_are_rounded_and_what_json_lacks_is_null():
    results = document(None, FAILED, STABLE)
    assert results["findings"][0]["bytes_per_cycle"] == 1048576.333
    assert results["findings"][0]["interval_bytes_per_cycle"] == [1048575.0, None]
    assert results["assessments"][1]["excluded_bytes_per_cycle"] == 4096.0


def test_a_position_is_a_mapping_and_a_text():
    assert document(None, FAILED)["findings"][0]["position"] == {
        "arm": "treatment",
        "phase": "wrong",
        "cycle": 3,
        "track": "main",
        "step_number": 0,
        "text": "wrong, cycle 3, step 0",
    }


def test_no_absolute_path_leaves_the_machine():
    builder = failed_load_run().add(Note(1, "the plan in '/home/me/models/ident/1/model.plan' is of another version"))
    target = {"target": "local", "server_path": "/opt/tritonserver/bin/tritonserver"}
    results = document(builder, FAILED, target=target, unavailable={"shm_bytes": "no /run/private/shm"})
    assert results["target"] == {"server_path": "tritonserver", "target": "local"}
    assert results["findings"][0]["evidence"] == [
        "POST /v2/repository/models/ident/load answered 400",
        "I1 libtriton_x.so: loaded",
    ]
    assert results["findings"][0]["known"] == LEAK.known
    assert "/home" not in json.dumps(results)
    assert "/run" not in json.dumps(results)


@pytest.mark.parametrize(
    "text",
    [
        "GET /v2/health/live",
        "http://127.0.0.1:8000/v2/models/ident",
        "/dev/shm/tc_0a1b_region",
        "/proc/17/smaps_rollup",
        "nvcr.io/nvidia/tritonserver:26.07-py3",
        "1/2 of the cycles and/or none",
    ],
)
def test_what_is_no_folder_of_this_machine_stays(text):
    assert without_folders(text) == text


def test_what_a_terminal_would_obey_is_replaced():
    assert printable("\x1b[31mred\x07\n\tübrig") == "\ufffd[31mred\ufffd\n\tübrig"


# --- notes ---------------------------------------------------------------------------------------


def test_a_stand_in_never_reads_as_tensorrt():
    notes = document(variants={"ident": "planted", "other": "python", "real": "tensorrt"})["notes"]
    assert notes == [
        "model ident was served by variant planted (a stand-in, not TensorRT)",
        "model other was served by variant python (a stand-in, not TensorRT)",
        "model real was served by variant tensorrt",
    ]


def test_what_was_skipped_lost_or_stopped_is_noted():
    builder = failed_load_run().add(
        MetricLost(90_000_000_000, "nvml_device_used_bytes", "driver gone"),
        PhaseSkipped(1, "reclaim", "no leak was seen"),
        PhaseStopped(2, "wrong", 2, "verdict"),
        Note(3, "GPU is used by X"),
        Note(4, "GPU is used by X"),
    )
    unavailable = {"shm_bytes": "no shm", "b": "no driver", "a": "no driver"}
    notes = document(builder, target_skipped=(("docker", "not here"),), unavailable=unavailable)["notes"]
    assert notes[1:] == [
        "skipped docker: not here",
        "not read: shm_bytes (no shm)",
        "not read: a, b (no driver)",
        "metric nvml_device_used_bytes was lost at 1 min 30 s: driver gone",
        "phase reclaim was not run: no leak was seen",
        "phase wrong ended after 2 cycles: verdict",
        "GPU is used by X (2 times)",
    ]


def test_of_a_process_that_shares_the_gpu_the_last_note_is_kept():
    seven, eight = ("GPU-1 is not idle: pid 7 (a) uses it too, ", "GPU-1 is not idle: pid 8 (b) uses it too, 1 MiB")
    builder = failed_load_run().add(Note(1, f"{seven}1 MiB"), Note(2, eight), Note(3, f"{seven}2 MiB"))
    found = [note for note in document(builder)["notes"] if "not idle" in note]
    assert found == [eight, f"{seven}2 MiB"]


def test_windows_that_were_too_short_are_counted():
    builder = run().start()
    for cycle, later in enumerate((100 * MIB, 99 * MIB, 100 * MIB - 4096)):
        builder.add(*make_cycle({HOST: 100 * MIB}, cycle=cycle), Reading(5, "before_next", None, {HOST: later}))
    notes = document(builder)["notes"]
    assert notes[1:] == [
        f"the settle window was too short for {HOST} in 1 cycles: it fell further before the next cycle"
    ]


def test_readings_that_did_not_settle_are_counted():
    events = [
        replace(event, settled=frozenset()) if isinstance(event, SettleWindow) else event
        for event in make_cycle({HOST: [1, 2, 3]})
    ]
    assert document(run().start().add(*events, *make_cycle({HOST: 1}, cycle=1)))["notes"][1:] == [
        f"{HOST} had not settled at the end of 1 of 2 settle windows"
    ]


# --- headline ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assessments", "word", "headline"),
    [
        ((PASSED,), "pass", "PASS: 1 check passed over 4 cycles"),
        (
            (PASSED, STABLE),
            "pass",
            "PASS: 2 checks passed over 4 cycles; host_private_bytes grows by less than 4 KiB per cycle",
        ),
        ((PASSED, FAILED), "findings", "FINDINGS: 1 leak (1 known), 4 cycles"),
        (
            (PASSED, UNKNOWN),
            "inconclusive",
            "INCONCLUSIVE: memory_growth of host_private_bytes: 48 more cycles are needed",
        ),
    ],
)
def test_the_headline_says_the_verdict_and_what_it_rests_on(assessments, word, headline):
    finished = finish(failed_load_run().history(), verdict(*assessments), 0)
    assert finished.results["verdict"] == word
    assert finished.headline == headline


def test_a_known_finding_is_a_finding_whatever_the_exit_code():
    finished = finish(failed_load_run().history(), verdict(FAILED), ExitCode.PASS)
    assert (finished.results["verdict"], finished.results["exit_code"]) == ("findings", 0)


def test_an_interrupted_run_says_so():
    history = replace(failed_load_run().history(), interrupted=True)
    finished = finish(history, verdict(PASSED), ExitCode.INTERRUPTED)
    assert finished.headline.startswith("PASS (interrupted): ")
    assert finished.results["interrupted"] is True
    assert finished.results["exit_code"] == 130


# --- the table -----------------------------------------------------------------------------------


def test_a_row_shows_replies_and_the_rise_over_the_baseline():
    finished = finish(failed_load_run().history(), verdict(PASSED), 0)
    row = finished.rows[2]
    assert (row.phase, row.arm, row.cycle) == ("wrong", Arm.TREATMENT, 0)
    assert row.load_reply.startswith("400: unexpected datatype TYPE_FP32")
    assert row.unload_reply == "200"
    assert row.used == {HOST: 102 * MIB}
    assert row.delta == {HOST: 2 * MIB}
    assert finished.metrics == (HOST,)


def test_a_restart_has_its_own_baseline():
    builder = run().start({HOST: 100}).phase("a", CONTROL, HOST, [150])
    builder.start({HOST: 120}, start=2).phase("b", CONTROL, HOST, [150], start=2)
    finished = finish(builder.history(), verdict(PASSED), 0)
    assert [row.delta for row in finished.rows] == [{HOST: 50}, {HOST: 30}]


def test_a_load_without_answer_and_one_that_should_have_failed_are_not_counted_as_matching():
    builder = run().start().add(*make_cycle({HOST: 1}, reply=no_answer()), *make_cycle({HOST: 1}, cycle=1))
    builder.add(*make_cycle({HOST: 1}, cycle=2, reply=refused("another text"), expect=failed_load()["expect"]))
    finished = finish(builder.history(), verdict(PASSED), 0)
    assert finished.rows[0].load_reply == "no answer (deadline)"
    (count,) = finished.counts
    assert (count.cycles, count.matched) == (3, 1)
    assert count.first_mismatch == "load ident: no answer (deadline) after 30.0 s"


def test_the_metrics_shown_are_those_that_decide_and_those_with_findings():
    builder = run().start().add(*make_cycle({HOST: 1, "server_fds": 9, "nvml_device_used_bytes": 5}))
    leftover = Finding("leftover", "leftovers", "fds", metric="server_fds")
    failed = Assessment("leftovers", Status.FAIL, "grew", findings=(leftover,))
    assert finish(builder.history(), verdict(failed), 1).metrics == (HOST, "server_fds")
    assert finish(builder.history(uses_gpu=True), verdict(PASSED), 1).metrics == ("nvml_device_used_bytes",)
    assert finish(builder.history(metrics=("server_fds",)), verdict(PASSED), 1).metrics == ("server_fds",)


def test_a_long_phase_is_shortened_to_its_ends():
    series = [5, *range(100, 120), 7]
    finished = finish(run().start().phase("p", TREATMENT, HOST, series).history(), verdict(PASSED), 0)
    (block,) = finished.blocks
    assert [row.cycle for row in block.first] == list(range(10))
    assert [row.cycle for row in block.last] == list(range(12, 22))
    assert block.left_out.rows == 2
    assert (block.left_out.least, block.left_out.most) == ({HOST: 109}, {HOST: 110})
    assert len(finished.rows) == 22


def test_a_short_phase_is_shown_whole():
    finished = finish(run().start().phase("p", TREATMENT, HOST, range(21)).history(), verdict(PASSED), 0)
    (block,) = finished.blocks
    assert (len(block.first), block.left_out, block.last) == (21, None, ())


def test_what_ran_beside_the_main_track_is_noted():
    one = make_step("infer", "busy", position=make_position("wrong", track="traffic"), observed={"late_ns": 20_000_000})
    spec = one.spec
    events = (
        one,
        TrafficSummary(9, 1, "wrong", "traffic", spec, 1000, 1000, 3, (1_000_000, 2_000_000, 7_000_000, 9_000_000)),
        TrafficSummary(9, 1, "wrong", "traffic", spec, 1000, 1000, 0, (1_000_000, 2_000_000, 4_000_000, 5_000_000)),
    )
    finished = finish(run().start().add(*events).stop().history(phases=PHASES), Verdict(Status.PASS, (PASSED,), ()), 0)
    told = "phase wrong, track traffic: infer busy 2001 times, 4 late, 99 % within 7 ms in every second"
    assert told in finished.results["notes"]
