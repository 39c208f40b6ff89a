"""The growth test of one metric: fed one post-unload reading at a time, it says LEAK, STABLE or INCONCLUSIVE."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from tritonchaos.growth import rules
from tritonchaos.growth.cleaning import clean
from tritonchaos.growth.stable import FLAT_BEFORE_DOUBLING, excluded_rate, flat_cycles, stable_rule
from tritonchaos.growth.steps import find_steps
from tritonchaos.growth.trial import Trial
from tritonchaos.growth.wording import describe_shape, what_is_missing
from tritonchaos.observations import Arm
from tritonchaos.post_unload import Channel

# Judging looks at the whole series, so that its cost grows with it. Up to here every reading is judged; beyond, only
# when the series has grown by another 25th, which keeps the cost of a long run proportional to its length.
_EVERY_READING_UP_TO: Final = 60
_SHARE: Final = 25
_ARMS: Final = tuple(Arm)


class Growth(str, Enum):
    """What the growth test says of a series."""

    LEAK = "LEAK"
    STABLE = "STABLE"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True)
class GrowthState:
    """What the growth test says after a reading.

    Attributes:
        rule: The rule that decided: "steady", "decelerating", "footprint" (LEAK), "flat" or "slow" (STABLE); "" before.
        cycles_used: Treatment cycles up to the decision, or up to now.
        bytes_per_cycle: Growth per treatment cycle, in bytes (objects for counts); None where too little grew.
        interval: 95 % interval of the same.
        control_bytes_per_cycle: Growth per control cycle once past its warm-up, in bytes.
        excluded_bytes_per_cycle: For STABLE, the smallest leak that would have been found (99 %).
        reason: For INCONCLUSIVE, what is missing.
        shape: "per cycle", "one-time step", "warm-up plateau", "flat", or "undecided".
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


class GrowthTest:
    """Sequential growth test of one metric.

    A reading is judged with all before it: each of the first 60, then whenever the series has grown by 4 %. Which
    ones are depends on their number alone, so that a stored run is judged as it was live. LEAK is final. STABLE may
    still become LEAK, and is taken back when the floor rises twice after it.

    Args:
        quantum: Granularity of the readings, in bytes (1 for counts).
        footprint: Bytes that a loaded model takes, 0 if unknown.
        channel: Where the readings come from: device, host or count.
        interleaved: Control and treatment cycles come in coin-ordered pairs; may be set later, once known.
        planned_share: Share of treatment cycles in those pairs.

    Attributes:
        latest: What was found when the series was last judged; `state` judges what came since.
        treatment_cycles: Treatment cycles that were taken.
    """

    def __init__(
        self,
        quantum: int,
        footprint: int = 0,
        channel: Channel | str = Channel.DEVICE,
        interleaved: bool = False,
        planned_share: float = 0.5,
    ) -> None:
        self.quantum = quantum
        self.footprint = footprint
        self.channel = Channel(channel)
        self.interleaved = interleaved
        self.planned_share = planned_share
        self.latest = GrowthState(Growth.INCONCLUSIVE, reason="no treatment cycle was judged")
        self.treatment_cycles = 0
        self._readings = array("q")  # 8 bytes a cycle; a run may have a hundred thousand
        self._arms = bytearray()  # index in the enumeration of arms
        self._loads = array("H")
        self._stable_at = 0
        self._judged_up_to = 0

    def see(self, value: int, arm: Arm, loads: int = 1) -> GrowthState:
        """Take the next post-unload reading; return what was found when the series was last judged.

        Args:
            value: What is in use once the cycle's models are gone, in bytes (objects for counts).
            arm: Arm of the cycle.
            loads: How many times the cycle did what a cycle does before this reading. Rates are stated per load, and
                STABLE waits for flat cycles at the highest number.
        """
        self._readings.append(value)
        self._loads.append(loads)
        self._arms.append(_ARMS.index(arm))
        self.treatment_cycles += arm is Arm.TREATMENT
        number = len(self._readings)
        if number <= _EVERY_READING_UP_TO or number >= self._judged_up_to + self._judged_up_to // _SHARE:
            self._judge()
        return self.latest

    @property
    def wants_more_loads(self) -> bool:
        """Whether 12 treatment cycles were flat at the present number of loads, so that more loads would show more."""
        if self.state.verdict is Growth.LEAK or not self.treatment_cycles:
            return False
        trial = self._trial(list(self._readings), self._all_arms())
        return not trial.series.is_too_noisy and flat_cycles(trial) >= FLAT_BEFORE_DOUBLING

    @property
    def state(self) -> GrowthState:
        """What all readings up to now say."""
        if self._judged_up_to < len(self._readings):
            self._judge()
        return self.latest

    def _judge(self) -> None:
        self._judged_up_to = len(self._readings)
        if self.treatment_cycles:
            self.latest = self._next_state(self._trial(list(self._readings), self._all_arms()))

    def excluded_so_far(self) -> float | None:
        """Return the smallest leak, in bytes per cycle, that the cycles up to now would have shown; None: any may be.

        May be called from another thread while readings come in.
        """
        arms = self._all_arms()  # an arm is added after its reading, so that there is a reading for each
        if Arm.TREATMENT not in arms:
            return None
        trial = self._trial(list(self._readings[: len(arms)]), arms)
        rate = excluded_rate(trial)
        return rate if math.isfinite(rate) and not trial.series.is_too_noisy else None

    def _all_arms(self) -> list[Arm]:
        return [_ARMS[code] for code in bytes(self._arms)]

    def _trial(self, readings: list[int], arms: list[Arm]) -> Trial:
        series = clean(readings, self.quantum, self.channel)
        return Trial(
            quantum=self.quantum,
            footprint=self.footprint,
            channel=self.channel,
            interleaved=self.interleaved,
            planned_share=self.planned_share,
            arms=arms,
            series=series,
            stairs=find_steps(series, arms, self._loads[: len(arms)], self.interleaved),
        )

    def _next_state(self, trial: Trial) -> GrowthState:
        before = self.latest
        if before.verdict is Growth.LEAK:
            return self._state(trial, Growth.LEAK, before.rule, before.cycles_used)
        if trial.series.is_too_noisy:
            return before if before.verdict is Growth.STABLE else self._state(trial, Growth.INCONCLUSIVE)
        if rule := rules.leak_rule(trial):
            return self._state(trial, Growth.LEAK, rule)
        if before.verdict is Growth.STABLE and self._still_stable(trial):
            return self._state(trial, Growth.STABLE, before.rule, before.cycles_used)
        if rule := stable_rule(trial):
            self._stable_at = trial.stairs.clock[-1]
            return self._state(trial, Growth.STABLE, rule)
        return self._state(trial, Growth.INCONCLUSIVE)

    def _still_stable(self, trial: Trial) -> bool:
        return sum(step.clock > self._stable_at for step in trial.steps) < 2

    def _state(self, trial: Trial, verdict: Growth, rule: str = "", cycles_used: int = 0) -> GrowthState:
        rate = trial.rate
        state = GrowthState(
            verdict=verdict,
            rule=rule,
            cycles_used=cycles_used or self.treatment_cycles,
            bytes_per_cycle=rate.bytes_per_cycle if rate else None,
            interval=(rate.low, rate.high) if rate else None,
            control_bytes_per_cycle=rules.control_rate(trial),
        )
        if verdict is Growth.LEAK:
            return replace(state, shape="per cycle")
        if verdict is Growth.STABLE:
            return replace(state, excluded_bytes_per_cycle=excluded_rate(trial), shape=describe_shape(trial))
        return replace(state, reason=what_is_missing(trial, self.treatment_cycles))
