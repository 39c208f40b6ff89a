"""Rounds of a track: in a closed loop, at a rate, and until its stop rule is met."""

from __future__ import annotations

from tritonchaos.scenario.track_rules import StopRule
from tritonchaos.scenario_engine.rounds import Rounds


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_nothing_is_handed_out_before_the_beginning():
    assert Rounds(None, StopRule(), Clock()).next() is None


def test_a_closed_loop_is_never_due_at_a_time():
    rounds = Rounds(None, StopRule(), Clock())
    rounds.begin()
    assert [(one.number, one.due_s) for one in (rounds.next(), rounds.next())] == [(0, None), (1, None)]


def test_rounds_at_a_rate_are_due_however_long_they_take():
    clock = Clock()
    rounds = Rounds(4.0, StopRule(), clock)
    rounds.begin(offset_s=1.0)
    assert rounds.next().due_s == 101.0
    clock.now_s = 130.0
    assert [rounds.next().due_s for _ in range(2)] == [101.25, 101.5]


def test_what_was_due_while_there_was_nobody_to_ask_is_forgotten():
    clock = Clock()
    rounds = Rounds(4.0, StopRule(), clock)
    rounds.begin()
    rounds.next()
    clock.now_s = 130.0
    rounds.go_on_from_now()
    assert [(one.number, one.due_s) for one in (rounds.next(), rounds.next())] == [(1, 130.0), (2, 130.25)]


def test_a_number_of_rounds_counts_from_each_beginning_and_numbers_go_on():
    rounds = Rounds(None, StopRule(times=2), Clock())
    rounds.begin()
    assert rounds.next().number == 0
    rounds.begin()  # it has begun already
    assert [rounds.next().number, rounds.next()] == [1, None]
    rounds.begin()
    assert ([rounds.next().number for _ in range(2)], rounds.next(), rounds.begins) == ([2, 3], None, 2)


def test_a_time_ends_a_closed_loop_by_the_clock_and_a_rate_by_what_is_due():
    clock = Clock()
    closed, paced = Rounds(None, StopRule(after_s=1.0), clock), Rounds(4.0, StopRule(after_s=1.0), clock)
    closed.begin()
    paced.begin()
    assert [paced.next().due_s for _ in range(4)] == [100.0, 100.25, 100.5, 100.75]
    assert paced.next() is None
    assert closed.next() is not None
    clock.now_s = 101.0
    assert closed.next() is None


def test_all_workers_of_a_closed_loop_wait_for_a_beginning_that_is_to_come():
    clock = Clock()
    rounds = Rounds(None, StopRule(), clock)
    rounds.begin(offset_s=0.5)
    assert [rounds.next().due_s for _ in range(2)] == [100.5, 100.5]
    clock.now_s = 101.0
    assert rounds.next().due_s is None
