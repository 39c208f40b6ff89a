"""All readings of a series, compactly, with the clock of its treatment cycles."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from tritonchaos.observations import Arm

_CONTROL: Final = 0
_TREATMENT: Final = 1


class Readings:
    """Readings in order: 13 bytes each, as a run may have a million.

    Time is counted on treatment cycles only, as only they may be blamed. It is counted twice: in cycles, and in loads,
    which differ where a cycle repeats its loads (`loads` above 1).

    Attributes:
        values: Readings in bytes (objects for counts), shape [cycles].
        treated: Treatment cycles up to and including each cycle, shape [cycles].
        block: Cycles before the first treatment cycle; -1 while there is none.
        loads: Loads of the last cycle.
        loads_since: Cycle from which on all cycles had that many.
        last_treatment: Last treatment cycle; -1 while there is none.
    """

    __slots__ = ("_changes", "_is_treatment", "block", "last_treatment", "loads", "loads_since", "treated", "values")

    def __init__(self) -> None:
        self.values = array("q")
        self.treated = array("i")
        self.block = -1
        self.last_treatment = -1
        self.loads = 1
        self.loads_since = 0
        self._is_treatment = bytearray()
        # (treatment cycles before the change, loads on them, loads per cycle from then on)
        self._changes: list[tuple[int, int, int]] = [(0, 0, 1)]

    def __len__(self) -> int:
        return len(self.values)

    def add(self, value: int, arm: Arm, loads: int) -> None:
        """Take the next reading."""
        at = len(self.values)
        count = self.treated[-1] if at else 0
        if loads != self.loads:
            self._changes.append((count, self.load_clock(count), loads))
            self.loads, self.loads_since = loads, at
        is_treatment = arm is Arm.TREATMENT
        if is_treatment:
            self.last_treatment = at
            if self.block < 0:
                self.block = at
        self._is_treatment.append(_TREATMENT if is_treatment else _CONTROL)
        self.treated.append(count + is_treatment)
        self.values.append(value)

    def is_treatment(self, at: int) -> bool:
        """Say whether a cycle is one of the treatment arm."""
        return self._is_treatment[at] == _TREATMENT

    def in_order(self) -> Iterator[tuple[Arm, int]]:
        """Return the arm and the reading of each cycle."""
        arms = (Arm.TREATMENT if code == _TREATMENT else Arm.CONTROL for code in self._is_treatment)
        return zip(arms, self.values, strict=True)

    def load_clock(self, treated: int) -> int:
        """Return the loads on so many first treatment cycles."""
        changes = self._changes
        if len(changes) == 1:
            return treated
        before, loads, each = changes[bisect_right(changes, treated, key=lambda change: change[0]) - 1]
        return loads + (treated - before) * each

    def clocks(self, cycles: Iterable[int], start: int) -> list[int]:
        """Return the loads on treatment cycles from the start up to and including each of some cycles."""
        treated, base = self.treated, self.load_clock(self.treated[start])
        if len(self._changes) == 1:
            return [treated[at] - base for at in cycles]
        return [self.load_clock(treated[at]) - base for at in cycles]

    def smooth(self, at: int) -> int:
        """Return the median of a reading and its two neighbours: a single outlier vanishes.

        The last reading has one neighbour only; there the smaller of the two counts, so that nothing is believed to
        have grown before it was read twice.
        """
        values = self.values
        if at == 0:
            return values[0]
        before, value = values[at - 1], values[at]
        if at == len(values) - 1:
            return min(before, value)
        after = values[at + 1]
        if before > after:
            before, after = after, before
        return before if value < before else after if value > after else value
