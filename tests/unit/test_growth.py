"""The growth test on labelled series, on the series of our own runs, and rule by rule."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import CONTROL, TREATMENT, failed_load, make_cycle, make_history, ok, run
from tritonchaos.growth import Growth, GrowthState, GrowthTest, JudgedSeries, quantum
from tritonchaos.observations import Arm
from tritonchaos.post_unload import Channel, cycle_readings
from tritonchaos.units import KIB, MIB

LEAK, STABLE, INCONCLUSIVE = Growth.LEAK, Growth.STABLE, Growth.INCONCLUSIVE
RECORDED = Path(__file__).parents[1] / "recorded" / "growth_small.jsonl"
BUDGET = 500  # cycles; the longest recorded series


# --- labelled series -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Scored:
    trace: dict
    state: GrowthState
    cycles: int


def load_traces(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def score(trace: dict) -> Scored:
    """Feed the series one by one and stop at the first verdict."""
    arms = [CONTROL if letter == "C" else TREATMENT for letter in trace["arms"]]
    changes = sum(before is not after for before, after in pairwise(arms))
    test = GrowthTest(trace["quantum"], trace["footprint"], trace["channel"], interleaved=changes > 2)
    cycles = 0
    for value, arm in zip(trace["values"][:BUDGET], arms, strict=False):
        cycles += 1
        if test.see(value, arm).verdict is not INCONCLUSIVE:
            break
    return Scored(trace, test.state, cycles)


def ids(scored: Iterable[Scored], label: str, verdicts: Sequence[Growth]) -> list[str]:
    return [s.trace["id"] for s in scored if s.trace["label"] == label and s.state.verdict in verdicts]


@pytest.fixture(scope="module")
def small() -> list[Scored]:
    return [score(trace) for trace in load_traces(RECORDED)]


def test_no_bounded_series_is_a_leak(small):
    assert ids(small, "STABLE", [LEAK]) == []
    assert ids(small, "STABLE", [INCONCLUSIVE]) == []


def test_every_leak_is_found(small):
    assert ids(small, "LEAK", [STABLE, INCONCLUSIVE]) == []


def test_what_nobody_can_tell_stays_inconclusive(small):
    assert ids(small, "AMBIGUOUS", [LEAK, STABLE]) == []


def test_the_leak_of_a_failed_load_measured_on_an_h200_is_found_within_14_treatment_cycles(small):
    found = next(s for s in small if s.trace["id"] == "r-h200-failed-load-gpu")
    assert found.state.verdict is LEAK
    assert found.state.cycles_used <= 14
    low, high = found.state.interval
    assert low <= found.trace["bytes_per_cycle"] <= high


# --- series of our own runs ----------------------------------------------------------------------


def feed(test: GrowthTest, control: Iterable[int], treatment: Iterable[int]) -> GrowthState:
    """Feed levels; stop at a verdict within the treatment arm."""
    for value in control:
        test.see(value, CONTROL)
    for value in treatment:
        if test.see(value, TREATMENT).verdict is not INCONCLUSIVE:
            break
    return test.state


def host() -> GrowthTest:
    return GrowthTest(4096, channel=Channel.HOST)


def climb(start: int, cycles: int, each: int) -> list[int]:
    return [start + each * (cycle + 1) for cycle in range(cycles)]


@pytest.mark.parametrize("control_cycles", [3, 4, 10, 30])
def test_one_mib_per_failed_load_is_found_soon_after_a_control_block(control_cycles):
    noise = random.Random(control_cycles)
    control = [100 * MIB + 4096 * noise.randrange(3) for _ in range(control_cycles)]
    # the first failed loads touch code and heap for the first time
    warm_up = list(accumulate([40 * 4096, 20 * 4096, 8 * 4096, *[0] * 40]))
    treatment = [level + extra for level, extra in zip(climb(100 * MIB, 40, MIB), warm_up, strict=False)]
    state = feed(host(), control, treatment)
    assert state.verdict is LEAK
    assert state.cycles_used <= 16
    assert state.bytes_per_cycle == pytest.approx(MIB, rel=0.02)
    assert state.interval[0] <= MIB <= state.interval[1]
    assert state.control_bytes_per_cycle < 16 * KIB


def test_without_a_control_arm_a_host_leak_needs_more_cycles():
    state = feed(host(), [], climb(100 * MIB, 60, MIB))
    assert state.verdict is LEAK
    assert 24 <= state.cycles_used <= 36


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("control_cycles", [0, 4, 20])
def test_host_memory_that_warms_up_and_touches_a_page_now_and_then_is_stable(seed, control_cycles):
    noise = random.Random(seed)

    def level(cycles: int) -> list[int]:
        steps = [noise.randrange(50) * 4096 if cycle < 4 else 0 for cycle in range(cycles)]
        return list(accumulate(step + (4096 if noise.random() < 0.03 else 0) for step in steps))

    control = level(control_cycles)
    treatment = [(control or [0])[-1] + value for value in level(120)]
    state = feed(host(), control, treatment)
    assert state.verdict is STABLE
    assert state.cycles_used <= 120


@pytest.mark.parametrize("decay", [2, 4, 6])
@pytest.mark.parametrize("seed", range(5))
def test_growth_of_the_first_failed_loads_that_dies_away_is_no_leak(decay, seed):
    noise = random.Random(seed)
    steps = [4096 * int(noise.uniform(0.5, 1.5) * 60 * 2.718 ** (-cycle / decay)) for cycle in range(200)]
    assert feed(host(), [0] * 6, accumulate(steps)).verdict is STABLE


def test_one_file_descriptor_per_treatment_cycle_is_found_in_a_short_run():
    state = feed(GrowthTest(1, channel="count"), [20] * 5, climb(20, 15, 1))
    assert (state.verdict, state.bytes_per_cycle) == (LEAK, 1)
    assert state.cycles_used <= 12


# --- rules ---------------------------------------------------------------------------------------


def device() -> GrowthTest:
    return GrowthTest(2 * MIB)


def test_flat_readings_are_stable_after_44_counted_cycles():
    state = feed(device(), [], [0] * 200)
    assert (state.verdict, state.rule, state.shape, state.cycles_used) == (STABLE, "flat", "flat", 45)
    assert state.excluded_bytes_per_cycle == pytest.approx(0.2 * MIB, rel=0.01)


@pytest.mark.parametrize(
    ("rises", "flat"),
    [((33,), 44), ((33, 34, 36), 44), ((33, 73), 60), ((3, 43), 60)],
    ids=["one step", "one rise of three steps", "late, then later", "early, then late"],
)
def test_a_single_rise_needs_44_flat_cycles_and_steps_apart_half_more_than_the_longest_gap(rises, flat):
    last, level = rises[-1], 100 * 2 * MIB
    until = [level + 2 * MIB * sum(at >= rise for rise in rises) for at in range(last + flat)]
    assert see_all(device(), until).verdict is Growth.INCONCLUSIVE
    assert see_all(device(), [*until, until[-1]]).verdict is Growth.STABLE


def test_what_is_missing_is_counted():
    state = feed(device(), [0] * 4, [0] * 6)
    assert state.reason == "44 flat treatment cycles are needed, 6 of the 6 run count: 38 more"
    assert feed(device(), [0] * 4, [0] * (6 + 38)).verdict is STABLE
    assert feed(device(), [0] * 4, [0] * (6 + 37)).verdict is INCONCLUSIVE


def test_without_a_treatment_cycle_nothing_is_said():
    state = feed(device(), [0] * 100, [])
    assert (state.verdict, state.reason) == (INCONCLUSIVE, "no treatment cycle was judged")


def test_growth_that_both_arms_share_is_not_blamed_on_the_treatment():
    state = feed(device(), climb(0, 30, 2 * MIB), climb(60 * MIB, 100, 2 * MIB))
    assert state.verdict is INCONCLUSIVE
    assert "the control arm grows too (2 MiB per cycle)" in state.reason


def coin_pairs(growing: set[Arm], pairs: int = 60) -> GrowthState:
    coin, test, level = random.Random(1), GrowthTest(2 * MIB, interleaved=True), 0
    for _ in range(pairs):
        order = [CONTROL, TREATMENT]
        coin.shuffle(order)
        for arm in order:
            level += 2 * MIB * (arm in growing)
            if test.see(level, arm).verdict is not INCONCLUSIVE:
                return test.state
    return test.state


def test_coin_ordered_pairs_tell_which_arm_grows():
    leak = coin_pairs({TREATMENT})
    assert (leak.verdict, leak.control_bytes_per_cycle) == (LEAK, 0)
    assert leak.bytes_per_cycle == 2 * MIB
    both = coin_pairs({TREATMENT, CONTROL})
    assert both.verdict is INCONCLUSIVE
    assert both.control_bytes_per_cycle == pytest.approx(2 * MIB, rel=0.05)
    control = coin_pairs({CONTROL})
    assert control.verdict is INCONCLUSIVE
    assert control.reason.startswith("the control arm itself grows by 2 MiB per cycle: 4 flat control")


def test_a_busy_device_is_not_judged():
    walk = random.Random(3)
    readings = list(accumulate(walk.randrange(-20, 21) * 2 * MIB for _ in range(80)))
    state = feed(device(), [], readings)
    assert state.verdict is INCONCLUSIVE
    assert "the GPU is not idle" in state.reason


def test_a_step_that_ends_is_named_by_its_shape():
    assert feed(device(), [], [0] * 6 + [8 * MIB] * 100).shape == "one-time step"
    assert feed(device(), [], [0, 2 * MIB, 4 * MIB, 4 * MIB, 8 * MIB] + [12 * MIB] * 100).shape == "warm-up plateau"


def see_all(test: GrowthTest, values: Iterable[int]) -> GrowthState:
    for value in values:
        test.see(value, TREATMENT)
    return test.state


def see_test(test: GrowthTest, values: Iterable[int]) -> GrowthTest:
    see_all(test, values)
    return test


def test_stable_is_kept_over_one_step_and_taken_back_over_two():
    flat = [0] * 60
    assert see_all(device(), [*flat, *[2 * MIB] * 5]).verdict is STABLE
    assert see_all(device(), [*flat, 2 * MIB, *[4 * MIB] * 5]).verdict is INCONCLUSIVE


def test_stable_may_become_a_leak_and_a_leak_stays_one():
    state = see_all(device(), [*[0] * 50, *climb(0, 130, 2 * MIB)])
    assert state.verdict is LEAK
    leaking = climb(0, 40, 2 * MIB)
    state = see_all(device(), [*leaking, *[leaking[-1]] * 100])
    assert state.verdict is LEAK
    assert state.cycles_used < 40


@given(
    ends_at=st.integers(3, 18),
    sizes=st.lists(st.integers(0, 20), min_size=18, max_size=18),
)
@settings(max_examples=60, deadline=None)
def test_growth_that_ends_by_cycle_18_is_never_a_leak_by_the_24_cycle_rule(ends_at, sizes):
    steps = [2 * MIB * size if cycle <= ends_at else 0 for cycle, size in enumerate([0, *sizes])]
    state = feed(GrowthTest(2 * MIB, footprint=10**12), [], accumulate([*steps, *[0] * 120]))
    assert state.verdict is STABLE


@given(st.integers(0, 2**40), st.lists(st.integers(0, 30), min_size=5, max_size=60))
@settings(max_examples=40, deadline=None)
def test_the_verdict_does_not_depend_on_the_level(base, pages):
    values = [4096 * page for page in pages]
    shifted = [base + value for value in values]
    assert feed(host(), [], values) == feed(host(), [], shifted)


# --- more loads per reading ----------------------------------------------------------------------


def amplify(leak_per_load: int, page: int = 2 * MIB, cycles: int = 200) -> tuple[GrowthState, list[int]]:
    """Double the loads per cycle up to 32 when the test asks for it; memory is taken in whole pages."""
    test, loads, total, used = GrowthTest(page), 1, 0, []
    for _ in range(cycles):
        total += loads
        used.append(loads)
        if test.see(total * leak_per_load // page * page, TREATMENT, loads).verdict is not INCONCLUSIVE:
            break
        if loads < 32 and test.wants_more_loads:
            loads *= 2
    return test.state, used


def test_loads_are_doubled_after_12_flat_cycles_and_stable_waits_for_44_at_the_most():
    state, used = amplify(0)
    assert state.verdict is STABLE
    assert [used.count(loads) for loads in (2, 4, 8, 16)] == [12, 12, 12, 12]
    assert 44 <= used.count(32) <= 48
    assert state.excluded_bytes_per_cycle == pytest.approx(0.2 * MIB / 32, rel=0.1)


@pytest.mark.parametrize("leak_per_load", [4 * KIB, 40 * KIB, 100 * KIB, 2 * MIB])
def test_a_leak_far_below_a_page_per_load_is_found_and_stated_per_load(leak_per_load):
    state, _ = amplify(leak_per_load)
    assert state.verdict is LEAK
    assert state.interval[0] <= leak_per_load <= state.interval[1]
    assert state.bytes_per_cycle == pytest.approx(leak_per_load, rel=0.2)


def test_a_growing_series_asks_for_no_more_loads():
    assert not see_test(device(), climb(0, 20, 2 * MIB)).wants_more_loads
    assert see_test(device(), [0] * 15).wants_more_loads


# --- which cycles are fed ------------------------------------------------------------------------


def judged(events, metric="host_private_bytes") -> JudgedSeries:
    series = JudgedSeries(metric)
    for reading in cycle_readings(make_history(events)):
        series.see(reading)
    return series


def test_growth_of_cycles_that_do_not_count_is_taken_off():
    levels = {0: (100, {}), 1: (150, {"reply": ok()}), 2: (160, {}), 3: (120, {"reply": ok()}), 4: (121, {})}
    events = []
    for cycle, (level, reply) in levels.items():
        events += make_cycle({"host_private_bytes": level}, cycle=cycle, **failed_load(**reply))
    # + 50 in cycle 1 is nobody's; what cycle 3 gave back counts
    assert judged(events).values(TREATMENT) == [100, 110, 71]


def test_warm_up_cycles_are_not_fed():
    events = [
        *make_cycle({"host_private_bytes": 5}, cycle=0, is_warm_up=True),
        *make_cycle({"host_private_bytes": 9}, cycle=1),
    ]
    assert judged(events).values(TREATMENT) == [9]


def test_a_restart_begins_a_new_series():
    grown = run().phase("p", TREATMENT, "host_private_bytes", climb(0, 20, MIB))
    assert grown.phase("p", TREATMENT, "host_private_bytes", climb(0, 20, MIB), start=2)
    assert judged(grown.events).state.verdict is INCONCLUSIVE


def test_a_leak_before_a_restart_stays_one():
    grown = run().phase("p", TREATMENT, "host_private_bytes", climb(0, 60, MIB))
    grown.phase("q", CONTROL, "host_private_bytes", [0, 0], start=2)
    assert judged(grown.events).state.verdict is LEAK


def test_both_arms_in_one_phase_mean_coin_ordered_pairs():
    events, level = [], 0
    for cycle in range(60):
        arm = TREATMENT if (cycle + cycle // 2) % 2 else CONTROL
        level += MIB * (arm is TREATMENT)
        events += make_cycle({"host_private_bytes": level}, arm=arm, cycle=cycle)
    state = judged(events).state
    assert (state.verdict, state.bytes_per_cycle) == (LEAK, MIB)


def test_the_control_arm_is_judged_by_itself_too():
    leaking = run().phase("good", CONTROL, "host_private_bytes", climb(0, 40, MIB))
    series = judged(leaking.phase("bad", TREATMENT, "host_private_bytes", [40 * MIB] * 10).events)
    state = series.control_state()
    assert (state.verdict, state.bytes_per_cycle) == (LEAK, MIB)
    healthy = run().phase("good", CONTROL, "host_private_bytes", [0] * 40)
    series = judged(healthy.phase("bad", TREATMENT, "host_private_bytes", climb(0, 40, MIB)).events)
    assert series.control_state().verdict is not LEAK


def test_the_readings_of_the_start_with_treatment_cycles_are_shown():
    grown = run().phase("p", TREATMENT, "server_fds", [1, 2, 3]).phase("q", CONTROL, "server_fds", [9], start=2)
    assert judged(grown.events, "server_fds").values(TREATMENT) == [1, 2, 3]
    assert judged(grown.events, "server_fds").values(CONTROL) == []


def test_the_footprint_is_loaded_minus_post_unload():
    events = make_cycle({"host_private_bytes": 10}, loaded={"host_private_bytes": 74})
    assert judged(events).footprint == 64


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("nvml_device_used_bytes", 2 * MIB),
        ("host_private_bytes", 4096),
        ("temp_bytes", 4096),
        ("server_fds", 1),
    ],
)
def test_each_metric_has_its_quantum(metric, expected):
    assert quantum(metric) == expected


# --- so far --------------------------------------------------------------------------------------


def test_what_is_excluded_so_far_falls_with_each_flat_cycle_and_ends_as_the_verdicts():
    test = GrowthTest(2 * MIB)
    assert test.excluded_so_far() is None
    limits = []
    while test.see(100 * MIB, TREATMENT).verdict is INCONCLUSIVE:
        limits.append(test.excluded_so_far())
    known = [limit for limit in limits if limit is not None]
    assert known == sorted(known, reverse=True)
    assert test.state.excluded_bytes_per_cycle == test.excluded_so_far() < known[0]


# KiB of a real server: 11 good cycles, then 20 cycles on trial in which pages trickle, then a pool of 5 MiB.
LATE_POOL_CONTROL = (
    4012,
    4176,
    4332,
    4492,
    4512,
    4524,
    4532,
    4552,
    4556,
    4572,
    4572,
)
LATE_POOL_TREATMENT = (
    4576,
    4584,
    4584,
    4608,
    4628,
    4636,
    4644,
    4648,
    4648,
    4648,
    4648,
    4652,
    4652,
    4652,
    4660,
    4668,
    4668,
    4668,
    4668,
    4668,
    5692,
    6716,
    7740,
    8764,
    9788,
    9788,
    9788,
    9788,
)


def test_a_pool_that_fills_late_is_no_leak():
    test = GrowthTest(4096, channel=Channel.HOST)
    for value in LATE_POOL_CONTROL:
        test.see(value * KIB, CONTROL)
    verdicts = {test.see(value * KIB, TREATMENT).verdict for value in LATE_POOL_TREATMENT}
    assert LEAK not in verdicts
