"""How many fresh series of which kind: the labelled set's kinds in its own proportions, and those that it lacks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping

from tests.growth import bounded, leaks
from tests.growth.making import KINDS
from tests.growth.series import PUBLIC, Series, read

Job = tuple[str, int]  # kind, and its number among the series of that kind

# What the generator calls otherwise, as it is slower than the promise or has no rate of its own.
_OTHER_NAMES = {"l_page_slow": "m_page_slow", "l_decel_sqrt": "m_decelerating"}


def labelled_kinds(label: str) -> Counter[str]:
    """Return how many labelled series with that label there are of each kind, by the generator's names."""
    return Counter(_OTHER_NAMES.get(one.kind, one.kind) for one in read(PUBLIC) if one.label == label)


def additional_bounded() -> list[str]:
    return [name for name in bounded.bounded_kinds() if name not in labelled_kinds("STABLE")]


def additional_leaks() -> list[str]:
    return [name for name in leaks.leak_kinds() if name not in labelled_kinds("LEAK")]


def in_proportion(weights: Mapping[str, int], count: int) -> list[Job]:
    """Share so many series out among kinds, what does not divide evenly to those whose share was cut most.

    The kinds take turns, so that any long stretch holds all of them in about the same proportions.
    """
    total = sum(weights.values())
    numbers = {name: count * weight // total for name, weight in weights.items()}
    cut = sorted(weights, key=lambda name: (-(count * weights[name] % total), name))
    for name in cut[: count - sum(numbers.values())]:
        numbers[name] += 1
    jobs = [((number + 0.5) / most, name, number) for name, most in numbers.items() for number in range(most)]
    return [(name, number) for _, name, number in sorted(jobs)]


def evenly(kinds: Iterable[str], count: int) -> list[Job]:
    """Share so many series out among kinds, the same number of each."""
    return in_proportion(dict.fromkeys(kinds, 1), count)


def make(job: Job, seed: str) -> Series:
    """Make one series; the seed decides everything."""
    name, number = job
    return KINDS[name](random.Random(f"{seed}/{name}/{number}"))
