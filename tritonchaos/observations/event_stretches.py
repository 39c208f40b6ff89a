"""The events of a run cut before each cycle, where nobody knows which cycles are alike."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from tritonchaos.observations.events import CycleFinished, CycleStarted, Event


class EventStretches:
    """Events that are held, cut (see `skimming.CutEvents`).

    Attributes:
        shapes: All 0, shape [stretches]: each is like no other, as far as is known.
        finished: Numbers of those that hold a finished cycle, shape [finished cycles].
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._firsts = array("q", [0])
        self.finished = array("I")
        is_open = False
        for at, event in enumerate(events):
            if isinstance(event, CycleStarted):
                self._firsts.append(at)
                is_open = True
            elif isinstance(event, CycleFinished) and is_open:
                self.finished.append(len(self._firsts) - 1)
                is_open = False
        self.shapes = array("I", bytes(4 * len(self._firsts)))
        self._firsts.append(len(events))

    def check(self) -> None:
        """Nothing can have been damaged."""

    def events(self, at: int) -> Sequence[Event]:
        """Return the events of one stretch."""
        return self._events[self._firsts[at] : self._firsts[at + 1]]
