"""The growth test of one metric: fed one post-unload reading at a time, it says LEAK, STABLE or INCONCLUSIVE."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from tritonchaos.growth import rules
from tritonchaos.growth.arms import control_rate, e_value
from tritonchaos.growth.granularity import Granularity
from tritonchaos.growth.noise import NoiseMeter
from tritonchaos.growth.readings import Readings
from tritonchaos.growth.shapes import shape_of
from tritonchaos.growth.stable import FLAT_BEFORE_DOUBLING, Exclusion, exclusion, stable_rule
from tritonchaos.growth.state import Growth, GrowthEvent, GrowthState
from tritonchaos.growth.steps import Staircase, start_of
from tritonchaos.growth.trial import Trial
from tritonchaos.growth.wording import in_plain_words, what_is_missing
from tritonchaos.observations import Arm
from tritonchaos.post_unload import Channel

# The steps are looked at one by one after each reading as long as there are few; a series with more of them and no
# verdict is looked at whenever it has grown by another 20th, so that a reading costs the same however long the run.
_STEPS_LOOKED_AT_EACH_TIME: Final = 128
_SHARE: Final = 20
_LONG: Final = 1_000  # readings from which on a smallest step that differs by less than the next share is the same
_SAME_STEP: Final = 0.02
_UNDECIDED: Final = GrowthState(Growth.INCONCLUSIVE, reason="ask for the state to know what is missing")


class GrowthTest:
    """Sequential growth test of one metric.

    Each reading is judged with all before it, and what is said depends on the readings alone: a stored run is judged as
    it was live. LEAK is final. STABLE may still become LEAK, and is taken back when the floor rises twice after it.

    Args:
        quantum: Granularity of the readings, in bytes (1 for counts); None: learned from them.
        footprint: Bytes that a loaded model takes, 0 if unknown.
        channel: Where the readings come from: device, host or count.
        interleaved: Control and treatment cycles come in coin-ordered pairs; may be set later, once known.
        planned_share: Share of treatment cycles in those pairs.
        finest_quantum: The finest that is learned, where `quantum` is None; None: as usual on this channel.

    Attributes:
        latest: The verdict up to now, with its numbers at the reading that decided it; `state` has those of now, and
            what is missing where nothing is decided.
    """

    def __init__(
        self,
        quantum: int | None,
        footprint: int = 0,
        channel: Channel | str = Channel.DEVICE,
        interleaved: bool = False,
        planned_share: float = 0.5,
        finest_quantum: int | None = None,
    ) -> None:
        self.footprint = footprint
        self.channel = Channel(channel)
        self.interleaved = interleaved
        self.planned_share = planned_share
        self.latest = GrowthState(Growth.INCONCLUSIVE, reason="no treatment cycle was judged")
        self._granularity = Granularity(quantum, self.channel, finest_quantum)
        self._readings = Readings()
        self._noise = NoiseMeter(self._readings, self.channel)
        self._gate = self._noise.gate(self.quantum)
        self._stairs = Staircase(self._readings)
        self._exclusion: Exclusion | None = None
        self._stable_at = 0
        self._looked_at = 0

    @property
    def quantum(self) -> int:
        """Granularity of the readings, in bytes (1 for counts), given or learned."""
        return self._granularity.quantum

    @property
    def treatment_cycles(self) -> int:
        """Treatment cycles that were taken."""
        return self._readings.treated[-1] if len(self._readings) else 0

    @property
    def readings(self) -> Readings:
        """The readings that were taken, in order."""
        return self._readings

    def see(self, value: int, arm: Arm, loads: int = 1) -> GrowthState:
        """Take the next post-unload reading; return the verdict with it, as `latest`.

        Args:
            value: What is in use once the cycle's models are gone, in bytes (objects for counts).
            arm: Arm of the cycle.
            loads: How many times the cycle did what a cycle does before this reading. Rates are stated per load, and
                STABLE waits for flat cycles at the present number.
        """
        self._readings.add(value, arm, loads)
        self._granularity.take(self._readings)
        self._noise.take()
        self._stairs.take()
        if self._noise.is_due():
            self._gate = self._noise.gate(self.quantum)
        self._keep_stairs()
        if self._readings.block >= 0:
            self._judge()
        return self.latest

    def _keep_stairs(self) -> None:
        """Build the staircase anew where what it rests on has changed."""
        start, step = start_of(self._readings, self.interleaved), self._gate.step
        same = _SAME_STEP * step if len(self._readings) > _LONG else 0.0
        if start != self._stairs.start or abs(step - self._stairs.step) > same:
            self._stairs.rebuild(start, step)

    def _judge(self) -> None:
        trial = self._trial()
        self._exclusion = None if self._gate.is_too_noisy else exclusion(trial)
        verdict, rule = self._verdict(trial)
        if verdict is Growth.INCONCLUSIVE:
            self.latest = _UNDECIDED
        elif verdict is not self.latest.verdict:
            self.latest = self._state(trial, verdict, rule)

    def _verdict(self, trial: Trial) -> tuple[Growth, str]:
        before = self.latest
        if before.verdict is Growth.LEAK:
            return Growth.LEAK, before.rule
        if self._gate.is_too_noisy:
            is_stable = before.verdict is Growth.STABLE
            return (Growth.STABLE, before.rule) if is_stable else (Growth.INCONCLUSIVE, "")
        if self._is_to_be_looked_at(trial) and (rule := rules.leak_rule(trial)):
            return Growth.LEAK, rule
        if before.verdict is Growth.STABLE and self._still_stable(trial):
            return Growth.STABLE, before.rule
        if rule := stable_rule(trial):
            self._stable_at = len(self._readings) - 1
            return Growth.STABLE, rule
        return Growth.INCONCLUSIVE, ""

    def _is_to_be_looked_at(self, trial: Trial) -> bool:
        count = len(self._readings)
        is_due = trial.floor.steps <= _STEPS_LOOKED_AT_EACH_TIME or count >= self._looked_at + self._looked_at // _SHARE
        if is_due:
            self._looked_at = count
        return is_due

    def _still_stable(self, trial: Trial) -> bool:
        return not trial.stairs.has_treated_after(trial.floor, self._stable_at, 2)

    def _state(self, trial: Trial, verdict: Growth, rule: str) -> GrowthState:
        before, rate = self.latest, trial.rate
        has_decided = verdict is not Growth.INCONCLUSIVE and before.verdict is verdict
        return GrowthState(
            verdict=verdict,
            rule=rule,
            cycles_used=before.cycles_used if has_decided else self.treatment_cycles,
            bytes_per_cycle=rate.bytes_per_cycle if rate else None,
            interval=(rate.low, rate.high) if rate else None,
            control_bytes_per_cycle=control_rate(trial),
            excluded_bytes_per_cycle=exclusion(trial).bytes_per_cycle() if verdict is Growth.STABLE else None,
            reason=what_is_missing(trial) if verdict is Growth.INCONCLUSIVE else "",
            shape=shape_of(trial, verdict, rule),
            e_value=e_value(trial) if self.interleaved else None,
            footprints_per_cycle=rate.bytes_per_cycle / self.footprint if rate and self.footprint > 0 else None,
            loads=trial.loads,
            quantum=self.quantum,
        )

    # --- on demand -------------------------------------------------------------------------------

    @property
    def state(self) -> GrowthState:
        """What all readings up to now say, with events and in plain words."""
        if self._readings.block < 0:
            return self.latest
        trial, state = self._trial(), self.brief()
        is_treatment = self._readings.is_treatment
        events = tuple(
            GrowthEvent(step.cycle, Arm.TREATMENT if is_treatment(step.cycle) else Arm.CONTROL, step.size)
            for step in trial.all_steps
        )
        return replace(state, events=events, plain_words=in_plain_words(trial, state))

    def brief(self) -> GrowthState:
        """Return what all readings up to now say, without events and words."""
        if self._readings.block < 0:
            return self.latest
        return self._state(self._trial(), self.latest.verdict, self.latest.rule)

    @property
    def wants_more_loads(self) -> bool:
        """Whether 12 treatment cycles were flat at the present number of loads, so that more loads would show more."""
        if self.latest.verdict is Growth.LEAK or self._exclusion is None:
            return False
        return self._exclusion.flat >= FLAT_BEFORE_DOUBLING

    def excluded_so_far(self) -> float | None:
        """Return the smallest leak, in bytes per cycle, that the cycles up to now would have shown; None: any may be.

        May be called from another thread while readings come in.
        """
        known = self._exclusion
        rate = math.inf if known is None else known.bytes_per_cycle()
        return rate if math.isfinite(rate) else None

    def _trial(self) -> Trial:
        return Trial(
            quantum=self.quantum,
            footprint=self.footprint,
            channel=self.channel,
            interleaved=self.interleaved,
            planned_share=self.planned_share,
            readings=self._readings,
            gate=self._gate,
            stairs=self._stairs,
            floor=self._stairs.now(self._gate),
        )
