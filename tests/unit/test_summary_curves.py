from dataclasses import replace

import pytest

from tests.builders import CONTROL, TREATMENT, failed_load, make_cycle, make_position, make_step, refused, run
from tests.finished_runs import HOST, LEAK, PHASES, leaking_run
from tritonchaos.observations import PhaseFacts, StepFinished
from tritonchaos.post_unload import cycle_table
from tritonchaos.summary import FinishedRun, finish
from tritonchaos.summary.curves import Outline, curve, curves, judged_curves, outline
from tritonchaos.summary.faults import FaultBand, FaultFollower, fault_bands, faults_of
from tritonchaos.summary.retained import retained
from tritonchaos.units import KIB, MIB
from tritonchaos.verdict import Assessment, Finding, Status, Verdict

STABLE = Assessment("memory_growth", Status.PASS, "flat", HOST, "STABLE", "flat", 4, 16.0 * KIB)


def edit(name: str, model: str = "ident", **fields):
    step = make_step(name, model, position=make_position("wrong", cycle=None))
    return replace(step, reply=None, spec=replace(step.spec, fields={"model": model, **fields}))


def edits_of(events) -> list[tuple[str, ...]]:
    faults = faults_of(run().add(*events).history())
    return [faults.of(place) for place in range(len(faults.numbers))]


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
    assert (first.made(), second.made(), second.made()) == ((), (), None)


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


def amplified_run(finding: Finding | None, assessment: Assessment) -> FinishedRun:
    """Cycles that do their load once, once, twice, four times; each load takes 1 KiB more."""
    events, grown = [], 0
    for cycle, loads in enumerate((1, 1, 2, 4)):
        grown += loads * KIB
        steps = [make_step("load", position=make_position("more", cycle=cycle)) for _ in range(loads)]
        begun, *rest = make_cycle({HOST: MIB + grown}, phase="more", cycle=cycle)
        rest = [event for event in rest if not (isinstance(event, StepFinished) and event.spec.name == "load")]
        events += [begun, *steps, *rest]
    history = run().add(*events).history(phases=(PhaseFacts("more", TREATMENT, "cycles", 4, amplify=True),))
    return finish(history, Verdict(assessment.status, (assessment,), (finding,) if finding else ()), 1)


def test_a_rate_per_load_is_drawn_over_the_loads_and_bends_where_cycles_do_more_of_them() -> None:
    found = replace(
        LEAK, per="load", bytes_per_cycle=1.0 * KIB, interval_bytes_per_cycle=(KIB / 2, 2.0 * KIB), position=None
    )
    line = curve(amplified_run(found, replace(STABLE, status=Status.FAIL, findings=(found,))), HOST).line
    assert line is not None
    assert (line.per, line.is_growth, list(line.clock)) == ("load", True, [1, 2, 4, 8])
    assert [line.at(at)[0] for at in range(4)] == [MIB + loads * KIB for loads in (1, 2, 4, 8)]
    assert line.corners() == [0, 1, 2, 3]


def test_a_leak_per_load_that_would_have_been_found_is_drawn_too() -> None:
    line = curve(amplified_run(None, replace(STABLE, per="load", excluded_bytes_per_cycle=2.0 * KIB)), HOST).line
    assert line is not None
    assert (line.per, line.is_growth) == ("load", False)
    assert [line.at(at)[0] - line.at(0)[0] for at in range(4)] == [0, 2 * KIB, 6 * KIB, 14 * KIB]


def test_cycles_that_do_not_count_do_not_bear_the_line() -> None:
    finished = leaking_run(treatment_cycles=5)
    events, seen = list(finished.history.events), 0
    for at, event in enumerate(events):
        if isinstance(event, StepFinished) and event.position.phase == "wrong" and event.spec.name == "load":
            seen += 1
            if seen == 3:
                events[at] = replace(event, reply=refused("wrong text"))
    line = curve(replace(finished, history=replace(finished.history, events=tuple(events))), HOST).line
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
    table = cycle_table(run().add(*cycles).history())
    assert outline(table) == Outline([(0, 0, "a"), (1, 2, "b")], [(2, 2)], is_interleaved=True)
    few = cycle_table(run().add(*cycles[: -len(cycles) // 3]).history())
    assert outline(few) == Outline([(0, 0, "a"), (1, 1, "b")], [], is_interleaved=False)
    assert outline(cycle_table(run().history())) == Outline([], [], is_interleaved=False)


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
    assert edits_of(events) == [(), (text,), (text,), ()]
    assert fault_bands(faults_of(run().add(*events).history())) == (
        FaultBand(0, 0, ()),
        FaultBand(1, 2, (text,)),
        FaultBand(3, 3, ()),
    )


def test_an_edit_that_is_put_right_within_its_cycle_was_in_force_in_it() -> None:
    first, *rest = make_cycle({HOST: 1})
    events = [first, edit("delete_file", path="a"), edit("restore"), *rest, *make_cycle({HOST: 1}, cycle=1)]
    assert edits_of(events) == [("ident: a deleted",), ()]


def test_what_is_retained_by_stage_adds_up_to_the_whole() -> None:
    history = (
        run()
        .start({HOST: 100 * MIB})
        .phase("baseline", CONTROL, HOST, [101 * MIB, 101 * MIB])
        .add(edit("delete_file", path="a"))
        .phase("wrong", TREATMENT, HOST, [103 * MIB, 105 * MIB], **failed_load())
        .history(phases=PHASES)
    )
    stages = retained(history, HOST)
    assert [(s.phase, s.arm, s.faults, s.cycles, s.total) for s in stages] == [
        ("baseline", CONTROL, (), 2, MIB),
        ("wrong", TREATMENT, ("ident: a deleted",), 2, 4 * MIB),
    ]
    assert sum(stage.total for stage in stages) == 5 * MIB
    assert stages[1].per_cycle == 2 * MIB
