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
    """

    cycles: Sequence[int]
    clocks: Sequence[int]
    sizes: Sequence[int]

    def __len__(self) -> int:
        return len(self.clocks)

    @cached_property
    def gaps(self) -> list[int]:
        """Loads between steps, the first counted from the start; shape [steps]."""
        return [after - before for before, after in zip([0, *self.clocks], self.clocks, strict=False)]

    @cached_property
    def are_irregular(self) -> bool:
        """Say whether the steps come at times that no fixed period explains."""
        gaps = self.gaps
        return len(gaps) > 1 and deviation(gaps) > IRREGULAR * sum(gaps) / len(gaps)

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

        The interval of regular steps is one mean step over the whole span, as one step may be due at either end; of
        irregular ones it is Student's t over the growth of each load.
        """
        span = self.clocks[-1] - self.clocks[0] if self.clocks else 0
        if span < 1:
            return None
        grown = sum(self.sizes) - self.sizes[0]
        rate = grown / span
        if self.are_irregular:
            margin = _student_t(len(self) - 1) * self._standard_error(rate, span)
        else:
            margin = rate / (len(self) - 1)
        return Rate(rate, rate - margin, rate + margin)

    def _standard_error(self, mean: float, span: int) -> float:
        if span == 1:
            return mean
        squares = sum((size - mean) ** 2 for size in self.sizes[1:])
        without = span - (len(self) - 1)
        variance = (squares + without * mean**2) / (span - 1)
        return float((variance / span) ** 0.5)


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
