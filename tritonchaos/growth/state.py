"""What the growth test says of a series."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tritonchaos.observations import Arm


class Growth(str, Enum):
    """What the growth test says of a series."""

    LEAK = "LEAK"
    STABLE = "STABLE"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True)
class GrowthEvent:
    """What is kept rose at a cycle.

    Attributes:
        cycle: Index among all readings of the series.
        grown_bytes: Rise above the level of the event before, in bytes (objects for counts).
    """

    cycle: int
    arm: Arm
    grown_bytes: int


@dataclass(frozen=True, slots=True)
class GrowthState:
    """What the growth test says after a reading.

    Where cycles repeat their loads (`amplify`), all rates are per load.

    Attributes:
        rule: The rule that decided: "steady", "decelerating", "footprint" (LEAK), "flat" or "slow" (STABLE); "" before.
        cycles_used: Treatment cycles up to the decision, or up to now.
        bytes_per_cycle: Growth per treatment cycle, in bytes (objects for counts); None where too little grew.
        interval: 95 % interval of the same.
        control_bytes_per_cycle: Growth per control cycle once past its warm-up, in bytes.
        excluded_bytes_per_cycle: For STABLE, the smallest leak that would have been found (99 %).
        reason: For INCONCLUSIVE, what is missing.
        shape: "per cycle" or "decelerating" (LEAK); "flat", "one-time step", "warm-up plateau", "pool that filled" or
            "retention released in bursts" (STABLE); "drift of a co-tenant" or "undecided".
        e_value: Evidence that the treatment causes the growth, where the arms are coin-ordered: one in so many runs
            looks like this by chance. None elsewhere.
        footprints_per_cycle: Growth per treatment cycle in loaded models; None where no footprint is known.
        loads: Loads of each cycle at present.
        quantum: Granularity of the readings, in bytes (1 for counts), given or learned.
        events: What rose, and when; filled by `GrowthTest.state`.
        plain_words: A paragraph with the numbers that decided; filled by `GrowthTest.state`.
    """

    verdict: Growth
    rule: str = ""
    cycles_used: int = 0
    bytes_per_cycle: float | None = None
    interval: tuple[float, float] | None = None
    control_bytes_per_cycle: float = 0.0
    excluded_bytes_per_cycle: float | None = None
    reason: str = ""
    shape: str = "undecided"
    e_value: float | None = None
    footprints_per_cycle: float | None = None
    loads: int = 1
    quantum: int = 1
    events: tuple[GrowthEvent, ...] = ()
    plain_words: str = ""
