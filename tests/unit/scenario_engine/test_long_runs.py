"""What is kept per cycle while a run goes on: a run may have a hundred thousand of them."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from tests.builders import TREATMENT, failed_load, make_cycle, make_facts, no_answer
from tritonchaos.cli.run_state import RunState
from tritonchaos.plugins import load_plugins
from tritonchaos.post_unload import CycleReader
from tritonchaos.scenario import parse_scenario
from tritonchaos.scenario_engine.ending import Ending
from tritonchaos.schedule import Cycle, expand
from tritonchaos.watching import GrowthWatch

HOST = "host_private_bytes"
FIRST, LAST = 500, 1500
BYTES_PER_CYCLE = 30
SCENARIO = """\
scenario: long
target: [{local: {}}]
models: {ident: {template: identity}}
phases: [{phase: p, cycles: {at_least: 1, at_most: 100000, until: flat}, each: [{load: ident}, {unload: ident}]}]
check: [memory_growth]
"""


class WholeRun:
    """Everything that takes each cycle of a live run, without a server."""

    def __init__(self) -> None:
        load_plugins()
        self.watch = GrowthWatch(uses_gpu=False)
        self.ending = Ending(expand(parse_scenario(SCENARIO, "long.yaml")).phases[0], uses_gpu=False)
        self.state = RunState(make_facts(), self.watch, 0.0)
        self.reader = CycleReader(3)

    def run_cycle(self, number: int, **load: object) -> None:
        # A number above 256 is an object of its own, as every reading of a live server is.
        level = 10**9 + 4096 * (number % 7)
        for event in make_cycle({HOST: level}, cycle=number, loaded={HOST: level + 10**6}, **load):
            self.state.see(event, 0.0)
            reading = self.reader.see(event)
            if reading is not None:
                self.ending.see(Cycle(number, TREATMENT, False, ()), reading, self.watch.see(reading))

    def kept_after(self, numbers: range, load: dict[str, object]) -> int:
        for number in numbers:
            self.run_cycle(number, **load)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("load", [failed_load(), {"reply": no_answer()}], ids=["judged", "left out"])
def test_a_cycle_leaves_little_behind(load: dict[str, object]) -> None:
    tracemalloc.start()
    try:
        run = WholeRun()
        after_first = run.kept_after(range(FIRST), load)
        after_last = run.kept_after(range(FIRST, LAST), load)
    finally:
        tracemalloc.stop()
    assert (after_last - after_first) / (LAST - FIRST) < BYTES_PER_CYCLE
