"""What the rules of the growth test look at: one series up to now, and the growth on its treatment cycles."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tritonchaos.growth.cleaning import CleanSeries
from tritonchaos.growth.estimate import Rate, growth_rate
from tritonchaos.growth.steps import FloorStep, Staircase, control_block
from tritonchaos.observations import Arm
from tritonchaos.post_unload import Channel

_CONTROL_FLAT_CYCLES: Final = 3
_CAP: Final = 3  # one step counts at most as three median steps


@dataclass(frozen=True)
class Trial:
    """Everything the rules look at, for one series up to now.

    Attributes:
        quantum: Granularity of the readings, in bytes (1 for counts).
        footprint: Bytes that a loaded model takes, if known; else 0.
        planned_share: Share of treatment cycles in coin-ordered pairs.
    """

    quantum: int
    footprint: int
    channel: Channel
    interleaved: bool
    planned_share: float
    arms: Sequence[Arm]
    series: CleanSeries
    stairs: Staircase

    @cached_property
    def steps(self) -> list[FloorStep]:
        """Steps on treatment cycles, each counting at most as three median ones."""
        return _capped(self.stairs.on(Arm.TREATMENT))

    @cached_property
    def rate(self) -> Rate | None:
        """Growth per treatment cycle."""
        return growth_rate(self.stairs.on(Arm.TREATMENT))

    @cached_property
    def block(self) -> int:
        """Control cycles before the first treatment cycle."""
        return control_block(self.arms, self.interleaved)

    @cached_property
    def has_flat_control(self) -> bool:
        """Say whether there is a control arm that no longer warms up, so that growth is the treatment's own.

        The last three cycles of a control block differ by no more than a believable step, or a tenth of what a
        treatment cycle grows; coin-ordered pairs need no such look.
        """
        if self.interleaved:
            return True
        if self.block < _CONTROL_FLAT_CYCLES:
            return False
        last = self.series.smooth[self.block - _CONTROL_FLAT_CYCLES : self.block]
        limit = max(self.series.step, self.rate.bytes_per_cycle / 10 if self.rate else 0)
        return max(last) - min(last) <= limit

    @cached_property
    def end(self) -> int:
        """Clock at which growth ended, or now if a step is at most one cycle old."""
        if not self.steps:
            return self.stairs.now
        last = self.steps[-1].clock
        return last if self.stairs.now - last <= 1 else self.stairs.now

    def grown(self, begin: float, end: float) -> int:
        """Return the growth on treatment cycles in the clock interval (begin, end], in bytes."""
        return sum(step.size for step in self.steps if begin < step.clock <= end)


def _capped(steps: Sequence[FloorStep]) -> list[FloorStep]:
    if not steps:
        return []
    cap = int(_CAP * statistics.median(step.size for step in steps))
    return [FloorStep(s.cycle, s.clock, min(s.size, cap), s.arm) for s in steps]
