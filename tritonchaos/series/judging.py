"""Judges a recorded series, one value at a time, as a run would have judged it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tritonchaos.growth import Growth, GrowthState, GrowthTest
from tritonchaos.observations import Arm
from tritonchaos.series.records import Series, SeriesFlaw
from tritonchaos.series.sketch import Sketch

# Values after which a series that is still undecided is left so. No run of load and unload cycles needs as many.
BUDGET: Final = 10_000
_ARMS: Final = {"C": Arm.CONTROL, "T": Arm.TREATMENT}
_LEAST_CHANGES: Final = 3
# Pairs in coin order change arm in three of four cycles, independent coins in two; blocks of four and more in one.
_CHANGING_SHARE: Final = 0.3


@dataclass(frozen=True, slots=True)
class SeriesVerdict:
    """What a recorded series shows.

    Attributes:
        cycles: Values used up to the verdict; without one, all that were looked at.
        reason: Why there is no verdict, or on what the verdict rests.
        flaw: Nothing can be told from the series, and the reason says why.
        curve: The values, the largest of those that share a column.
    """

    id: str
    state: GrowthState
    cycles: int
    reason: str
    flaw: bool = False
    curve: list[int] = field(default_factory=list)

    @property
    def verdict(self) -> Growth:
        """LEAK, STABLE or INCONCLUSIVE."""
        return self.state.verdict

    def document(self) -> dict[str, Any]:
        """Return what `judge --series --json` prints of it."""
        state = self.state
        return {
            "id": self.id,
            "verdict": state.verdict.value,
            "bytes_per_cycle": state.bytes_per_cycle,
            "interval_bytes_per_cycle": None if state.interval is None else list(state.interval),
            "cycles": self.cycles,
            "rule": state.rule,
            "shape": state.shape,
            "reason": self.reason,
        }


def judge_series(series: Series, budget: int = BUDGET) -> SeriesVerdict:
    """Feed the growth test with one value after the other, up to its first LEAK or STABLE.

    The values after the verdict are read too, so that a file with a flaw is never judged by what stands before it.

    Args:
        budget: Values after which an undecided series is left so; 0: all are judged, and STABLE may become LEAK.
    """
    judged = _Judged(series, budget)
    try:
        for value in series.values:
            judged.see(value)
    except SeriesFlaw as flaw:
        state = GrowthState(Growth.INCONCLUSIVE, reason=str(flaw))
        return SeriesVerdict(series.id, state, judged.seen, str(flaw), True, judged.sketch.columns())
    return judged.result()


def are_interleaved(arms: str) -> bool:
    """Say whether control and treatment cycles alternate by coin or in pairs, rather than in blocks."""
    mixed = arms.strip("C")
    changes = mixed.count("CT") + mixed.count("TC")
    return changes >= _LEAST_CHANGES and changes >= _CHANGING_SHARE * len(mixed)


class _Judged:
    def __init__(self, series: Series, budget: int) -> None:
        self._series = series
        self._budget = budget
        self._test = GrowthTest(
            series.quantum, series.footprint, series.channel, interleaved=are_interleaved(series.arms)
        )
        self._arms: Iterator[str] = iter(series.arms)
        self._verdict = Growth.INCONCLUSIVE
        self._decided_at = 0
        self._is_over = False
        self._used = 0
        self.seen = 0
        self.sketch = Sketch()

    def see(self, value: int) -> None:
        self.seen += 1
        if self._is_over:
            return
        arm = _ARMS[self._letter()]
        self._used += 1
        self.sketch.add(value)
        verdict = self._test.see(value, arm).verdict
        if verdict is not self._verdict:
            self._verdict, self._decided_at = verdict, self._used
        if self._budget and (verdict is not Growth.INCONCLUSIVE or self._used >= self._budget):
            self._is_over = True

    def _letter(self) -> str:
        if not self._series.arms:
            return "T"
        letter = next(self._arms, None)
        if letter is None:
            arms = len(self._series.arms)
            raise SeriesFlaw(f"found {arms} arms for more values, expected one letter for each value")
        return letter

    def result(self) -> SeriesVerdict:
        state = self._test.state
        decided = state.verdict is not Growth.INCONCLUSIVE
        cycles = self._decided_at if decided and state.verdict is self._verdict else self._used
        return SeriesVerdict(self._series.id, state, cycles, self._reason(state), curve=self.sketch.columns())

    def _reason(self, state: GrowthState) -> str:
        if state.verdict is not Growth.INCONCLUSIVE:
            return state.plain_words or state.reason
        if self._used == 0:
            return "the series is empty"
        if self._used == 1:
            return f"one value tells nothing about growth; {state.reason}"
        if self._budget and self._used >= self._budget:
            return f"{state.reason}; {self._used} values were judged, the rest was not (--budget)"
        return state.reason
