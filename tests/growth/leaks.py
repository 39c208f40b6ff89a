"""Series that grow without bound. The first letter is l; m where growth is slower than the promise, or just on it."""

from __future__ import annotations

import random
from itertools import pairwise

from tests.growth.making import (
    CYCLES,
    KINDS,
    add,
    block,
    coin_pairs,
    collected,
    kind,
    levels,
    noise,
    on_treatment,
    outliers,
    pages,
    series,
    warm_up,
)
from tests.growth.series import Series

PAGE = 4096


def leak_kinds() -> list[str]:
    return sorted(name for name in KINDS if name.startswith("l_"))


def slow_kinds() -> list[str]:
    return sorted(name for name in KINDS if name.startswith("m_"))


def _rate(rng: random.Random, footprint: int) -> int:
    """Quanta per cycle: one, a few, or a whole model."""
    return rng.choice((1, 1, rng.randint(2, 12), footprint))


@kind
def l_const(rng: random.Random) -> Series:
    footprint = rng.randint(16, 120)
    rate = _rate(rng, footprint)
    return series(rng, "l_const", [float(rate * c) for c in range(CYCLES)], rate=rate, footprint=footprint)


@kind
def l_footprint(rng: random.Random) -> Series:
    """A whole model of 32 MiB or more per cycle."""
    footprint = rng.randint(16, 120)
    quanta = add(levels(warm_up(rng)), [float(footprint * c) for c in range(CYCLES)])
    return series(rng, "l_footprint", quanta, rate=footprint, footprint=footprint)


@kind
def l_warm_const(rng: random.Random) -> Series:
    footprint = rng.randint(16, 120)
    rate = _rate(rng, footprint)
    quanta = add(levels(warm_up(rng, 10)), [float(rate * c) for c in range(CYCLES)])
    return series(rng, "l_warm_const", quanta, rate=rate, footprint=footprint)


@kind
def l_page_fill(rng: random.Random) -> Series:
    rate = 1 / rng.uniform(2, 10)
    return series(rng, "l_page_fill", add(levels(warm_up(rng)), pages(rng, rate)), rate=rate)


@kind
def l_intermittent(rng: random.Random) -> Series:
    """Leaks in some cycles, at random."""
    chance, size = 1 / rng.uniform(1.3, 10), rng.randint(1, 6)
    quanta = levels(float(size * (rng.random() < chance)) for _ in range(CYCLES))
    return series(rng, "l_intermittent", quanta, rate=size * chance)


@kind
def l_saw_net(rng: random.Random) -> Series:
    """Gives back part of it each period."""
    period, each = rng.randint(4, 9), rng.randint(1, 4)
    keeps = rng.uniform(1, 2.5) * period / 10
    quanta = [float(each * (c % period) + round(keeps * (c // period) + 0.5)) for c in range(CYCLES)]
    return series(rng, "l_saw_net", quanta, rate=keeps / period)


@kind
def l_outliers(rng: random.Random) -> Series:
    rate = 1 / rng.uniform(1, 9)
    return series(rng, "l_outliers", add(pages(rng, rate), outliers(rng)), rate=rate)


@kind
def l_cotenant(rng: random.Random) -> Series:
    """Another process frees memory in the middle and hides the growth."""
    rate, at, freed = rng.randint(1, 22), rng.randint(12, 60), rng.randint(5, 200)
    quanta = [float(rate * c - freed * (c >= at)) for c in range(CYCLES)]
    return series(rng, "l_cotenant", add(levels(warm_up(rng)), quanta), rate=rate)


@kind
def l_arm_block(rng: random.Random) -> Series:
    arms, footprint = block(rng), rng.randint(16, 120)
    rate = _rate(rng, footprint)
    quanta = add(levels(warm_up(rng, 2)), on_treatment(arms, [float(rate)] * CYCLES))
    return series(rng, "l_arm_block", quanta, arms=arms, rate=rate, footprint=footprint)


@kind
def l_arm_inter(rng: random.Random) -> Series:
    arms, rate = "CT" * (CYCLES // 2), 1 / rng.uniform(1, 5)
    whole = pages(rng, rate)
    growth = (after - before for before, after in pairwise(whole))
    return series(rng, "l_arm_inter", add(levels(warm_up(rng, 2)), on_treatment(arms, growth)), arms=arms, rate=rate)


@kind
def l_arm_rand(rng: random.Random) -> Series:
    arms, footprint = coin_pairs(rng), rng.randint(16, 120)
    rate = _rate(rng, footprint)
    quanta = add(levels(warm_up(rng, 7)), on_treatment(arms, [float(rate)] * CYCLES))
    return series(rng, "l_arm_rand", quanta, arms=arms, rate=rate, footprint=footprint)


@kind
def l_host_const(rng: random.Random) -> Series:
    """Hundreds of pages per cycle beside readings that vary by as much."""
    rate = rng.uniform(200, 1000)
    spread = rng.uniform(0.1, 0.5) * rate
    quanta = [rate * c + rng.gauss(0, spread) for c in range(CYCLES)]
    return series(
        rng, "l_host_const", quanta, quantum=PAGE, channel="host", rate=rate, footprint=rng.randrange(20_000, 100_000)
    )


@kind
def l_host_trim(rng: random.Random) -> Series:
    rate, period = rng.uniform(200, 800), rng.randint(5, 10)
    quanta = [rate * c + rate * 0.6 * (c % period) + rng.gauss(0, rate / 5) for c in range(CYCLES)]
    return series(
        rng, "l_host_trim", quanta, quantum=PAGE, channel="host", rate=rate, footprint=rng.randrange(20_000, 100_000)
    )


@kind
def l_host_block(rng: random.Random) -> Series:
    """64 KiB to 1 MiB per failed load behind a control block that went flat."""
    arms, rate = block(rng, 5, 8), rng.randint(16, 256)
    trickle = [float(rng.random() < 0.05) for _ in range(CYCLES)]
    quanta = add(levels(trickle), on_treatment(arms, [float(rate)] * CYCLES))
    return series(rng, "l_host_block", quanta, quantum=PAGE, channel="host", arms=arms, rate=rate, footprint=5000)


@kind
def l_two_sizes(rng: random.Random) -> Series:
    """Large and small in turn."""
    small, large = rng.randint(1, 3), rng.randint(3, 8)
    quanta = levels(float(large if c % 2 else small) for c in range(CYCLES))
    return series(rng, "l_two_sizes", quanta, rate=(small + large) / 2)


@kind
def l_random_size(rng: random.Random) -> Series:
    """Another size each time."""
    most = rng.randint(2, 20)
    quanta = levels(float(rng.randint(0, most)) for _ in range(CYCLES))
    return series(rng, "l_random_size", quanta, rate=most / 2)


@kind
def l_batch(rng: random.Random) -> Series:
    """Several quanta at once, every few cycles."""
    period, size = rng.randint(2, 8), rng.randint(2, 20)
    return series(rng, "l_batch", [float(size * (c // period)) for c in range(CYCLES)], rate=size / period)


@kind
def l_jitter(rng: random.Random) -> Series:
    """One quantum or more per cycle beside readings that vary by one or two."""
    rate = rng.randint(1, 3)
    quanta = add([float(rate * c) for c in range(CYCLES)], noise(rng, rng.randint(1, 2)))
    return series(rng, "l_jitter", quanta, rate=rate)


@kind
def l_late(rng: random.Random) -> Series:
    """Begins only after some flat cycles."""
    begins, rate = rng.randint(10, 35), rng.randint(1, 8)
    return series(rng, "l_late", [float(rate * max(0, c - begins)) for c in range(CYCLES)], rate=rate)


@kind
def l_accelerating(rng: random.Random) -> Series:
    quanta = [0.5 * c + 0.01 * c * c for c in range(CYCLES)]
    return series(rng, "l_accelerating", quanta, rate=None)


@kind
def l_handles(rng: random.Random) -> Series:
    """One or two descriptors or threads per cycle."""
    arms, rate = rng.choice((block(rng, 4, 8), "T" * CYCLES)), rng.randint(1, 2)
    quanta = on_treatment(arms, [float(rate)] * CYCLES)
    return series(rng, "l_handles", quanta, quantum=1, channel="count", arms=arms, rate=rate)


# --- on the edge of what is promised, or slower --------------------------------------------------


@kind
def m_page_slow(rng: random.Random) -> Series:
    rate = 1 / rng.uniform(11, 40)
    return series(rng, "m_page_slow", pages(rng, rate), rate=rate)


@kind
def m_one_in_ten(rng: random.Random) -> Series:
    """Leaks in one of ten cycles, at random: the slowest that is promised to be found, and the hardest to time."""
    size = rng.randint(1, 6)
    return series(
        rng, "m_one_in_ten", levels(float(size * (rng.random() < 0.1)) for _ in range(CYCLES)), rate=size / 10
    )


@kind
def m_decelerating(rng: random.Random) -> Series:
    scale = rng.uniform(1.2, 4)
    return series(rng, "m_decelerating", [float(int(scale * c**0.5)) for c in range(CYCLES)], rate=None)


# --- one quantum in one of ten cycles, at random, below readings that go up and down by more ----------


@kind
def m_below_sawtooth(rng: random.Random) -> Series:
    period, each = rng.randint(3, 12), rng.randint(1, 5)
    return _below(rng, "m_below_sawtooth", [float(each * (cycle % period)) for cycle in range(CYCLES)])


@kind
def m_below_jitter(rng: random.Random) -> Series:
    return _below(rng, "m_below_jitter", noise(rng, rng.randint(1, 4)))


@kind
def m_below_collector(rng: random.Random) -> Series:
    return _below(rng, "m_below_collector", collected(rng))


def _below(rng: random.Random, name: str, above: list[float]) -> Series:
    hits = levels(float(rng.random() < 0.1) for _ in range(CYCLES))
    return series(rng, name, add(above, hits), rate=0.1)
