"""The quantum of a live run: a page of the device at least, more where the readings move in larger pieces."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.builders import make_cycle, make_history
from tritonchaos.checkers.memory_growth import MemoryGrowth
from tritonchaos.growth import Growth, JudgedSeries
from tritonchaos.observations import Event
from tritonchaos.post_unload import read_cycles
from tritonchaos.units import KIB, MIB
from tritonchaos.verdict import Status

DEVICE, HOST, COUNT = "nvml_process_used_bytes", "host_private_bytes", "process_fds"
BLOCK = 20 * MIB


def cycles(metric: str, values: Sequence[int]) -> list[Event]:
    return [event for number, value in enumerate(values) for event in make_cycle({metric: value}, cycle=number)]


def judged(metric: str, values: Sequence[int]) -> JudgedSeries:
    series = JudgedSeries(metric)
    for reading in read_cycles(cycles(metric, values), 3):
        series.see(reading)
    return series


def jumping(step: int, count: int) -> list[int]:
    """Readings that go up and down by one or two steps, as of a pool that keeps a block and gives it back."""
    draws = random.Random(5)
    return [100 * step + step * draws.choice((0, 0, 0, 1, 2)) for _ in range(count)]


def test_a_device_that_moves_in_blocks_of_20_mib_has_that_quantum_and_stable_says_so() -> None:
    flat = judged(DEVICE, [40 * BLOCK] * 200).state
    pooled = judged(DEVICE, jumping(BLOCK, 40) + [100 * BLOCK] * 160).state
    assert (flat.quantum, pooled.quantum) == (2 * MIB, BLOCK)
    assert flat.verdict is pooled.verdict is Growth.STABLE
    assert flat.excluded_bytes_per_cycle is not None
    assert pooled.excluded_bytes_per_cycle is not None
    assert pooled.excluded_bytes_per_cycle > flat.excluded_bytes_per_cycle


def test_a_device_that_jumps_by_16_mib_pages_is_judged_as_what_it_is() -> None:
    """With a quantum of 2 MiB it would be a GPU that is not idle: no verdict however long it runs."""
    assert judged(DEVICE, jumping(16 * MIB, 200)).state.verdict is Growth.STABLE


def test_a_leak_of_whole_models_is_no_quantum_and_its_bytes_stay_as_read() -> None:
    state = judged(DEVICE, [BLOCK * at for at in range(60)]).state
    assert (state.verdict, state.quantum, state.bytes_per_cycle) == (Growth.LEAK, 2 * MIB, BLOCK)


@pytest.mark.parametrize(("metric", "step", "known"), [(HOST, 64 * KIB, 4 * KIB), (COUNT, 2, 1)])
def test_pages_of_the_host_and_counts_are_known(metric: str, step: int, known: int) -> None:
    assert judged(metric, jumping(step, 60)).state.quantum == known


def test_finer_than_a_page_of_the_device_is_not_learned() -> None:
    assert judged(DEVICE, jumping(64 * KIB, 60)).state.quantum == 2 * MIB


def test_a_stored_run_learns_the_same_at_the_same_cycle() -> None:
    events = cycles(DEVICE, [value + at // 3 * BLOCK for at, value in enumerate(jumping(BLOCK, 120))])
    watch = MemoryGrowth().watch(uses_gpu=True)
    for reading in read_cycles(events, 3):
        watch.see(reading)
    live = watch.series[DEVICE].state
    offline = MemoryGrowth().check(make_history(events, uses_gpu=True))[0]
    assert (live.quantum, live.verdict, offline.status) == (BLOCK, Growth.LEAK, Status.FAIL)
    assert (offline.cycles_used, offline.findings[0].bytes_per_cycle) == (live.cycles_used, live.bytes_per_cycle)
