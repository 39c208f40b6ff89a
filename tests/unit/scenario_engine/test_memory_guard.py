"""The run stops before a GPU is full, measured by what a loaded model takes there."""

from __future__ import annotations

from tests.builders import TREATMENT
from tritonchaos.post_unload import CycleReading
from tritonchaos.scenario_engine.memory_guard import MemoryGuard
from tritonchaos.units import GIB

DEVICE, RESERVED, PROCESS = "nvml_device_used_bytes", "nvml_device_reserved_bytes", "nvml_process_used_bytes"


def cycle(used: int, loaded: int = 0, metric: str = DEVICE, **more: int) -> CycleReading:
    taken = {metric: loaded} if loaded else {}
    return CycleReading("p", TREATMENT, 0, False, 1, {metric: used, **more}, loaded=taken)


def test_enough_room_for_two_more_models_goes_on_and_less_stops():
    guard = MemoryGuard(lambda: {DEVICE: 16 * GIB})
    assert guard.see(cycle(1 * GIB, loaded=4 * GIB)) == ""
    # Failed loads have no loaded reading; the footprint is the one seen before.
    assert guard.see(cycle(10 * GIB)) == ""
    told = guard.see(cycle(11 * GIB))
    assert "5 GiB free, a loaded model takes 3 GiB" in told


def test_what_the_driver_reserves_is_not_free():
    guard = MemoryGuard(lambda: {DEVICE: 16 * GIB})
    assert guard.see(cycle(7 * GIB, loaded=10 * GIB, **{RESERVED: 4 * GIB})) != ""


def test_the_footprint_is_the_servers_own_where_that_is_known():
    guard = MemoryGuard(lambda: {DEVICE: 16 * GIB})
    somebody_else = CycleReading(
        "p",
        TREATMENT,
        0,
        False,
        1,
        {DEVICE: 2 * GIB, PROCESS: 1 * GIB},
        loaded={DEVICE: 12 * GIB, PROCESS: 2 * GIB},
    )
    assert guard.see(somebody_else) == ""


def test_without_a_limit_or_a_footprint_nothing_is_said():
    assert MemoryGuard(dict).see(cycle(16 * GIB, loaded=17 * GIB)) == ""
    assert MemoryGuard(lambda: {DEVICE: 16 * GIB}).see(cycle(16 * GIB)) == ""


def test_each_gpu_has_its_own():
    other = f"{DEVICE}@GPU-b"
    guard = MemoryGuard(lambda: {f"{DEVICE}@GPU-a": 99 * GIB, other: 4 * GIB})
    assert "GPU-b" in guard.see(cycle(1 * GIB, loaded=3 * GIB, metric=other))
