"""More loads before each reading where nothing moves: the watch asks, the phase allows, and offline it is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.builders import CONTROL, TREATMENT, make_cycle, make_history, make_position, make_step
from tritonchaos.checkers.memory_growth import MemoryGrowth
from tritonchaos.observations import Arm, Event, PhaseFacts
from tritonchaos.plugins import Advice
from tritonchaos.post_unload import CycleReading, read_cycles
from tritonchaos.units import KIB, MIB
from tritonchaos.verdict import Status
from tritonchaos.watching import GrowthWatch

DEVICE = "nvml_process_used_bytes"
HOST = "host_private_bytes"
PAGE = 2 * MIB


def cycle_of(loads: int, number: int, used: int, metric: str = DEVICE, arm: Arm = TREATMENT) -> list[Event]:
    """A cycle that loads and unloads several times before its reading."""
    events = make_cycle({metric: used}, cycle=number, arm=arm)
    at = make_position(arm=arm, cycle=number)
    more = [make_step("load", position=replace(at, step_number=2 * extra)) for extra in range(1, loads)]
    return [events[0], *more, *events[1:]]


def readings(events: list[Event]) -> Iterator[CycleReading]:
    return iter(read_cycles(events, 3))


def live(leak_per_load: int, at_most: int, page: int = PAGE, metric: str = DEVICE) -> tuple[list[Event], list[int]]:
    """Run cycles as the engine would, with memory that is taken in whole pages; return events and loads per cycle."""
    watch = GrowthWatch(uses_gpu=metric == DEVICE, amplified={"p"})
    events: list[Event] = []
    loads, total, each = 1, 0, []
    for number in range(at_most):
        total += loads
        each.append(loads)
        events += (cycle := cycle_of(loads, number, 10**8 + total * leak_per_load // page * page, metric))
        advice = watch.see(next(readings(cycle)))
        if advice is Advice.ENOUGH:
            break
        loads = min(32, 2 * loads) if advice is Advice.DOUBLE_LOADS else loads
    return events, each


def judged(events: list[Event], metric: str = DEVICE):
    facts = {"uses_gpu": metric == DEVICE, "phases": (PhaseFacts("p", TREATMENT, "cycles", 200, amplify=True),)}
    return MemoryGrowth().check(make_history(events, **facts))[0]


def test_loads_double_after_12_flat_cycles_each_and_stable_needs_44_at_the_most() -> None:
    events, each = live(0, 200)
    assert [each.count(loads) for loads in (1, 2, 4, 8, 16)] == [each.index(2), 12, 12, 12, 12]
    assert 44 <= each.count(32) <= 48
    assessment = judged(events)
    assert (assessment.status, assessment.cycles_used) == (Status.PASS, len(each))
    assert "per load" in assessment.reason


@pytest.mark.parametrize("leak_per_load", [4 * KIB, 40 * KIB])
def test_a_leak_below_a_page_per_load_is_found_and_stated_per_load(leak_per_load: int) -> None:
    events, each = live(leak_per_load, 200)
    assessment = judged(events)
    assert (assessment.status, assessment.cycles_used) == (Status.FAIL, len(each))
    finding = assessment.findings[0]
    assert finding.per == "load"
    assert finding.bytes_per_cycle == pytest.approx(leak_per_load, rel=0.2)
    assert "per load" in finding.title
    assert any("loads before a reading in p: 1 (over" in line for line in finding.evidence)


def test_4_kib_per_load_are_missed_without_more_loads() -> None:
    watch = GrowthWatch(uses_gpu=True)
    events = [e for n in range(200) for e in cycle_of(1, n, 10**8 + n * 4 * KIB // PAGE * PAGE)]
    advice = [watch.see(reading) for reading in readings(events)]
    assert Advice.DOUBLE_LOADS not in advice
    assert not watch.has_leak


def test_slow_growth_of_the_host_asks_for_more_loads_too() -> None:
    _, each = live(2 * KIB, 60, page=4 * KIB, metric=HOST)
    assert max(each) > 4


def test_a_phase_that_may_not_amplify_is_judged_by_its_cycles() -> None:
    watch = GrowthWatch(uses_gpu=True, amplified={"another"})
    events = [e for n in range(40) for e in cycle_of(2 if n % 3 else 1, n, 10**8 + n * PAGE)]
    for reading in readings(events):
        watch.see(reading)
    assert watch.unit == "cycle"
    assert watch.series[DEVICE].state.bytes_per_cycle == pytest.approx(PAGE, rel=0.1)


def test_both_arms_of_a_pair_are_counted_at_the_number_of_loads_that_they_had() -> None:
    watch = GrowthWatch(uses_gpu=True, amplified={"p"})
    advice = []
    for number in range(44):
        loads = 1 if number < 32 else 2
        arm = CONTROL if number % 2 else TREATMENT
        advice += [watch.see(reading) for reading in readings(cycle_of(loads, number, 10**8, arm=arm))]
    asked = [number for number, one in enumerate(advice) if one is Advice.DOUBLE_LOADS]
    assert asked and asked[-1] == 31


# --- somebody else on the GPU --------------------------------------------------------------------

TOTAL, OTHERS = "nvml_device_used_bytes", "nvml_others_used_bytes"


def beside(others: list[int], own: list[int], *, own_is_known: bool) -> list[Event]:
    """Cycles in which the device's total is what others and the server use."""
    events: list[Event] = []
    for number, (other, used) in enumerate(zip(others, own, strict=True)):
        values = {TOTAL: other + used, OTHERS: other} | ({DEVICE: used} if own_is_known else {})
        events += make_cycle(values, cycle=number)
    return events


FLAT, GROWING = [10**9] * 80, [10**9 + number * PAGE for number in range(80)]
COMING_AND_GOING = [400 * MIB + number % 7 * 96 * MIB for number in range(80)]


def verdicts(events: list[Event]) -> dict[str | None, tuple[Status, bool, str]]:
    assessments = MemoryGrowth().check(make_history(events, uses_gpu=True))
    return {one.metric: (one.status, one.counts, one.reason) for one in assessments}


@pytest.mark.parametrize(("own", "status"), [(FLAT, Status.PASS), (GROWING, Status.FAIL)])
def test_a_co_tenant_makes_the_total_noisy_and_the_server_is_judged_by_its_own_memory(
    own: list[int], status: Status
) -> None:
    found = verdicts(beside(COMING_AND_GOING, own, own_is_known=True))
    assert found[DEVICE][0] is status
    assert found[TOTAL][:2] == (Status.UNKNOWN, False)
    assert found[TOTAL][2].startswith("NOISY: what others use on this GPU moved by 576 MiB")


@pytest.mark.parametrize("own", [FLAT, GROWING])
def test_where_only_the_total_is_known_a_co_tenant_leaves_it_open(own: list[int]) -> None:
    found = verdicts(beside(COMING_AND_GOING, own, own_is_known=False))
    assert found[TOTAL][:2] == (Status.UNKNOWN, True)
    assert "NOISY" in found[TOTAL][2]


@pytest.mark.parametrize(("own", "status"), [(FLAT, Status.PASS), (GROWING, Status.FAIL)])
def test_a_neighbour_that_stays_as_it_is_spoils_nothing(own: list[int], status: Status) -> None:
    still = [400 * MIB] * 80
    assert verdicts(beside(still, own, own_is_known=False))[TOTAL][0] is status


def test_a_context_that_is_made_in_the_first_cycles_is_nobody_else() -> None:
    first = [400 * MIB] + [420 * MIB] * 79
    assert verdicts(beside(first, FLAT, own_is_known=False))[TOTAL][0] is Status.PASS


def test_growth_that_is_ten_times_what_others_moved_is_still_a_leak() -> None:
    others = [400 * MIB] * 40 + [402 * MIB] * 40
    assert verdicts(beside(others, GROWING, own_is_known=False))[TOTAL][0] is Status.FAIL


def test_a_run_does_not_stop_at_growth_that_a_neighbour_may_explain() -> None:
    watch = GrowthWatch(uses_gpu=True)
    advice = [watch.see(one) for one in readings(beside(COMING_AND_GOING, GROWING, own_is_known=False))]
    assert set(advice) == {Advice.GO_ON}
    assert not watch.has_leak


def test_a_leak_on_the_host_does_not_hide_the_slower_one_on_the_device() -> None:
    watch = GrowthWatch(uses_gpu=True)
    used = [{HOST: 10**8 + number * MIB, DEVICE: 10**9 + number // 8 * PAGE} for number in range(120)]
    events = [event for number, values in enumerate(used) for event in make_cycle(values, cycle=number)]
    seen: list[tuple[bool, bool]] = []
    for one in readings(events):
        advice = watch.see(one)
        seen.append((watch.is_leak(HOST), watch.is_leak(DEVICE)))
        if advice is Advice.ENOUGH:
            break
    assert (True, False) in seen
    assert seen[-1] == (True, True)


def test_where_nothing_of_the_device_is_read_a_leak_on_the_host_is_enough() -> None:
    watch = GrowthWatch(uses_gpu=True)
    events = [event for number in range(80) for event in make_cycle({HOST: 10**8 + number * MIB}, cycle=number)]
    assert Advice.ENOUGH in [watch.see(one) for one in readings(events)]
