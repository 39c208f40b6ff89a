"""What must hold for any series: a constant, the unit, the names of the arms and who asks when make no difference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import CONTROL, TREATMENT
from tritonchaos.growth import Growth, GrowthState, GrowthTest
from tritonchaos.observations import Arm
from tritonchaos.units import MIB

Q = 2 * MIB
OTHER = {CONTROL: TREATMENT, TREATMENT: CONTROL}

moves = st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, -1, -3, 9]), min_size=1, max_size=90)
leaks = st.tuples(st.integers(1, 6), st.integers(20, 70)).map(
    lambda rate: [rate[0] if at % 2 else 1 for at in range(rate[1])]
)
quanta = st.one_of(moves, leaks).map(lambda steps: list(accumulate(steps, initial=100)))
coins = st.lists(st.booleans(), min_size=50, max_size=50)


def arms_of(coin: Sequence[bool]) -> list[Arm]:
    return [arm for heads in coin for arm in ((CONTROL, TREATMENT) if heads else (TREATMENT, CONTROL))]


def states(
    values: Sequence[int], arms: Sequence[Arm] = (), quantum: int | None = Q, channel: str = "device"
) -> list[GrowthState]:
    test, found = GrowthTest(quantum, channel=channel, interleaved=bool(arms)), []
    for value, arm in zip(values, arms or [TREATMENT] * len(values), strict=False):
        test.see(value, arm)
        found.append(test.state)
    return found


def verdicts(found: Sequence[GrowthState]) -> list[tuple[Growth, str, int]]:
    return [(state.verdict, state.rule, state.cycles_used) for state in found]


@given(quanta, st.integers(0, 2**40))
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("channel", ["device", "host", "count"])
def test_a_constant_makes_no_difference(channel, levels, constant):
    shifted = [level * Q + constant for level in levels]
    assert states([level * Q for level in levels], channel=channel) == states(shifted, channel=channel)


@given(quanta, st.sampled_from([2, 4, 32]))
@settings(max_examples=40, deadline=None)
def test_the_unit_makes_no_difference(levels, times):
    # the footprint rule knows sizes in bytes, so that it is left out here
    mine = [state for state in states([level * 4096 for level in levels], quantum=4096) if state.rule != "footprint"]
    other = states([level * 4096 * times for level in levels], quantum=4096 * times)
    other = [state for state in other if state.rule != "footprint"]
    assert verdicts(mine) == verdicts(other)
    scaled = [None if s.bytes_per_cycle is None else s.bytes_per_cycle * times for s in mine]
    assert scaled == pytest.approx([s.bytes_per_cycle for s in other])


@given(quanta, coins)
@settings(max_examples=40, deadline=None)
def test_the_names_of_the_arms_make_no_difference_to_what_is_seen(levels, coin):
    values, arms = [level * Q for level in levels], arms_of(coin)
    mine = states(values, arms)[-1]
    swapped = states(values, [OTHER[arm] for arm in arms])[-1]
    assert [(e.cycle, e.grown_bytes, OTHER[e.arm]) for e in mine.events] == [
        (e.cycle, e.grown_bytes, e.arm) for e in swapped.events
    ]
    assert not (mine.verdict is Growth.LEAK and swapped.verdict is Growth.LEAK)


@given(quanta, st.integers(1, 90))
@settings(max_examples=40, deadline=None)
def test_a_stored_run_is_judged_as_it_was_live(levels, cut):
    values = [level * Q for level in levels]
    live = states(values)  # asked for the state after each reading
    silent = GrowthTest(Q)
    for value in values[:cut]:
        silent.see(value, TREATMENT)
    assert silent.state == live[len(values[:cut]) - 1]


@given(quanta)
@settings(max_examples=40, deadline=None)
def test_a_leak_stays_a_leak_and_every_verdict_explains_itself(levels):
    found = states([level * Q for level in levels])
    leaks_from = next((at for at, state in enumerate(found) if state.verdict is Growth.LEAK), len(found))
    assert all(state.verdict is Growth.LEAK for state in found[leaks_from:])
    assert all(state.plain_words and any(sign.isdigit() for sign in state.plain_words) for state in found)
    assert all(state.reason for state in found if state.verdict is Growth.INCONCLUSIVE)
