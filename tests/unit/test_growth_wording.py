"""What the growth test says in words, the shapes it names, and the quantum it learns."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest

from tests.builders import CONTROL, TREATMENT
from tritonchaos.growth import Growth, GrowthState, GrowthTest
from tritonchaos.observations import Arm
from tritonchaos.units import KIB, MIB

Q = 2 * MIB


def judged(
    values: Iterable[int],
    arms: Sequence[Arm] = (),
    quantum: int | None = Q,
    channel: str = "device",
    footprint: int = 0,
) -> GrowthState:
    test = GrowthTest(quantum, footprint, channel, interleaved=bool(arms) and CONTROL in arms[10:])
    for at, value in enumerate(values):
        test.see(value, arms[at] if arms else TREATMENT)
        if test.latest.verdict is not Growth.INCONCLUSIVE:
            break
    return test.state


# --- in plain words ------------------------------------------------------------------------------


def test_a_leak_alone_is_told_with_its_numbers_and_its_doubt():
    said = judged([Q * at for at in range(60)], footprint=64 * MIB).plain_words
    assert "Over 24 of 27 treatment cycles (" in said
    assert "2 MiB per treatment cycle (between " in said
    assert "0.031 of a loaded model" in said
    assert "There was no flat control arm" in said


def test_a_leak_behind_a_control_block_is_told_with_the_block():
    said = judged([0] * 8 + [Q * at for at in range(60)], [CONTROL] * 8 + [TREATMENT] * 60).plain_words
    assert "The 8 control cycles before had gone flat" in said


def test_a_leak_in_coin_ordered_pairs_is_told_with_its_odds():
    coin, level, values, arms = random.Random(2), 0, [], []
    for _ in range(40):
        for arm in coin.sample([CONTROL, TREATMENT], 2):
            level += Q * (arm is TREATMENT)
            values.append(level)
            arms.append(arm)
    state = judged(values, arms)
    assert state.verdict is Growth.LEAK
    assert state.e_value >= 100
    assert "A coin decided which arm of each pair went first" in state.plain_words
    assert f"one run in {state.e_value:,.0f}" in state.plain_words


def test_stable_is_told_with_what_it_excludes():
    said = judged([0] * 80).plain_words
    assert "44 treatment cycles less than 2 MiB" in said
    assert "A leak of 203.51 KiB per cycle or more would have shown with 99 % certainty" in said


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ([0] * 20, "44 flat treatment cycles are needed, 19 of the 20 run count: 25 more"),
        ([Q * at for at in range(12)], "a leak needs 15 more such cycles"),
    ],
)
def test_what_is_open_is_told_with_the_cycles_that_are_missing(values, missing):
    state = judged(values)
    assert missing in state.reason
    assert missing in state.plain_words


def test_a_busy_gpu_is_told_so():
    walk, level, values = random.Random(1), 0, []
    for _ in range(60):
        level += walk.randint(-20, 20)
        values.append(level * Q)
    state = judged(values)
    assert state.shape == "drift of a co-tenant"
    assert "the GPU is not idle" in state.plain_words


def test_counts_are_told_without_bytes():
    said = judged([7 + at for at in range(60)], quantum=1, channel="count").plain_words
    assert "23 stayed in use for good" in said
    assert "B per" not in said


# --- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "levels"),
    [
        ("flat", [0] * 100),
        ("one-time step", [0] * 6 + [4] * 100),
        ("warm-up plateau", [0, 0, 0, 1, 1, 4, 4, 9] + [9] * 100),
        ("pool that filled", [min(at, 12) for at in range(120)]),
        ("retention released in bursts", [at % 8 for at in range(120)]),
        ("per cycle", list(range(60))),
        ("decelerating", [int(2 * at**0.5) for at in range(120)]),
    ],
)
def test_a_shape_has_its_name(shape, levels):
    assert judged([level * Q for level in levels]).shape == shape


def test_events_tell_their_cycle_and_arm():
    state = judged([0] * 8 + [Q] * 30, [CONTROL] * 6 + [TREATMENT] * 32)
    assert [(event.cycle, event.arm, event.grown_bytes) for event in state.events] == [(8, TREATMENT, Q)]


# --- quantum -------------------------------------------------------------------------------------


def learned(values: Iterable[int], channel: str = "device") -> int:
    test = GrowthTest(None, channel=channel)
    for value in values:
        test.see(value, TREATMENT)
    return test.quantum


def test_a_given_quantum_wins():
    assert judged([0, 64 * KIB] * 30, quantum=Q).quantum == Q


@pytest.mark.parametrize(
    ("expected", "values"),
    [
        (2 * MIB, [0] * 30),
        (2 * MIB, [32 * MIB * at for at in range(30)]),
        (32 * MIB, [0, 32 * MIB, 0, 64 * MIB] * 8),
        (MIB, [MIB * at for at in range(30)]),
        (64 * KIB, [4096 * at for at in range(30)]),
        (2 * MIB, [Q * (at % 3) + 4096 * (at == 17) for at in range(40)]),
    ],
    ids=["flat", "a leak is no quantum", "coarse pages", "fine pages", "not finer than a page", "one odd reading"],
)
def test_the_quantum_is_learned_from_the_differences(expected, values):
    assert learned(values) == expected


def test_counts_are_not_coarser_than_one():
    assert learned([5, 9, 5, 9, 5, 9, 5, 9, 6], "count") == 1
