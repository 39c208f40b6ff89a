"""Rounds of one track: how many there are, and when each is due."""

from __future__ import annotations

import threading
import time
from typing import Any


class Rounds:
    """Rounds from a beginning until the track's own end; safe from several workers.

    Attributes:
        turned: Told when the rounds begin; whoever ends everything tells it too.
    """

    def __init__(self, track: dict[str, Any]) -> None:
        self.rate, self.times, self.after_s = track["rate"], track["stop"].get("times"), track["stop"].get("after_s")
        self.turned = threading.Condition()
        self.is_on = False
        self.began = 0.0
        self.number = self.handed_out = 0

    def begin(self, offset_s: float) -> None:
        """Begin a time from now; nothing while they go on."""
        with self.turned:
            if not self.is_on:
                self.is_on, self.began, self.handed_out = True, time.monotonic() + offset_s, 0
                self.turned.notify_all()

    def take(self) -> tuple[int, float] | None:
        """Return the number of the next round and when it is due; None: they have not begun, or have ended."""
        with self.turned:
            if not self.is_on:
                return None
            due = self.began + (self.handed_out / self.rate if self.rate else 0.0)
            at = due if self.rate else time.monotonic()
            is_enough = self.times is not None and self.handed_out >= self.times
            if is_enough or (self.after_s is not None and at - self.began >= self.after_s):
                self.is_on = False
                return None
            self.number += 1
            self.handed_out += 1
            return self.number, due
