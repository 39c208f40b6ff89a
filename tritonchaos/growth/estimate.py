"""Growth on treatment cycles: when it came, by how much, and the bytes per load that it makes, with an interval."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from tritonchaos.growth.noise import deviation, median

IRREGULAR: Final = 0.3  # gaps whose standard deviation is above this share of their mean are irregular
_CAP: Final = 3  # one step counts at most as three median steps
_EVEN_FROM: Final = 4  # even steps from which on those before may be left out
_NORMAL: Final = 1.959964  # 97.5 % point of the standard normal


@dataclass(frozen=True, slots=True)
class Rate:
    """Growth per treatment cycle (per load, where cycles repeat their loads), in bytes, with its 95 % interval."""

    bytes_per_cycle: float
    low: float
    high: float


@dataclass(frozen=True)
class Steps:
    """The steps on treatment cycles.

    Attributes:
        cycles: Index in the series of each, shape [steps].
        clocks: Loads on treatment cycles since the start, those of the step's cycle included, shape [steps].
        sizes: Rises above the level of the step before, in bytes, shape [steps].
        starts_late: These are the last of more steps, so that the time before the first is no gap.
    """

    cycles: Sequence[int]
    clocks: Sequence[int]
    sizes: Sequence[int]
    starts_late: bool = False

    def __len__(self) -> int:
        return len(self.clocks)

    @cached_property
    def gaps(self) -> list[int]:
        """Loads between steps, the first counted from the start; shape [steps]."""
        return [after - before for before, after in zip([0, *self.clocks], self.clocks, strict=False)]

    @cached_property
    def are_irregular(self) -> bool:
        """Say whether the steps come at times that no fixed period explains.

        The time before the first step is a part of a period, unless it is longer than all others.
        """
        begins_within_a_period = len(self) > 2 and self.gaps[0] <= max(self.gaps[1:])
        return _vary(self.gaps[1:] if self.starts_late or begins_within_a_period else self.gaps)

    @cached_property
    def begin_irregularly(self) -> bool:
        """Say the same where the time before the first step must be a period as well."""
        return _vary(self.gaps[1:] if self.starts_late else self.gaps)

    @cached_property
    def capped(self) -> list[int]:
        """Sizes, each at most three median ones: a single large step is no growth per cycle."""
        cap = int(_CAP * median(self.sizes)) if self.sizes else 0
        return [min(size, cap) for size in self.sizes]

    @cached_property
    def _sums(self) -> list[int]:
        return list(accumulate(self.capped, initial=0))

    @property
    def total(self) -> int:
        """Sum of the capped sizes, in bytes."""
        return self._sums[-1]

    def grown(self, begin: float, end: float) -> int:
        """Return the sum of the capped sizes in the clock interval (begin, end], in bytes."""
        return self._sums[bisect_right(self.clocks, end)] - self._sums[bisect_right(self.clocks, begin)]

    @cached_property
    def rate(self) -> Rate | None:
        """Growth per load from the steps after the first one; None with fewer than two steps.

        What came before the steps were even, a warm-up or what another process gave back, is left out. The rate of
        irregular steps is their sum over their time; that of regular ones is fitted to all of them, as each is off by a
        part of its period, or by what the readings vary. The interval of
        regular steps is one mean step over the whole span, as one step may be due at either end, or what their sizes
        vary by; of irregular ones it is Student's t over the growth of each load.
        """
        even = self._even_part()
        span = even.clocks[-1] - even.clocks[0] if even.clocks else 0
        if span < 1:
            return None
        count = len(even) - 1
        rate = (sum(even.sizes) - even.sizes[0]) / span
        if even.are_irregular:
            margin = _student_t(count) * even._standard_error(rate, span)
        else:
            rate = _slope(even.clocks, even.sizes)
            margin = max(rate / count, _student_t(count) * even._spread_of_sizes() * count**0.5 / span)
        return Rate(rate, rate - margin, rate + margin)

    def _even_part(self) -> Steps:
        """Return the last steps whose sizes and gaps are alike, if they are at least half of all; else all.

        Alike: within a factor of two of the median over the last half of all steps.
        """
        count = len(self)
        if count < 2 * _EVEN_FROM:
            return self
        gap, size = median(self.gaps[count // 2 :]), median(self.sizes[count // 2 :])
        first = count
        while first > 1 and _is_alike(self.gaps[first - 1], gap) and _is_alike(self.sizes[first - 1], size):
            first -= 1
        anchor = first - 1
        if anchor < 1 or count - anchor <= max(_EVEN_FROM, count / 2):
            return self
        return Steps(self.cycles[anchor:], self.clocks[anchor:], self.sizes[anchor:], starts_late=True)

    def _spread_of_sizes(self) -> float:
        return deviation(self.sizes[1:]) if len(self) > 2 else 0.0

    def _standard_error(self, mean: float, span: int) -> float:
        if span == 1:
            return mean
        squares = sum((size - mean) ** 2 for size in self.sizes[1:])
        without = span - (len(self) - 1)
        variance = (squares + without * mean**2) / (span - 1)
        return float((variance / span) ** 0.5)


def _vary(gaps: Sequence[int]) -> bool:
    return len(gaps) > 1 and deviation(gaps) > IRREGULAR * sum(gaps) / len(gaps)


def _slope(clocks: Sequence[int], sizes: Sequence[int]) -> float:
    """Return the least-squares slope of the level after each step over its clock."""
    levels = list(accumulate(sizes))
    time, level = sum(clocks) / len(clocks), sum(levels) / len(levels)
    squares = sum((clock - time) ** 2 for clock in clocks)
    return sum((clock - time) * (at - level) for clock, at in zip(clocks, levels, strict=True)) / squares


def _is_alike(value: float, usual: float) -> bool:
    return usual <= 2 * value <= 4 * usual


def _student_t(freedom: int) -> float:
    """Return the 97.5 % point of Student's t, within 1 % from 3 degrees of freedom.

    Source: Cornish-Fisher expansion, Abramowitz and Stegun 26.7.5.
    """
    z = _NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms)))
