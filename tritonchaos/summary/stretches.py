"""A run cut before each of its cycles: which stretch holds which cycle, and which of them are alike."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from tritonchaos.observations import CycleStarted, CycleTable, History
from tritonchaos.observations.event_stretches import EventStretches
from tritonchaos.observations.skimming import CutEvents
from tritonchaos.post_unload import cycle_table


class RunStretches:
    """The stretches of a run with their cycles; stretch 0 is what comes before the first one.

    Attributes:
        cut: Their events and what they are like.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._held = EventStretches(history.events) if history.stretches is None else None
        self._unfinished: Sequence[int] | None = None
        self.cut: CutEvents = self._held or history.stretches or EventStretches(())

    @property
    def cycles(self) -> int:
        """How many cycles were begun."""
        return len(self.cut.shapes) - 1

    @property
    def table(self) -> CycleTable:
        """The finished cycles."""
        return cycle_table(self._history)

    @property
    def finished(self) -> array[int]:
        """Numbers of the stretches of the finished cycles, ascending, shape [finished cycles]."""
        return self.table.stretches if self._held is None else self._held.finished

    @property
    def unfinished(self) -> Sequence[int]:
        """Those of cycles that were begun and not finished, ascending."""
        import numpy

        if self._unfinished is None:
            begun = numpy.ones(len(self.cut.shapes), bool)
            begun[0] = False
            begun[numpy.asarray(self.finished)] = False
            self._unfinished = numpy.flatnonzero(begun).tolist()
        return self._unfinished

    def place_of(self, at: int) -> int:
        """Return the place of the cycle of a stretch among the finished ones; -1: it was not finished."""
        place = bisect_left(self.finished, at)
        return place if place < len(self.finished) and self.finished[place] == at else -1

    def begun(self, at: int) -> CycleStarted:
        """Return the first event of a stretch from 1 on."""
        event = self.cut.events(at)[0]
        assert isinstance(event, CycleStarted)  # that is where they are cut
        return event

    def numbered(self, phase: str | None, cycle: int) -> list[int]:
        """Return the stretches of the cycles with a number, ascending; only a few stretches are looked at.

        Args:
            phase: None: of any phase.
        """
        order = {one.name: number for number, one in enumerate(self._history.facts.phases)}
        found = {at for name in order if phase in (None, name) for at in self._sought(order, name, cycle)}
        return sorted(found or self._walked(phase, cycle))

    def _sought(self, order: dict[str, int], phase: str, cycle: int) -> Iterator[int]:
        """Look for a cycle where it is if phases ran in the order of the scenario."""

        def place(at: int) -> tuple[int, int]:
            begun = self.begun(at)
            return order.get(begun.phase, len(order)), begun.cycle

        at = bisect_left(range(1, self.cycles + 1), (order[phase], cycle), key=place) + 1
        if at <= self.cycles and place(at) == (order[phase], cycle):
            yield at

    def _walked(self, phase: str | None, cycle: int) -> Iterator[int]:
        kinds, finished = self.table.kind_list, self.finished
        for place, (number, kind) in enumerate(zip(self.table.cycles, self.table.kinds, strict=True)):
            if number == cycle and phase in (None, kinds[kind].phase):
                yield finished[place]
        for at in self.unfinished:
            begun = self.begun(at)
            if begun.cycle == cycle and phase in (None, begun.phase):
                yield at


def stretches_of(history: History) -> RunStretches:
    """Return the events of a run, cut before each cycle; they are cut once."""
    return history.once("run stretches", RunStretches)
