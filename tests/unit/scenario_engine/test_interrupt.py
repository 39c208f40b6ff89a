"""How an end is asked for: by the user once or twice, or because the time is over."""

from __future__ import annotations

import threading

import pytest

from tritonchaos.scenario_engine import Interrupt


def test_the_second_time_the_user_asks_it_is_at_once() -> None:
    interrupt = Interrupt()
    interrupt.ask()
    assert (interrupt.is_asked, interrupt.reason) == (True, "interrupted")
    with pytest.raises(KeyboardInterrupt):
        interrupt.ask()


def test_the_first_time_after_the_time_was_over_is_still_the_first() -> None:
    interrupt = Interrupt()
    interrupt.time_is_up()
    assert interrupt.reason == "time"
    interrupt.ask()
    assert interrupt.reason == "interrupted"


def test_the_time_of_one_run_is_not_that_of_the_next() -> None:
    interrupt = Interrupt()
    interrupt.time_is_up()
    interrupt.begin_run()
    assert not interrupt.is_asked
    interrupt.ask()
    interrupt.begin_run()
    assert interrupt.is_asked_by_user


def test_pauses_in_all_threads_are_cut_short() -> None:
    interrupt = Interrupt()
    threads = [threading.Thread(target=interrupt.pause, args=(60,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    interrupt.time_is_up()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
