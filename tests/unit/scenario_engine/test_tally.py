"""What a track did: slow tracks step by step, fast ones as summaries, failures always by themselves."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import make_position, make_step, no_answer, ok, refused
from tritonchaos.observations import StepFinished, TrafficSummary
from tritonchaos.scenario_engine.tally import Tally, quantiles

SECOND_NS = 1_000_000_000


class Kept:
    """A tally with everything that it let through, in order."""

    def __init__(self) -> None:
        self.steps: list[StepFinished] = []
        self.summaries: list[TrafficSummary] = []
        self.tally = Tally(self.summaries.append)

    def request(self, at_s: float, reply=None, late_ns: int = 0, step_number: int = 0) -> None:
        position = make_position("loads", track="traffic", cycle=len(self.steps), step_number=step_number)
        step = make_step("infer", "busy", reply=reply or ok(elapsed_ns=1000), position=position)
        kept = self.tally.take(replace(step, started_ns=round(at_s * SECOND_NS), t_ns=round(at_s * SECOND_NS)), late_ns)
        if kept is not None:
            self.steps.append(kept)


def test_a_slow_track_is_kept_step_by_step():
    kept = Kept()
    for number in range(40):
        kept.request(number / 10)
    kept.tally.close()
    assert (len(kept.steps), kept.summaries) == (40, [])


def test_a_fast_track_becomes_one_summary_per_second():
    kept = Kept()
    for number in range(200):
        kept.request(10 + number / 100)
    kept.tally.close()
    assert len(kept.steps) == 20
    assert [(s.count, s.ok, s.late) for s in kept.summaries] == [(80, 80, 0), (100, 100, 0)]
    first = kept.summaries[0]
    assert (first.phase, first.track, first.spec.label()) == ("loads", "traffic", "infer busy")
    assert (first.started_ns, first.t_ns) == (10 * SECOND_NS, round(10.99 * SECOND_NS))


def test_failures_are_kept_by_themselves_also_on_a_fast_track():
    kept = Kept()
    for number in range(100):
        kept.request(number / 100)
    for number in range(100):
        kept.request(1 + number / 100, reply=refused() if number == 50 else None)
    kept.request(1.999, reply=no_answer("reset"))
    kept.tally.close()
    assert [step.reply.status if hasattr(step.reply, "status") else step.reply.reason for step in kept.steps[20:]] == [
        400,
        "reset",
    ]
    assert kept.summaries[-1].count == kept.summaries[-1].ok == 99


def test_a_server_that_refuses_everything_does_not_fill_the_record():
    kept = Kept()
    for number in range(500):
        kept.request(number / 1000, reply=refused())
    kept.tally.close()
    assert len(kept.steps) == 100
    assert [(s.count, s.ok) for s in kept.summaries] == [(400, 0)]


def test_lateness_is_counted_and_part_of_the_latency():
    kept = Kept()
    for number in range(21):
        kept.request(number / 100, late_ns=20_000_000 if number in (0, 20) else 0)
    kept.tally.close()
    assert [step.observed.get("late_ns") for step in kept.steps[:2]] == [20_000_000, None]
    assert (kept.summaries[0].late, kept.summaries[0].latency_ns) == (1, (20_001_000,) * 4)


def test_each_step_of_a_round_is_counted_by_itself():
    kept = Kept()
    for number in range(60):
        kept.request(number / 100, step_number=number % 2)
    kept.tally.close()
    assert [summary.count for summary in kept.summaries] == [10, 10]


def test_quantiles_are_values_that_were_seen():
    assert quantiles(list(range(100, 0, -1))) == (50, 90, 99, 100)
    assert quantiles([7]) == (7, 7, 7, 7)
