"""Bounded series: all of them must not be called LEAK. The first letter is s; h where growth ends too late to know."""

from __future__ import annotations

import math
import random

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
    series,
    warm_up,
)
from tests.growth.series import Series

PAGE = 4096


def bounded_kinds() -> list[str]:
    return sorted(name for name in KINDS if name.startswith("s_"))


def hard_kinds() -> list[str]:
    return sorted(name for name in KINDS if name.startswith("h_"))


# --- as in the labelled set ----------------------------------------------------------------------


@kind
def s_flat(rng: random.Random) -> Series:
    return series(rng, "s_flat", [0.0] * CYCLES)


@kind
def s_warmup_early(rng: random.Random) -> Series:
    return series(rng, "s_warmup_early", levels(warm_up(rng)))


@kind
def s_warmup_late(rng: random.Random) -> Series:
    at = {rng.randint(3, 12): rng.randint(1, 20) for _ in range(rng.randint(1, 4))}
    late = levels(float(at.get(cycle, 0)) for cycle in range(CYCLES))
    return series(rng, "s_warmup_late", add(levels(warm_up(rng)), late))


@kind
def s_saturating(rng: random.Random) -> Series:
    top, tau = rng.randint(4, 60), rng.uniform(2, 7)
    return series(rng, "s_saturating", [top * (1 - math.exp(-cycle / tau)) for cycle in range(CYCLES)])


@kind
def s_pool_linear(rng: random.Random) -> Series:
    cap, each = rng.randint(2, 17), rng.randint(1, 40)
    return series(rng, "s_pool_linear", add(levels(warm_up(rng, 1)), [each * min(c, cap) for c in range(CYCLES)]))


@kind
def s_pool_coupon(rng: random.Random) -> Series:
    return series(rng, "s_pool_coupon", coupon(rng, rng.randint(2, 10)))


def coupon(rng: random.Random, handles: int) -> list[float]:
    """A random handle per cycle; its first use costs."""
    seen: set[int] = set()
    each, found = rng.randint(1, 30), []
    for _ in range(CYCLES):
        seen.add(rng.randrange(handles))
        found.append(float(each * len(seen)))
    return found


@kind
def s_doubling(rng: random.Random) -> Series:
    ends = rng.choice((8, 16))
    return series(rng, "s_doubling", [2.0 * 2 ** int(math.log2(min(cycle, ends) + 1)) for cycle in range(CYCLES)])


@kind
def s_sawtooth(rng: random.Random) -> Series:
    period, each, base = rng.randint(3, 12), rng.randint(1, 5), rng.randint(0, 9)
    return series(rng, "s_sawtooth", [0.0, *(base + each * (cycle % period) for cycle in range(CYCLES - 1))])


@kind
def s_jitter(rng: random.Random) -> Series:
    return series(rng, "s_jitter", add(levels(warm_up(rng)), noise(rng, rng.randint(1, 4))))


@kind
def s_outliers(rng: random.Random) -> Series:
    return series(rng, "s_outliers", add(levels(warm_up(rng)), outliers(rng)))


@kind
def s_cotenant_step(rng: random.Random) -> Series:
    at, size = rng.randint(5, 90), rng.randint(20, 300)
    return series(rng, "s_cotenant_step", add(levels(warm_up(rng)), [size * (cycle >= at) for cycle in range(CYCLES)]))


@kind
def s_cotenant_updown(rng: random.Random) -> Series:
    at, size = rng.randint(5, 60), rng.randint(20, 300)
    stays = rng.randint(4, 30)
    there = [float(size * (at <= cycle < at + stays)) for cycle in range(CYCLES)]
    return series(rng, "s_cotenant_updown", add(levels(warm_up(rng)), there))


@kind
def s_host_noise(rng: random.Random) -> Series:
    spread = rng.uniform(30, 300)
    quanta = [15_000 * (1 - math.exp(-cycle)) + rng.gauss(0, spread) for cycle in range(CYCLES)]
    return series(rng, "s_host_noise", quanta, quantum=PAGE, channel="host", footprint=rng.randrange(20_000, 100_000))


@kind
def s_host_plateau(rng: random.Random) -> Series:
    top, tau, spread = rng.uniform(10_000, 25_000), rng.uniform(2, 5), rng.uniform(60, 400)
    quanta = [top * (1 - math.exp(-cycle / tau)) + rng.gauss(0, spread) for cycle in range(CYCLES)]
    return series(rng, "s_host_plateau", quanta, quantum=PAGE, channel="host", footprint=rng.randrange(20_000, 100_000))


@kind
def s_host_trim(rng: random.Random) -> Series:
    period, each = rng.randint(4, 11), rng.uniform(400, 1200)
    quanta = [
        10_000 * (1 - math.exp(-cycle / 2)) + each * (cycle % period) + rng.gauss(0, 250) for cycle in range(CYCLES)
    ]
    return series(rng, "s_host_trim", quanta, quantum=PAGE, channel="host", footprint=rng.randrange(20_000, 100_000))


@kind
def s_arm_block(rng: random.Random) -> Series:
    arms = block(rng)
    once = (float(rng.randint(0, 9)) if cycle < 2 else 0.0 for cycle in range(CYCLES))
    return series(rng, "s_arm_block", add(levels(warm_up(rng, 1)), on_treatment(arms, once)), arms=arms)


@kind
def s_arm_inter(rng: random.Random) -> Series:
    once = (float(rng.randint(0, 20)) if cycle < 3 else 0.0 for cycle in range(CYCLES))
    arms = "CT" * (CYCLES // 2)
    return series(rng, "s_arm_inter", add(levels(warm_up(rng, 3)), on_treatment(arms, once)), arms=arms)


@kind
def s_arm_rand(rng: random.Random) -> Series:
    """A pool that both arms fill."""
    cap, each = rng.randint(8, 36), rng.randint(1, 3)
    return series(rng, "s_arm_rand", [float(each * min(c, cap)) for c in range(CYCLES)], arms=coin_pairs(rng))


# --- what real servers do and the labelled set lacks ---------------------------------------------


@kind
def s_shape_cache(rng: random.Random) -> Series:
    """A cache by input shape: the cycles go through a few shapes in turn, each of which costs once."""
    shapes = rng.randint(2, 14)
    costs = [rng.randint(1, 30) for _ in range(shapes)]
    return series(rng, "s_shape_cache", levels(float(costs[c]) if c < shapes else 0.0 for c in range(CYCLES)))


@kind
def s_two_pools(rng: random.Random) -> Series:
    """Two pools of different pace that fill at different times."""
    first, second = rng.randint(2, 8), rng.randint(6, 16)
    one, two = rng.randint(1, 9), rng.randint(1, 9)
    return series(
        rng, "s_two_pools", [float(one * min(c, first) + two * min(c // 2, second // 2)) for c in range(CYCLES)]
    )


@kind
def s_lazy_kernels(rng: random.Random) -> Series:
    """Kernels are loaded when first used: a few steps that lie far apart, the last ones late."""
    at = sorted(rng.sample(range(3, 60), rng.randint(1, 3)))
    late = levels(float(rng.randint(1, 6)) if cycle in at else 0.0 for cycle in range(CYCLES))
    return series(rng, "s_lazy_kernels", add(levels(warm_up(rng)), late))


@kind
def s_collector(rng: random.Random) -> Series:
    """A garbage collector that runs at irregular times and leaves a little each time."""
    return series(rng, "s_collector", collected(rng))


@kind
def s_shrinking(rng: random.Random) -> Series:
    """A pool that is filled by the first cycles and given back bit by bit."""
    top, each = rng.randint(10, 60), rng.randint(5, 20)
    return series(rng, "s_shrinking", [float(max(0, top - max(0, c - 3) // each)) for c in range(CYCLES)])


@kind
def s_flicker(rng: random.Random) -> Series:
    """A level between two quanta: the reading shows now the one, now the other."""
    share = rng.uniform(0.05, 0.6)
    return series(rng, "s_flicker", add(levels(warm_up(rng)), noise(rng, 1, share)))


@kind
def s_cotenant_ramp(rng: random.Random) -> Series:
    """Another process starts, takes memory over a few cycles, and stays."""
    at, lasts, each = rng.randint(3, 40), rng.randint(2, 9), rng.randint(2, 60)
    ramp = [float(each * min(max(0, cycle - at), lasts)) for cycle in range(CYCLES)]
    return series(rng, "s_cotenant_ramp", add(levels(warm_up(rng)), ramp))


@kind
def s_cotenant_visits(rng: random.Random) -> Series:
    """Another process comes and goes all the time."""
    there, found, size = False, [], rng.randint(5, 200)
    for _ in range(CYCLES):
        there = not there if rng.random() < 0.15 else there
        found.append(float(size * there))
    return series(rng, "s_cotenant_visits", found)


@kind
def s_arenas(rng: random.Random) -> Series:
    """Each load thread takes an arena with its first load (glibc: 38 to 39 pages), then single pages trickle in."""
    threads = rng.choice((2, 4, 8, 16, 32))
    steps = [39.0 if cycle < threads else float(rng.random() < 0.04) for cycle in range(CYCLES)]
    return series(rng, "s_arenas", levels(steps), quantum=PAGE, channel="host", footprint=rng.randrange(100, 100_000))


@kind
def s_first_touch(rng: random.Random) -> Series:
    """Host memory behind a control block: the other path touches code and heap for the first time, ever more rarely."""
    arms = block(rng, 4, 8)
    first, tau = rng.uniform(5, 80), rng.uniform(1, 6)
    growth = (float(int(first * math.exp(-cycle / tau) * rng.uniform(0.5, 1.5))) for cycle in range(CYCLES))
    quanta = on_treatment(arms, growth)
    return series(rng, "s_first_touch", quanta, quantum=PAGE, channel="host", arms=arms, footprint=5000)


@kind
def s_huge_pages(rng: random.Random) -> Series:
    """The kernel now and then makes huge pages of small ones: few large steps on the host."""
    at = set(rng.sample(range(50), rng.randint(1, 4)))
    steps = [float(rng.randint(100, 512)) if cycle in at else 0.0 for cycle in range(CYCLES)]
    return series(rng, "s_huge_pages", levels(steps), quantum=PAGE, channel="host", footprint=20_000)


@kind
def s_threads(rng: random.Random) -> Series:
    """A thread pool that grows with the first cycles and then stays."""
    most = rng.randint(1, 16)
    counts = [float(min(cycle, most)) for cycle in range(CYCLES)]
    return series(rng, "s_threads", counts, quantum=1, channel="count")


@kind
def s_sockets(rng: random.Random) -> Series:
    """Descriptors that are closed some cycles later."""
    return series(rng, "s_sockets", noise(rng, rng.randint(1, 3)), quantum=1, channel="count")


@kind
def s_pairs_own_pool(rng: random.Random) -> Series:
    """A small pool that only the treatment fills, in coin-ordered pairs."""
    arms, cap = coin_pairs(rng), rng.randint(1, 5)
    growth = (1.0 if cycle < cap else 0.0 for cycle in range(CYCLES))
    return series(rng, "s_pairs_own_pool", on_treatment(arms, growth), arms=arms)


@kind
def s_block_shared_pool(rng: random.Random) -> Series:
    """A control block that is flat, then a one-off of the other path within three cycles."""
    arms, cap = block(rng, 8, 12), rng.randint(1, 3)
    growth = (float(rng.randint(1, 12)) if cycle < cap else 0.0 for cycle in range(CYCLES))
    return series(rng, "s_block_shared_pool", on_treatment(arms, growth), arms=arms)


# --- growth that ends so late that nobody can know ------------------------------------------------


@kind
def h_pool_long(rng: random.Random) -> Series:
    cap, each = rng.randint(26, 60), rng.randint(1, 3)
    return series(rng, "h_pool_long", [float(each * min(c, cap)) for c in range(CYCLES)], footprint=60)


@kind
def h_pool_long_control(rng: random.Random) -> Series:
    """The same after eight control cycles, which fill the pool as well."""
    cap, each = rng.randint(26, 60), rng.randint(1, 3)
    arms = "C" * 8 + "T" * (CYCLES - 8)
    return series(
        rng, "h_pool_long_control", [float(each * min(c, cap)) for c in range(CYCLES)], arms=arms, footprint=60
    )


@kind
def h_many_models(rng: random.Random) -> Series:
    """A pool that keeps whole models, more than four of them."""
    cap, each = rng.randint(5, 17), rng.randint(16, 60)
    return series(rng, "h_many_models", [float(each * min(c, cap)) for c in range(CYCLES)], footprint=each)


@kind
def h_coupon_16(rng: random.Random) -> Series:
    return series(rng, "h_coupon_16", coupon(rng, 16))


@kind
def h_coupon_24(rng: random.Random) -> Series:
    return series(rng, "h_coupon_24", coupon(rng, 24))


@kind
def h_coupon_32(rng: random.Random) -> Series:
    return series(rng, "h_coupon_32", coupon(rng, 32))


@kind
def h_coupon_64(rng: random.Random) -> Series:
    return series(rng, "h_coupon_64", coupon(rng, 64))


@kind
def h_saw_long(rng: random.Random) -> Series:
    period = rng.randint(32, 60)
    return series(rng, "h_saw_long", [float(cycle % period) for cycle in range(CYCLES)], footprint=60)


@kind
def h_saturating(rng: random.Random) -> Series:
    """Fills up like s_saturating, but over 60 cycles and more."""
    top, tau = rng.randint(4, 60), rng.uniform(15, 25)
    return series(rng, "h_saturating", [top * (1 - math.exp(-cycle / tau)) for cycle in range(CYCLES)])


@kind
def h_walk(rng: random.Random) -> Series:
    """A busy co-tenant's random walk of at most a few quanta per cycle."""
    size, share = rng.randint(1, 3), rng.uniform(0.2, 1.0)
    steps = [float(rng.randint(-size, size)) if rng.random() < share else 0.0 for _ in range(CYCLES)]
    return series(rng, "h_walk", levels(steps))


@kind
def h_walk_wide(rng: random.Random) -> Series:
    size = rng.randint(4, 20)
    return series(rng, "h_walk_wide", levels(float(rng.randint(-size, size)) for _ in range(CYCLES)))
