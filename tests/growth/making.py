"""What all generated series are made of: a growth per cycle in quanta, an arm order, and a level to start from."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from tests.growth.series import Series
from tritonchaos.units import MIB

CYCLES = 240
KINDS: dict[str, Callable[[random.Random], Series]] = {}


def kind(make: Callable[[random.Random], Series]) -> Callable[[random.Random], Series]:
    KINDS[make.__name__] = make
    return make


def made(kinds: Iterable[str], count: int, seed: str) -> list[Series]:
    """Return so many series, kind after kind in turn; the seed decides everything."""
    names = list(kinds)
    found = []
    for number in range(count):
        name = names[number % len(names)]
        found.append(KINDS[name](random.Random(f"{seed}/{name}/{number}")))
    return found


def label_of(name: str) -> str:
    return {"s": "STABLE", "h": "STABLE", "l": "LEAK", "m": "LEAK"}[name[0]]


def series(
    rng: random.Random,
    name: str,
    quanta: Sequence[float],
    *,
    quantum: int | None = None,
    channel: str = "device",
    arms: str = "",
    rate: float | None = 0.0,
    footprint: int = 0,
) -> Series:
    """Make a series of levels in quanta.

    Args:
        rate: True growth in quanta per treatment cycle.
        footprint: In quanta; 0: drawn, so that what a bounded series keeps is below three loaded models.
    """
    size = quantum or device_quantum(rng)
    if not footprint:
        kept = max(quanta) - quanta[0] if label_of(name) == "STABLE" and channel == "device" else 0
        footprint = rng.randrange(max(4, int(kept / 3) + 1), max(120, int(kept) + 2))
    base = rng.randrange(100, 5000) * size
    return Series(
        name=f"{name}-{rng.random():.6f}",
        kind=name,
        label=label_of(name),
        values=[base + int(level * size) if channel == "host" else base + round(level) * size for level in quanta],
        arms=arms or "T" * len(quanta),
        quantum=size,
        channel=channel,
        footprint=footprint * size,
        bytes_per_cycle=None if rate is None else rate * size,
    )


def device_quantum(rng: random.Random) -> int:
    return rng.choice((2, 2, 2, 4, 32)) * MIB


def levels(steps: Iterable[float]) -> list[float]:
    return list(accumulate(steps))


def warm_up(rng: random.Random, last: int = 2, largest: int = 24) -> list[float]:
    """One-off steps of the first cycles: context, workspaces, first pool."""
    return [rng.choice((0, 0, 1, rng.randrange(largest + 1))) if cycle <= last else 0 for cycle in range(CYCLES)]


def block(rng: random.Random, fewest: int = 3, most: int = 8) -> str:
    """A control block in front, sometimes another at the end."""
    first = rng.randint(fewest, most)
    last = rng.choice((0, 13))
    return "C" * first + "T" * (CYCLES - first - last) + "C" * last


def coin_pairs(rng: random.Random, pairs: int = CYCLES // 2) -> str:
    return "".join(rng.choice(("CT", "TC")) for _ in range(pairs))


def pages(rng: random.Random, per_cycle: float, cycles: int = CYCLES) -> list[float]:
    """Small allocations that fill pages: whole quanta, one every few cycles."""
    filled = rng.random()
    return [float(int(filled + per_cycle * cycle)) for cycle in range(cycles)]


def add(*many: Sequence[float]) -> list[float]:
    return [sum(values) for values in zip(*many, strict=True)]


def on_treatment(arms: str, growth: Iterable[float]) -> list[float]:
    """Let growth happen on treatment cycles only; `growth` is the size of each next step."""
    sizes = iter(growth)
    return levels(next(sizes) if arm == "T" else 0.0 for arm in arms)


def noise(rng: random.Random, width: int, share: float = 1.0) -> list[float]:
    return [float(rng.randint(0, width)) if rng.random() < share else 0.0 for _ in range(CYCLES)]


def outliers(rng: random.Random, share: float = 0.03) -> list[float]:
    return [float(rng.randint(-40, 60)) if rng.random() < share and cycle > 2 else 0.0 for cycle in range(CYCLES)]


def collected(rng: random.Random) -> list[float]:
    """What a garbage collector leaves: it runs at irregular times, once in 17 cycles at least."""
    level, found, since = 0.0, [], 0
    for _ in range(CYCLES):
        since = 0 if rng.random() < 0.18 or since == 17 else since + 1
        level = level + rng.randint(1, 3) if since else float(rng.randint(0, 2))
        found.append(level)
    return found
