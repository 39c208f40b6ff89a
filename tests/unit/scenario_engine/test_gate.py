"""The gate: open while a server runs, and a stop waits for those who are inside."""

from __future__ import annotations

import threading

from tritonchaos.scenario_engine.gate import Gate


def test_who_comes_before_it_opens_waits():
    gate, ending = Gate(), threading.Event()
    entered: list[bool] = []
    thread = threading.Thread(target=lambda: entered.append(gate.enter(ending)))
    thread.start()
    assert entered == []
    gate.open()
    thread.join(10)
    assert entered == [True]


def test_closing_waits_for_those_inside():
    gate = Gate()
    gate.open()
    assert gate.enter(threading.Event())
    left = threading.Event()

    def leave() -> None:
        left.set()
        gate.leave()

    threading.Timer(0.05, leave).start()
    gate.close(10.0)
    assert left.is_set()
    assert not gate.is_open


def test_closing_gives_up_on_one_that_hangs():
    gate = Gate()
    gate.open()
    gate.enter(threading.Event())
    gate.close(0.01)
    assert not gate.is_open


def test_the_end_of_the_phase_lets_nobody_in():
    ending = threading.Event()
    ending.set()
    gate = Gate()
    assert not gate.enter(ending)
    gate.open()
    assert not gate.enter(ending)
