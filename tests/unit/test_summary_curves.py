from dataclasses import replace

import pytest

from tests.builders import CONTROL, TREATMENT, failed_load, make_cycle, make_position, make_step, run
from tests.finished_runs import HOST, LEAK, PHASES, leaking_run
from tritonchaos.observations import PhaseFacts
from tritonchaos.summary import finish
from tritonchaos.summary.curves import Outline, curve, curves, judged_curves, outline
from tritonchaos.summary.faults import FaultBand, FaultFollower, fault_bands
from tritonchaos.summary.retained import retained
from tritonchaos.units import KIB, MIB
from tritonchaos.verdict import Assessment, Status, Verdict

STABLE = Assessment("memory_growth", Status.PASS, "flat", HOST, "STABLE", "flat", 4, 16.0 * KIB)


def edit(name: str, model: str = "ident", **fields):
    step = make_step(name, model, position=make_position("wrong", cycle=None))
    return replace(step, reply=None, spec=replace(step.spec, fields={"model": model, **fields}))


def faults_of(events) -> list[tuple[str, ...]]:
    follower = FaultFollower()
    for event in events:
        follower.see(event)
    return follower.of_cycles


def test_a_follower_of_edits_goes_on_from_a_state() -> None:
    first, second = FaultFollower(), FaultFollower()
    for event in (edit("edit_config", set={"a": 1}), *make_cycle({HOST: 1})):
        first.see(event)
    assert first.made() == ("ident: a = 1",)
    assert first.made() is None
    second.resume(first.state())
    for event in (*make_cycle({HOST: 1}), edit("restore"), *make_cycle({HOST: 1})):
        first.see(event)
        second.see(event)
    assert second.state() == first.state()
    assert second.of_cycles == [("ident: a = 1",), ()]


def test_a_leak_is_drawn_through_the_middle_of_its_readings_with_its_interval() -> None:
    line = curve(leaking_run(treatment_cycles=5), HOST).line
    assert line is not None
    assert line.is_growth
    assert list(line.places) == [1, 2, 3, 4, 5]
    assert line.at(2) == (104 * MIB, 104 * MIB, 104 * MIB)
    assert line.at(4) == (106 * MIB, 105 * MIB, 107 * MIB)
    assert line.at(0) == (102 * MIB, 101 * MIB, 103 * MIB)


def test_a_stable_metric_shows_the_leak_that_would_have_been_found() -> None:
    history = run().phase("p", TREATMENT, HOST, [MIB] * 4).history(phases=(PhaseFacts("p", TREATMENT, "cycles", 4),))
    line = curve(finish(history, Verdict(Status.PASS, (STABLE,), ()), 0), HOST).line
    assert line is not None
    assert not line.is_growth
    assert line.at(3)[0] == MIB + 3 * 16 * KIB


def test_cycles_that_do_not_count_do_not_bear_the_line() -> None:
    finished = leaking_run(treatment_cycles=5)
    rows = [replace(row, mismatch="load: wrong text") if at == 3 else row for at, row in enumerate(finished.rows)]
    line = curve(replace(finished, rows=tuple(rows)), HOST).line
    assert line is not None
    assert list(line.places) == [1, 2, 4, 5]


def test_curves_begin_with_those_that_decide_and_leave_out_what_was_not_read() -> None:
    values = {HOST: MIB, "server_fds": 9, "host_rss_bytes": MIB}
    history = run().add(*make_cycle(values), *make_cycle({HOST: MIB}, cycle=1)).history(phases=PHASES)
    finished = finish(history, Verdict(Status.FAIL, (), (replace(LEAK, metric=HOST),)), 1)
    assert [one.metric for one in curves(finished)] == [HOST, "host_rss_bytes", "server_fds"]
    assert [one.metric for one in judged_curves(finished)] == [HOST]
    assert list(curve(finished, "server_fds").places) == [0]


def test_phases_restarts_and_pairs_are_told_from_the_order_of_the_cycles() -> None:
    cycles = [
        *make_cycle({HOST: 1}, phase="a", arm=CONTROL),
        *make_cycle({HOST: 1}, phase="b", arm=CONTROL),
        *make_cycle({HOST: 1}, phase="b", arm=TREATMENT, cycle=1, start=2),
    ]
    rows = finish(run().add(*cycles).history(), Verdict(Status.PASS, (), ()), 0).rows
    assert outline(rows) == Outline([(0, 0, "a"), (1, 2, "b")], [(2, 2)], is_interleaved=True)
    assert outline(rows[:2]) == Outline([(0, 0, "a"), (1, 1, "b")], [], is_interleaved=False)
    assert outline([]) == Outline([], [], is_interleaved=False)


@pytest.mark.parametrize(
    ("name", "fields", "text"),
    [
        ("edit_config", {"set": {"output[0].data_type": "TYPE_INT32"}}, "ident: output[0].data_type = TYPE_INT32"),
        ("edit_config", {"set": {"backend": None}}, "ident: backend removed"),
        ("delete_file", {"path": "1/model.py"}, "ident: 1/model.py deleted"),
        ("put_file", {"path": "1/model.py", "text": ""}, "ident: 1/model.py replaced"),
        ("add_version", {"version": "2"}, "ident: version 2 added"),
    ],
)
def test_an_edit_is_in_force_until_its_model_is_restored(name: str, fields: dict, text: str) -> None:
    events = [
        *make_cycle({HOST: 1}),
        edit(name, **fields),
        *make_cycle({HOST: 1}, cycle=1),
        edit("restore", "other"),
        *make_cycle({HOST: 1}, cycle=2),
        edit("restore"),
        *make_cycle({HOST: 1}, cycle=3),
    ]
    assert faults_of(events) == [(), (text,), (text,), ()]
    assert fault_bands(faults_of(events)) == (FaultBand(0, 0, ()), FaultBand(1, 2, (text,)), FaultBand(3, 3, ()))


def test_an_edit_that_is_put_right_within_its_cycle_was_in_force_in_it() -> None:
    first, *rest = make_cycle({HOST: 1})
    events = [first, edit("delete_file", path="a"), edit("restore"), *rest, *make_cycle({HOST: 1}, cycle=1)]
    assert faults_of(events) == [("ident: a deleted",), ()]


def test_what_is_retained_by_stage_adds_up_to_the_whole() -> None:
    history = (
        run()
        .start({HOST: 100 * MIB})
        .phase("baseline", CONTROL, HOST, [101 * MIB, 101 * MIB])
        .add(edit("delete_file", path="a"))
        .phase("wrong", TREATMENT, HOST, [103 * MIB, 105 * MIB], **failed_load())
        .history(phases=PHASES)
    )
    rows = finish(history, Verdict(Status.PASS, (), ()), 0).rows
    stages = retained(rows, faults_of(history.events), HOST)
    assert [(s.phase, s.arm, s.faults, s.cycles, s.total) for s in stages] == [
        ("baseline", CONTROL, (), 2, MIB),
        ("wrong", TREATMENT, ("ident: a deleted",), 2, 4 * MIB),
    ]
    assert sum(stage.total for stage in stages) == 5 * MIB
    assert stages[1].per_cycle == 2 * MIB
