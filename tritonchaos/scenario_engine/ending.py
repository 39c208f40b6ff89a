"""Says after each cycle whether its phase is over before the schedule is."""

from __future__ import annotations

from collections import deque

from tritonchaos.plugins import Advice
from tritonchaos.post_unload import FLAT_AT_LEAST, CycleReading, is_flat, primary_metrics, settle_quantum
from tritonchaos.schedule import Cycle, ScheduledPhase


class Ending:
    """Takes the cycles of a phase one by one.

    Args:
        uses_gpu: `until: flat` looks at device memory.
    """

    def __init__(self, phase: ScheduledPhase, uses_gpu: bool) -> None:
        self._phase = phase
        self._uses_gpu = uses_gpu
        self._levels: dict[str, deque[int]] = {}
        self._judged = 0
        self._start_number = 0
        self.cycles = 0

    def see(self, cycle: Cycle, reading: CycleReading, advice: Advice) -> str | None:
        """Take a cycle; return why the phase ends now, or None."""
        self.cycles += 1
        if cycle.is_warm_up:
            return None
        self._judged += 1
        if reading.start_number != self._start_number:  # what another server held says nothing of this one
            self._start_number = reading.start_number
            self._levels.clear()
        for metric in primary_metrics(self._uses_gpu, reading.values):
            self._levels.setdefault(metric, deque(maxlen=FLAT_AT_LEAST)).append(reading.values[metric])
        if self._judged < self._phase.at_least * self._cycles_per_count():
            return None
        if self._phase.until == "verdict" and advice is Advice.ENOUGH:
            return "verdict"
        return "flat" if self._phase.until == "flat" and self._is_flat() else None

    def _is_flat(self) -> bool:
        """All metrics that decide are flat; without any of them nothing is known to be."""
        return bool(self._levels) and all(
            is_flat(list(levels), settle_quantum(metric)) for metric, levels in self._levels.items()
        )

    def _cycles_per_count(self) -> int:
        """In a phase of coin-ordered pairs `at_least` counts treatment cycles, each with its control cycle."""
        return 1 if self._phase.arm is not None else 2
