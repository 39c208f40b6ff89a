"""What the rules of the growth test look at: one series up to now, and the growth on its treatment cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tritonchaos.growth.estimate import Rate, Steps
from tritonchaos.growth.noise import NoiseGate
from tritonchaos.growth.readings import Readings
from tritonchaos.growth.steps import Floor, FloorStep, Staircase
from tritonchaos.post_unload import Channel

_CONTROL_FLAT_CYCLES: Final = 3


@dataclass(slots=True)
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
    readings: Readings
    gate: NoiseGate
    stairs: Staircase
    floor: Floor
    _split: tuple[Steps, list[FloorStep]] | None = None

    # --- time ------------------------------------------------------------------------------------

    @property
    def cycles(self) -> int:
        """Treatment cycles from the start to the last trusted cycle."""
        floor, treated = self.floor, self.readings.treated
        return treated[floor.known_to - 1] - treated[floor.start] if floor.known_to > floor.start else 0

    @property
    def cycles_alike(self) -> int:
        """Those of them that loaded as often as the last one; in coin-ordered pairs all, as both arms load alike.

        What fills up within some hundred loads looks even over the few that the first cycles of an amplified phase
        make.
        """
        floor, treated, since = self.floor, self.readings.treated, self.readings.loads_since
        if self.interleaved or since <= floor.start:
            return self.cycles
        return max(0, treated[floor.known_to - 1] - treated[since - 1])

    @property
    def now(self) -> int:
        """Loads on those treatment cycles."""
        floor = self.floor
        return self.readings.clocks([floor.known_to - 1], floor.start)[0] if floor.known_to > floor.start else 0

    @property
    def loads(self) -> int:
        """Loads of one cycle, at present."""
        return self.readings.loads

    # --- growth ----------------------------------------------------------------------------------

    @property
    def steps(self) -> Steps:
        """Believed steps on treatment cycles."""
        return (self._split or self._by_arm())[0]

    @property
    def control_steps(self) -> list[FloorStep]:
        """Believed steps on control cycles."""
        return (self._split or self._by_arm())[1]

    def _by_arm(self) -> tuple[Steps, list[FloorStep]]:
        self._split = self.stairs.split(self.floor)
        return self._split

    @property
    def all_steps(self) -> list[FloorStep]:
        """Believed steps on both arms."""
        return self.stairs.steps_of(self.floor)

    @property
    def rate(self) -> Rate | None:
        """Growth per load on treatment cycles."""
        return self.steps.rate

    @property
    def is_irregular(self) -> bool:
        """Say whether the steps come at irregular times; on the host the time before the first step must fit too."""
        is_host = self.channel is Channel.HOST
        return self.steps.begin_irregularly if is_host else self.steps.are_irregular

    @property
    def grown_per_reading(self) -> float:
        """Growth per load, times the loads before a reading: what a treatment cycle adds, at present."""
        return self.rate.bytes_per_cycle * self.loads if self.rate else 0.0

    @property
    def end(self) -> int:
        """Clock at which growth ended, or now if a step is at most one cycle old."""
        if not len(self.steps):
            return self.now
        last = self.steps.clocks[-1]
        return last if self.now - last <= self.loads else self.now

    def grown(self, begin: float, end: float) -> int:
        """Return the growth on treatment cycles in the clock interval (begin, end], in bytes."""
        return self.steps.grown(begin, end)

    def level(self, at: int) -> int:
        """Return the floor of a cycle, in bytes."""
        return self.stairs.level(self.floor, at)

    # --- arms ------------------------------------------------------------------------------------

    @property
    def block(self) -> int:
        """Control cycles before the first treatment cycle; 0 where the arms are interleaved."""
        return 0 if self.interleaved else max(self.readings.block, 0)

    @property
    def has_flat_control(self) -> bool:
        """Say whether there is a control arm that no longer warms up, so that growth is the treatment's own.

        The last three cycles of a control block differ by no more than a believable step, or a tenth of what a
        treatment cycle grows; coin-ordered pairs need no such look.
        """
        if self.interleaved:
            return True
        if self.block < _CONTROL_FLAT_CYCLES:
            return False
        last = [self.readings.smooth(at) for at in range(self.block - _CONTROL_FLAT_CYCLES, self.block)]
        limit = max(self.gate.step, self.rate.bytes_per_cycle / 10 if self.rate else 0)
        return max(last) - min(last) <= limit
