"""What repro.py says of literal runs."""

from __future__ import annotations

from typing import Any

import pytest

from tritonchaos.reproducing.program.judging import comparable, judge
from tritonchaos.reproducing.program.sizes import CANNOT_TELL, NOT_REPRODUCED, REPRODUCED
from tritonchaos.units import KIB, MIB

METRIC = "host_private_bytes"
LEAK = {
    "by": "growth",
    "metric": METRIC,
    "arm": "treatment",
    "bytes_per_cycle": 1.0 * MIB,
    "factor": 2.0,
    "least_cycles": 6,
}
HANG = {"by": "no_answer", "step": "load m", "phase": "p", "deadline_s": 8.0}


def cycles(arm: str, levels: list[int], mismatch: str = "", metric: str = METRIC) -> list[dict[str, Any]]:
    made = {"phase": arm, "arm": arm, "is_warm_up": False, "start": 1, "unsettled": [], "mismatch": mismatch}
    return [made | {"cycle": cycle, "used": {metric: level}} for cycle, level in enumerate(levels)]


def run(cycles=(), steps=(), exit_code=None, cut_short="", **stop) -> dict[str, Any]:
    stopped = {"was_running": exit_code is None, "exit_code": 0, "forced": False, "expired": False, "took_s": 0.1}
    return {
        "cycles": list(cycles),
        "steps": list(steps),
        "exit_code": exit_code,
        "stop": stopped | {"left": {"shm": 0}} | stop,
        "log": "",
        "cut_short": cut_short,
    }


def step(label: str = "load m", phase: str = "p", **seen) -> dict[str, Any]:
    whole = {"step": label, "phase": phase, "cycle": 0, "status": 200, "took_s": 0.1, "deadline_s": 8.0}
    return whole | {"mismatch": "", "unmet": ""} | seen


def stairs(per_cycle: float, count: int = 12, start: int = 10 * MIB) -> list[int]:
    return [round(start + per_cycle * cycle) for cycle in range(count)]


FLAT = cycles("control", [10 * MIB] * 8)


@pytest.mark.parametrize(
    ("per_cycle", "says"),
    [
        (0, NOT_REPRODUCED),
        (4 * KIB, NOT_REPRODUCED),
        (1.0 * MIB, REPRODUCED),
        (0.6 * MIB, REPRODUCED),
        (1.9 * MIB, REPRODUCED),
        (0.3 * MIB, CANNOT_TELL),
        (3.0 * MIB, CANNOT_TELL),
    ],
)
def test_growth_is_compared_by_its_size(per_cycle: float, says: int) -> None:
    code, lines = judge(LEAK, run([*FLAT, *cycles("treatment", stairs(per_cycle))]))
    assert code == says, lines


def test_a_staircase_of_device_pages_is_the_growth_that_it_is_on_average() -> None:
    metric = "nvml_process_used_bytes"
    pages = [580 + 2 * round(0.815 * cycle) for cycle in range(30)]
    on_device = cycles("treatment", [page * MIB for page in pages], metric=metric)
    claim = LEAK | {"metric": metric, "bytes_per_cycle": 1.63 * MIB}
    assert judge(claim, run(on_device))[0] == REPRODUCED


def test_one_step_is_no_growth() -> None:
    levels = [10 * MIB] * 3 + [16 * MIB] * 9
    assert judge(LEAK, run([*FLAT, *cycles("treatment", levels)]))[0] != REPRODUCED


def test_growth_of_the_control_arm_is_taken_off() -> None:
    grows = cycles("control", stairs(1.0 * MIB, 8))
    treatment = cycles("treatment", stairs(1.0 * MIB, 12, 18 * MIB))
    assert judge(LEAK, run([*grows, *treatment]))[0] == NOT_REPRODUCED


def test_of_coin_ordered_pairs_each_arm_has_its_own_growth() -> None:
    level, mixed = 10 * MIB, []
    for _ in range(12):
        mixed += cycles("control", [level])
        level += MIB
        mixed += cycles("treatment", [level])
    assert judge(LEAK, run(mixed))[0] == REPRODUCED


def test_cycles_that_did_something_else_do_not_count() -> None:
    wrong = cycles("treatment", stairs(1.0 * MIB), "load m: answered 200, expected an error")
    code, lines = judge(LEAK, run([*FLAT, *wrong]))
    assert code == CANNOT_TELL
    assert "answered 200" in lines[0]


def test_device_bytes_stand_in_where_the_process_is_not_known() -> None:
    claim = LEAK | {"metric": "nvml_process_used_bytes@GPU-of-another-machine"}
    on_device = cycles("treatment", stairs(1.0 * MIB, 30), metric="nvml_device_used_bytes")
    assert judge(claim, run(on_device))[0] == REPRODUCED


def test_a_metric_that_cannot_be_read_is_unknown() -> None:
    claim = LEAK | {"metric": "nvml_device_used_bytes"}
    assert judge(claim, run(cycles("treatment", stairs(MIB))))[0] == CANNOT_TELL


def test_retention_is_compared_by_its_size() -> None:
    claim = LEAK | {"by": "retained", "retained_bytes": 64 * MIB, "first_cycles": 3, "least_cycles": 4}
    stays = cycles("treatment", [MIB, 2 * MIB, 3 * MIB, 3 * MIB, 67 * MIB])
    assert judge(claim, run(stays))[0] == REPRODUCED
    assert judge(claim, run(cycles("treatment", [MIB, 2 * MIB, 3 * MIB, 3 * MIB])))[0] == NOT_REPRODUCED


def test_a_hang_is_a_call_without_an_answer_or_a_model_that_is_stuck() -> None:
    hung = step(status=None, no_answer="deadline", took_s=8.0)
    stuck = step("load m", stuck="LOADING")
    assert judge(HANG, run(steps=[hung], cut_short="load m hung"))[0] == REPRODUCED
    assert judge(HANG, run(steps=[stuck]))[0] == REPRODUCED
    assert judge(HANG, run(steps=[step(), step()]))[0] == NOT_REPRODUCED


def test_no_hang_is_no_answer_where_the_server_died_or_was_never_asked() -> None:
    assert judge(HANG, run(steps=[step(status=None, no_answer="connection: reset")], exit_code=-11))[0] == CANNOT_TELL
    assert judge(HANG, run(steps=[step("load other")]))[0] == CANNOT_TELL
    assert judge(HANG, run(steps=[step()], cut_short="unload m hung"))[0] == CANNOT_TELL


@pytest.mark.parametrize(("found", "says"), [(-11, REPRODUCED), (-6, CANNOT_TELL), (None, NOT_REPRODUCED)])
def test_a_crash_is_the_same_by_its_signal(found: int | None, says: int) -> None:
    claim = {"by": "crash", "exit_code": -11, "survived": False, "step": "unload m", "any_step": True}
    assert judge(claim, run(steps=[step("unload m")], exit_code=found))[0] == says


def test_a_signal_that_the_server_prints_and_survives_is_a_crash_too() -> None:
    claim = {"by": "crash", "exit_code": -11, "survived": True, "step": "", "any_step": True}
    assert judge(claim, run() | {"log": "Signal (11) received.\n 0# x"})[0] == REPRODUCED
    assert judge(claim, run())[0] == NOT_REPRODUCED


def test_a_server_that_will_not_stop() -> None:
    claim = {"by": "will_not_stop"}
    assert judge(claim, run(forced=True))[0] == REPRODUCED
    assert judge(claim, run(expired=True))[0] == REPRODUCED
    assert judge(claim, run())[0] == NOT_REPRODUCED
    assert judge(claim, run(exit_code=-11))[0] == CANNOT_TELL


def test_what_stays_behind() -> None:
    claim = {"by": "left", "kind": "shm", "count": 2}
    assert judge(claim, run(left={"shm": 1}))[0] == REPRODUCED
    assert judge(claim, run(left={"shm": 0}))[0] == NOT_REPRODUCED


def test_an_expectation_must_be_missed_in_the_same_way() -> None:
    text = "answered 500 load failed for /srv/a/models/m/1 after 3 ms, expected 200"
    claim = {"by": "unmet", "step": "load m", "phase": "p", "kind": "status", "text": text}
    same = "answered 500 load failed for /tmp/repro-x/models/m/1 after 7 ms, expected 200"
    assert judge(claim, run(steps=[step(unmet="status", mismatch=same)]))[0] == REPRODUCED
    assert judge(claim, run(steps=[step(unmet="status", mismatch="answered 404, expected 200")]))[0] == CANNOT_TELL
    assert judge(claim, run(steps=[step()]))[0] == NOT_REPRODUCED
    assert judge(claim, run(steps=[step(phase="other")]))[0] == CANNOT_TELL


def test_a_contradiction_must_be_the_same_one() -> None:
    claim = {"by": "inconsistent", "step": "load m", "phase": "p", "said": [True, False, True, True]}

    def told(index: bool, ready: int, metadata: int) -> dict[str, Any]:
        return step(probe={"index": index, "states": [], "ready": ready, "metadata": metadata})

    assert judge(claim, run(steps=[told(False, 200, 200)]))[0] == REPRODUCED
    assert judge(claim, run(steps=[told(True, 200, 200)]))[0] == NOT_REPRODUCED
    assert judge(claim, run(steps=[told(True, 400, 200)]))[0] == CANNOT_TELL


TRACK = {
    "by": "unmet",
    "step": "infer m",
    "phase": "p",
    "track": "t",
    "kind": "status",
    "text": "answered 500, expected 200",
}


def test_a_track_is_judged_by_what_it_saw_itself() -> None:
    wrong = step("infer m", track="t", unmet="status", mismatch="answered 500, expected 200")
    on_main = step("infer m", unmet="status", mismatch="answered 500, expected 200")
    counts = {("p", "t", "infer m"): 40}
    assert judge(TRACK, run([on_main]) | {"beside": [wrong], "beside_counts": counts})[0] == REPRODUCED
    good = run(steps=[on_main]) | {"beside": [step("infer m", track="t")], "beside_counts": counts}
    code, lines = judge(TRACK, good)
    assert (code, lines[-1]) == (NOT_REPRODUCED, "40 times it did what it must")


def test_what_was_done_otherwise_forbids_not_reproduced_alone() -> None:
    different = {"differences": ["load m went over gRPC; here it goes over HTTP"]}
    good = run(steps=[step()]) | different
    code, lines = judge(HANG, good)
    assert code == CANNOT_TELL
    assert (
        lines[-1]
        == "the recorded run did otherwise, and that may matter: load m went over gRPC; here it goes over HTTP"
    )
    hung = run(steps=[step(status=None, no_answer="deadline")]) | different
    assert judge(HANG, hung)[0] == REPRODUCED


SLOW = {
    "by": "slow",
    "record": "load",
    "of": "median",
    "at_most_s": 0.05,
    "factor": 2.0,
    "least_cycles": 3,
    "recorded": 0.08,
}
TIMES = {**SLOW, "at_most_s": None, "times_control": 2.0, "recorded": 6.0}


def timed(treatment: float, control: float = 0.01) -> dict[str, Any]:
    """Five cycles of each arm, the first treatment cycle not as expected and slower than all."""
    made = cycles("control", [0] * 5) + cycles("treatment", [0], "failed") + cycles("treatment", [0] * 6)[1:]
    took = [control] * 5 + [99.0] + [treatment] * 5
    steps = [
        step("load m", cycle["phase"], cycle=cycle["cycle"], record="load", took_s=seconds)
        for cycle, seconds in zip(made, took, strict=True)
    ]
    return run(made, steps)


@pytest.mark.parametrize(
    ("claim", "took_s", "says"),
    [
        (SLOW, 0.07, REPRODUCED),
        (SLOW, 0.04, NOT_REPRODUCED),
        (SLOW, 0.5, CANNOT_TELL),
        (TIMES, 0.05, REPRODUCED),
        (TIMES, 0.015, NOT_REPRODUCED),
        (TIMES, 0.2, CANNOT_TELL),
    ],
)
def test_times_are_compared_by_their_size(claim: dict[str, Any], took_s: float, says: int) -> None:
    assert judge(claim, timed(took_s))[0] == says


def test_too_few_times_say_nothing() -> None:
    assert judge(SLOW, run())[0] == CANNOT_TELL


def test_a_model_that_several_steps_touched_is_asked_for_once() -> None:
    claim = {"by": "inconsistent", "step": "load m", "phase": "p", "said": [True, False, True, True]}
    torn = {"index": False, "ready": 200, "metadata": 200}
    assert judge(claim, run(steps=[step(group_probe=torn)]))[0] == REPRODUCED


@pytest.mark.parametrize(
    ("recorded", "seen"),
    [
        ("failed to stat <path>/model.plan: 3", "failed to stat /tmp/repro-x/ident/1/model.plan: 17"),
        ("cannot open <path>, gave up", "cannot open /tmp/repro-x/libs, gave up"),
        ("cannot open <home>/ident", "cannot open /tmp/repro-x/ident"),
    ],
)
def test_texts_are_the_same_wherever_their_files_lie(recorded: str, seen: str) -> None:
    assert comparable(recorded) == comparable(seen)
    assert comparable(recorded) != comparable(seen.replace("cannot", "could not").replace("model.plan", "other.plan"))
