"""What stayed in use, and under which phase and edit it came: the parts add up to the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonchaos.observations import Arm
from tritonchaos.summary.table import TableRow


@dataclass(frozen=True, slots=True)
class Retained:
    """The share of one stage in what stays in use after its cycles.

    Attributes:
        faults: Edits that were in force; () for a stage without.
        cycles: Cycles in which the metric was read.
        total: How much more was in use at the end of its cycles than before each of them, in the metric's unit.
    """

    phase: str
    arm: Arm
    faults: tuple[str, ...]
    cycles: int
    total: int

    @property
    def per_cycle(self) -> float:
        """The same for each cycle, on average."""
        return self.total / self.cycles


def retained(rows: Sequence[TableRow], faults: Sequence[tuple[str, ...]], metric: str) -> tuple[Retained, ...]:
    """Split what a metric gained from the baseline to the last cycle among the stages of the run.

    What a cycle gained is its reading minus the one of the cycle before, or minus the baseline for the first cycle of
    each start of the server; without a baseline that first gain is unknown and left out.
    """
    sums: dict[tuple[str, Arm, tuple[str, ...]], tuple[int, int]] = {}
    before: int | None = None
    start_number: int | None = None
    for row, in_force in zip(rows, faults, strict=True):
        if row.start_number != start_number:
            before, start_number = None, row.start_number
        if metric not in row.used:
            continue
        gained = row.delta.get(metric, 0) if before is None else row.used[metric] - before
        key = (row.phase, row.arm, in_force)
        cycles, total = sums.get(key, (0, 0))
        sums[key] = (cycles + 1, total + gained)
        before = row.used[metric]
    return tuple(Retained(*key, cycles, total) for key, (cycles, total) in sums.items())
