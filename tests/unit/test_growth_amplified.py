"""More loads before a reading, on the host: a warm-up takes no more pages for them, a leak takes all the more."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from tests.builders import CONTROL, TREATMENT
from tritonchaos.growth import Growth, GrowthState, GrowthTest
from tritonchaos.units import KIB, MIB

PAGE = 4 * KIB
START = 4 * MIB
MOST = 32


def amplified(used: Callable[[int], float], control_cycles: int, cycles: int = 200) -> tuple[GrowthState, int]:
    """Run cycles whose loads double where they are slow; return the verdict, and the loads of the last cycle.

    Args:
        used: Bytes in use after so many treatment loads, with the warm-up of the control block at negative ones.
    """
    test = GrowthTest(PAGE, channel="host")
    for at in range(-control_cycles, 0):
        test.see(int(used(at)) // PAGE * PAGE, CONTROL)
    done, loads, alike, first = 0, 1, 0, None
    for _ in range(cycles):
        done, alike = done + loads, alike + 1
        value = int(used(done)) // PAGE * PAGE
        first = value if first is None else first
        if test.see(value, TREATMENT, loads).verdict is not Growth.INCONCLUSIVE:
            break
        if alike >= 12 and loads < MOST and (test.wants_more_loads or value - first < alike * 64 * KIB):
            loads, alike, first = 2 * loads, 0, None
    return test.state, loads


def warming(control_cycles: int, leak_per_load: float) -> Callable[[int], float]:
    """A host that still took 8 KiB per cycle when its control block ended, as Triton 2.51 does, and then leaks."""
    return lambda at: (
        START + (8 * KIB * (at + control_cycles) if at < 0 else 8 * KIB * control_cycles) + max(at, 0) * leak_per_load
    )


@pytest.mark.parametrize("leak_per_load", [2 * KIB, 4 * KIB, 16 * KIB])
def test_a_leak_below_what_the_control_block_still_took_is_found(leak_per_load: int) -> None:
    state, loads = amplified(warming(10, leak_per_load), 10)
    assert state.verdict is Growth.LEAK
    assert state.bytes_per_cycle == pytest.approx(leak_per_load, rel=0.1)
    assert loads > 1
    assert f"read after one load each, these at last after {loads}" in state.plain_words
    assert "`arms` would show it" in state.plain_words


def test_a_leak_is_found_without_a_control_arm_too_and_later() -> None:
    beside, alone = (amplified(warming(control, 4 * KIB), control)[0] for control in (10, 0))
    assert alone.verdict is Growth.LEAK
    assert alone.bytes_per_cycle == pytest.approx(4 * KIB, rel=0.1)
    assert alone.cycles_used > beside.cycles_used


@pytest.mark.parametrize("control_cycles", [0, 10])
def test_nothing_is_stable_only_at_the_most_loads(control_cycles: int) -> None:
    state, loads = amplified(warming(control_cycles, 0), control_cycles)
    assert (state.verdict, loads) == (Growth.STABLE, MOST)


@pytest.mark.parametrize("control_cycles", [0, 10])
@pytest.mark.parametrize("total", [MIB // 2, 2 * MIB])
@pytest.mark.parametrize("loads_to_fill", [20, 100, 300])
def test_a_pool_that_fills_over_hundreds_of_loads_is_no_leak(
    control_cycles: int, total: int, loads_to_fill: int
) -> None:
    state, _ = amplified(lambda at: START + total * (1 - math.exp(-max(at, 0) / loads_to_fill)), control_cycles)
    assert state.verdict is not Growth.LEAK


@pytest.mark.parametrize("control_cycles", [5, 10])
@pytest.mark.parametrize("load_threads", [4, 32, 128])
def test_arenas_that_random_load_threads_touch_are_no_leak(control_cycles: int, load_threads: int) -> None:
    draws, touched = random.Random(f"{control_cycles}/{load_threads}"), set[int]()
    seen = {"loads": 0}

    def used(at: int) -> float:
        while seen["loads"] < at + control_cycles:
            seen["loads"] += 1
            touched.add(draws.randrange(load_threads))
        return START + len(touched) * 152 * KIB

    assert amplified(used, control_cycles)[0].verdict is not Growth.LEAK
