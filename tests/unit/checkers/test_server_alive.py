"""server_alive: a regular end passes, a crash or a refused stop fails, no server is unknown."""

from __future__ import annotations

import pytest

from tests.builders import make_history, make_position, make_step, no_answer, run
from tritonchaos.checkers.server_alive import ServerAlive, signal_name
from tritonchaos.observations import Evidence, ServerExited
from tritonchaos.verdict import Status

SEGV = b"""I0101 server.cc:674] loading
Signal (11) received.
 0# 0x000055 in /opt/tritonserver/bin/tritonserver
 1# triton::core::Model::Init() in libtritonserver.so

I0101 something else
"""


def only(builder, log=b""):
    [assessment] = ServerAlive().check(make_history(builder.events, log=log))
    return assessment


def test_a_server_that_lives_until_it_is_told_to_stop_passes():
    found = only(run().start().stop(), log=b"Signal (15) received.\n")
    assert (found.status, found.reason) == (Status.PASS, "1 start, no crash; stopped within 1 ms")


def test_a_server_that_is_not_ours_passes_when_it_is_left_running():
    found = only(run().start().stop(signal="", exit_code=None))
    assert (found.status, "left running" in found.reason) == (Status.PASS, True)


def test_no_server_is_unknown():
    assert only(run()).status is Status.UNKNOWN


def test_an_end_that_is_not_recorded_is_unknown():
    assert only(run().start()).status is Status.UNKNOWN
    assert only(run().start().stop().start(start=2)).status is Status.UNKNOWN


def test_a_crash_names_signal_step_and_stack():
    at = make_position(cycle=7)
    builder = run().start().add(make_step(reply=no_answer("reset"), position=at), ServerExited(5, at, -11))
    found = only(builder, log=SEGV)
    [finding] = found.findings
    assert (found.status, finding.kind, finding.position) == (Status.FAIL, "crash", at)
    assert finding.title == "tritonserver died of SIGSEGV during load ident"
    assert [line.strip()[:9] for line in finding.evidence] == ["Signal (1", "0# 0x0000", "1# triton"]


def test_without_a_stack_the_last_log_lines_are_shown():
    kept = Evidence(6, None, "crash", {}, ("what(): bad_alloc",))
    [finding] = only(run().start().add(ServerExited(5, None, -6), kept)).findings
    assert (finding.title, finding.evidence) == ("tritonserver died of SIGABRT", ("what(): bad_alloc",))


@pytest.mark.parametrize(
    ("exit_code", "title"),
    [
        (1, "tritonserver ended unasked with exit status 1"),
        (0, "tritonserver ended unasked with exit status 0"),
        (None, "tritonserver ended unasked"),
        (139, "tritonserver died of SIGSEGV"),
    ],
)
def test_an_end_that_nobody_asked_for_is_a_crash_whatever_its_status(exit_code, title):
    assert only(run().start().add(ServerExited(5, None, exit_code))).findings[0].title == title


def test_a_crash_while_stopping_is_a_crash():
    found = only(run().start().stop(exit_code=-11), log=SEGV)
    assert found.findings[0].title == "tritonserver died of SIGSEGV while it was stopping"


def test_an_end_that_only_the_stop_noticed_is_a_crash():
    """It died after its last answer, or the engine told of its end late."""
    assert only(run().start().stop(signal="", exit_code=0)).findings[0].title == (
        "tritonserver ended unasked with exit status 0 before it was told to stop"
    )
    oom = Evidence(6, None, "crash", {"oom_killed": "yes"}, ())
    assert only(run().start().add(oom).stop(signal="", exit_code=-9)).findings[0].title == (
        "tritonserver died of SIGKILL at the container's memory limit before it was told to stop"
    )


def test_a_kill_that_was_not_ours_is_a_crash():
    [finding] = only(run().start().stop(signal="SIGTERM", exit_code=-9)).findings
    assert (finding.kind, finding.title) == ("crash", "tritonserver died of SIGKILL while it was stopping")
    assert only(run().start().stop(signal="SIGKILL", exit_code=-9)).findings == ()


def test_a_server_that_printed_a_signal_and_lived_on_is_found_by_its_log():
    found = only(run().start().stop(), log=SEGV)
    assert found.findings[0].title == "tritonserver printed SIGSEGV and went on"
    assert len(found.findings[0].evidence) == 3


@pytest.mark.parametrize("exit_code", [-15, 143, 0, 1])
def test_ending_by_the_order_itself_is_no_crash(exit_code):
    assert only(run().start().stop(exit_code=exit_code)).status is Status.PASS


@pytest.mark.parametrize(
    ("stop", "how"),
    [
        ({"forced": True, "signal": "SIGKILL", "exit_code": -9}, "SIGKILL was needed"),
        (
            {"exit_timeout_expired": True, "exit_code": 1},
            "it gave up waiting for its own stop (Exit timeout expired)",
        ),
    ],
)
def test_a_server_that_does_not_stop_by_itself_fails(stop, how):
    kept = Evidence(10, None, "stop", {}, ("Exit timeout expired. Exiting immediately.",))
    found = only(run().start().stop(**stop).add(kept))
    [finding] = found.findings
    assert (found.status, finding.kind) == (Status.FAIL, "will_not_stop")
    assert finding.title == f"tritonserver did not stop: {how}"
    assert finding.evidence[-1] == "Exit timeout expired. Exiting immediately."


def test_an_undocumented_step_before_it_is_told():
    builder = run().start().add(make_step(undocumented=True)).stop(forced=True)
    assert only(builder).findings[0].undocumented


@pytest.mark.parametrize(
    ("exit_code", "name"), [(-11, "SIGSEGV"), (134, "SIGABRT"), (1, None), (0, None), (None, None), (-999, None)]
)
def test_exit_codes_of_signals(exit_code, name):
    assert signal_name(exit_code) == name


def test_a_crash_that_comes_again_is_one_finding_with_all_its_cycles_and_the_first_stack():
    builder = run()
    for start, cycle in enumerate((9, 19, 29), 1):
        at = make_position("loads", cycle=cycle)
        kept = Evidence(6, at, "crash", {}, ("before", "Signal (6) received.", f" 0# frame_of_start_{start} in lib"))
        builder.start(start=start).add(make_step(reply=no_answer("reset"), position=at), ServerExited(5, at, -6), kept)
    [finding] = only(builder.start(start=4).stop()).findings
    assert (finding.occurrences, finding.position.cycle) == (3, 9)
    assert finding.evidence == (
        "3 times: loads, cycles 9, 19, 29",
        "Signal (6) received.",
        " 0# frame_of_start_1 in lib",
    )


def test_different_crashes_stay_apart():
    first, second = make_position("loads", cycle=1), make_position("loads", cycle=2)
    builder = run().start().add(ServerExited(5, first, -6)).start(start=2).add(ServerExited(6, second, -11)).stop()
    assert [finding.title for finding in only(builder).findings] == [
        "tritonserver died of SIGABRT",
        "tritonserver died of SIGSEGV",
    ]
