"""What stayed in use, and under which phase and edit it came: the parts add up to the whole."""

from __future__ import annotations

from dataclasses import dataclass

from tritonchaos.observations import Arm, History
from tritonchaos.post_unload import baseline, cycle_table
from tritonchaos.summary.faults import faults_of


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


def retained(history: History, metric: str) -> tuple[Retained, ...]:
    """Split what a metric gained from the baseline to the last cycle among the stages of the run.

    What a cycle gained is its reading minus the one of the cycle before, or minus the baseline for the first cycle of
    each start of the server; without a baseline that first gain is unknown and left out.
    """
    import numpy

    table, faults = cycle_table(history), faults_of(history)
    column = table.values(metric)
    read = slice(None) if column.has is None else numpy.flatnonzero(numpy.frombuffer(column.has, numpy.uint8))
    kinds, numbers = numpy.asarray(table.kinds)[read], numpy.asarray(faults.numbers)[read]
    values = numpy.asarray(column.values)[read]
    if not len(values):
        return ()
    starts = numpy.array([kind.start_number for kind in table.kind_list])[kinds]
    gained = numpy.diff(values, prepend=values[0])
    for first in [0, *(numpy.flatnonzero(starts[1:] != starts[:-1]) + 1).tolist()]:
        before = baseline(history, int(starts[first])).get(metric)
        gained[first] = 0 if before is None else int(values[first]) - before
    stages = [(kind.phase, kind.arm) for kind in table.kind_list]
    order = {stage: number for number, stage in enumerate(dict.fromkeys(stages))}
    keys = numpy.array([order[stage] for stage in stages])[kinds] * len(faults.sets) + numbers
    found, firsts, group, cycles = numpy.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    totals = numpy.zeros(len(found), numpy.int64)
    numpy.add.at(totals, group, gained)
    return tuple(
        _stage(stages[kinds[firsts[at]]], faults.sets[numbers[firsts[at]]], int(cycles[at]), int(totals[at]))
        for at in numpy.argsort(firsts).tolist()
    )


def _stage(stage: tuple[str, Arm], faults: tuple[str, ...], cycles: int, total: int) -> Retained:
    return Retained(stage[0], stage[1], faults, cycles, total)
