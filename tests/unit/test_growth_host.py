"""The growth test on host memory: an allocator that warms up is no leak; what STABLE excludes is excluded."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import CONTROL, TREATMENT
from tritonchaos.growth import Growth, GrowthState, GrowthTest
from tritonchaos.observations import Arm
from tritonchaos.units import KIB, MIB

LEAK, STABLE, INCONCLUSIVE = Growth.LEAK, Growth.STABLE, Growth.INCONCLUSIVE
RECORDED = Path(__file__).parents[1] / "recorded" / "growth_host.jsonl"
TRACES = [json.loads(line) for line in RECORDED.read_text().splitlines()]
GOOD_LOAD_BUDGET = 120  # treatment cycles; the scenario good-load allows more, for a machine with much else to do
FAILED_LOAD_BUDGET = 200


def traces(label: str, without: Collection[str] = ()) -> list:
    """Return the series of a label, but for those of some kinds."""
    found = [trace for trace in TRACES if trace["label"] == label and trace["kind"] not in without]
    return [pytest.param(trace, id=trace["id"]) for trace in found]


def arms_of(trace: dict) -> list[Arm]:
    return [CONTROL if letter == "C" else TREATMENT for letter in trace["arms"]]


def feed(values: Iterable[int], arms: Sequence[Arm], budget: int = 10_000) -> list[GrowthState]:
    """Feed until LEAK or the budget of treatment cycles; return what was said after each treatment cycle."""
    changes = sum(before is not after for before, after in pairwise(arms))
    test, states = GrowthTest(4096, channel="host", interleaved=changes > 2), []
    for value, arm in zip(values, arms, strict=False):
        test.see(int(value), arm)
        state = test.brief()
        if arm is TREATMENT:
            states.append(state)
        if state.verdict is LEAK or len(states) == budget:
            break
    return states


def first_verdict(states: Sequence[GrowthState]) -> GrowthState:
    return next((state for state in states if state.verdict is not INCONCLUSIVE), states[-1])


# --- recorded ------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", traces("STABLE"))
def test_a_healthy_server_is_never_a_leak_however_long_it_runs(trace):
    states = feed(trace["values"], arms_of(trace))
    assert LEAK not in {state.verdict for state in states}


@pytest.mark.parametrize("trace", traces("STABLE", without={"real_other_servers"}))
def test_a_healthy_server_is_stable_within_the_budget_from_every_start(trace):
    arms = arms_of(trace)
    alone = CONTROL not in arms
    budget = GOOD_LOAD_BUDGET if alone else FAILED_LOAD_BUDGET
    for start in range(0, 31, 10) if alone else range(0, 6, 2):
        state = first_verdict(feed(trace["values"][start:], arms[start:], budget))
        assert (state.verdict, start) == (STABLE, start)
        assert state.excluded_bytes_per_cycle < 4096


@pytest.mark.parametrize("trace", traces("LEAK"))
def test_a_leak_is_found_or_not_excluded(trace):
    state = first_verdict(feed(trace["values"], arms_of(trace), FAILED_LOAD_BUDGET))
    if trace["bytes_per_cycle"] >= 64 * KIB:
        assert state.verdict is LEAK
        assert state.bytes_per_cycle == pytest.approx(trace["bytes_per_cycle"], rel=0.06)
    assert state.verdict is not STABLE


# --- without a control arm -----------------------------------------------------------------------


def climb(cycles: int, each: float, start: float = 100 * MIB) -> list[float]:
    return [start + each * (cycle + 1) // 4096 * 4096 for cycle in range(cycles)]


@pytest.mark.parametrize("each", [4 * KIB, 16 * KIB, 40 * KIB])
def test_small_even_growth_alone_asks_for_a_control_arm(each):
    state = feed(climb(150, each), [TREATMENT] * 150)[-1]
    assert state.verdict is INCONCLUSIVE
    assert "a control arm that goes flat before it" in state.reason


def test_large_growth_alone_is_a_leak_once_no_load_thread_explains_it():
    assert feed(climb(200, 64 * KIB), [TREATMENT] * 200)[-1].cycles_used in range(80, 90)
    assert feed(climb(200, 256 * KIB), [TREATMENT] * 200)[-1].cycles_used in range(24, 32)


@pytest.mark.parametrize("load_threads", [4, 16, 32, 64])
def test_one_arena_after_another_is_no_leak(load_threads):
    arenas = [156 * KIB] * (load_threads - 1) + [8 * KIB] * (load_threads - 1)
    values = accumulate([*arenas, *[0] * 60], initial=100 * MIB)
    assert LEAK not in {state.verdict for state in feed(values, [TREATMENT] * 400)}


@pytest.mark.parametrize("arms", [[TREATMENT] * 200, [CONTROL] * 8 + [TREATMENT] * 192])
@pytest.mark.parametrize("each", [64 * KIB, MIB, 16 * MIB])
def test_growth_that_slows_down_is_never_a_host_leak(each, arms):
    values = [100 * MIB + int(each * cycle**0.5) for cycle in range(200)]
    assert LEAK not in {state.verdict for state in feed(values, arms)}


# --- beside a control arm ------------------------------------------------------------------------


@pytest.mark.parametrize(("each", "within"), [(16 * KIB, 75), (48 * KIB, 40), (128 * KIB, 16)])
def test_beside_a_flat_control_arm_small_leaks_are_found_once_they_add_up(each, within):
    states = feed([100 * MIB] * 8 + climb(200, each), [CONTROL] * 8 + [TREATMENT] * 200)
    assert states[-1].verdict is LEAK
    assert states[-1].cycles_used <= within
    assert states[-1].bytes_per_cycle == pytest.approx(each, rel=0.02)


def test_what_is_missing_for_a_small_leak_is_counted():
    state = feed([100 * MIB] * 8 + climb(40, 16 * KIB), [CONTROL] * 8 + [TREATMENT] * 40)[-1]
    assert state.verdict is INCONCLUSIVE
    assert "until it adds up to 1 MiB: " in state.reason


# --- STABLE --------------------------------------------------------------------------------------


@given(each=st.floats(300, 20_000), once=st.integers(0, 200))
@settings(max_examples=20, deadline=None)
def test_an_even_leak_is_never_excluded(each, once):
    states = feed(climb(100, each, once * 4096), [TREATMENT] * 100)
    assert all(state.verdict is not STABLE or state.excluded_bytes_per_cycle > each for state in states)


@pytest.mark.parametrize(("pages", "chance"), [(1, 0.9), (2, 0.5), (3, 0.4), (4, 0.25), (8, 0.2)])
def test_a_leak_at_random_is_hardly_ever_excluded(pages, chance):
    excluded = 0
    for seed in range(12):
        coin = random.Random(seed)
        leak = accumulate(4096 * pages * (coin.random() < chance) for _ in range(120))
        state = first_verdict(feed(leak, [TREATMENT] * 120))
        excluded += state.verdict is STABLE and state.excluded_bytes_per_cycle <= 4096 * pages * chance
    assert excluded <= 1


def test_single_pages_now_and_then_are_slow_and_what_is_excluded_is_said():
    values = accumulate([0, *[8 * KIB if cycle % 20 == 10 else 0 for cycle in range(100)]], initial=MIB)
    state = first_verdict(feed(values, [TREATMENT] * 100))
    assert (state.verdict, state.rule) == (STABLE, "slow")
    assert 0.4 * KIB < state.excluded_bytes_per_cycle < 4 * KIB


def test_a_large_rise_within_the_last_44_cycles_is_not_slow():
    values = accumulate([*[4096 if cycle % 30 == 0 else 0 for cycle in range(30)], 24 * KIB, *[0] * 40], initial=MIB)
    assert feed(values, [TREATMENT] * 72)[-1].verdict is INCONCLUSIVE
