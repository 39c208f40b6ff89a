"""Hands out the rounds of one track to its workers: how many there are, and when each is due."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from tritonchaos.scenario.track_rules import StopRule


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a track.

    Attributes:
        number: From 0 over all workers.
        due_s: When it should begin, on the clock of `Rounds`; None: as soon as a worker is free.
    """

    number: int
    due_s: float | None


class Rounds:
    """Rounds from a beginning until the stop rule is met; safe from several workers.

    Args:
        rate: Rounds per second, due one after the other however long they take (open loop); None: closed loop.
        clock_s: Monotonic clock in seconds.
    """

    def __init__(self, rate: float | None, stop: StopRule, clock_s: Callable[[], float]) -> None:
        self._rate = rate
        self._stop = stop
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._number = 0
        self._begins = 0
        self._is_on = False
        self._began_s = self._due_from_s = 0.0
        self._handed_out = self._paced = 0

    @property
    def begins(self) -> int:
        """How often it began."""
        return self._begins

    def begin(self, offset_s: float = 0.0) -> None:
        """Begin, a time from now; ignored while rounds are still being handed out."""
        with self._lock:
            if self._is_on:
                return
            self._is_on = True
            self._begins += 1
            self._began_s = self._due_from_s = self._clock_s() + offset_s
            self._handed_out = self._paced = 0

    def go_on_from_now(self) -> None:
        """Forget what was due while there was nobody to ask."""
        with self._lock:
            self._due_from_s = max(self._clock_s(), self._began_s)
            self._paced = 0

    def next(self) -> Round | None:
        """Return the next round; None: it has not begun, or the stop rule is met."""
        with self._lock:
            if not self._is_on:
                return None
            due_s = self._due_s()
            if self._is_over(due_s):
                self._is_on = False
                return None
            number = self._number
            self._number += 1
            self._handed_out += 1
            self._paced += 1
            return Round(number, due_s)

    def _due_s(self) -> float | None:
        if self._rate is not None:
            return self._due_from_s + self._paced / self._rate
        return self._began_s if self._clock_s() < self._began_s else None

    def _is_over(self, due_s: float | None) -> bool:
        if self._stop.times is not None:
            return self._handed_out >= self._stop.times
        at_s = self._clock_s() if due_s is None else due_s
        return self._stop.after_s is not None and at_s - self._began_s >= self._stop.after_s
