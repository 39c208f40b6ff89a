"""Lets tracks beside the main one through only while a server runs, so that a stop cuts no request of theirs."""

from __future__ import annotations

import threading
from typing import Final

_LOOK_S: Final = 0.1


class Gate:
    """Open while a server runs; whoever asks it something beside the main track is inside for that time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_open = False
        self._inside = 0

    @property
    def is_open(self) -> bool:
        """Whether a server runs that may be asked."""
        return self._is_open

    def enter(self, ending: threading.Event) -> bool:
        """Wait until the gate is open and go in; False: the end came first."""
        with self._changed:
            while not self._is_open and not ending.is_set():
                self._changed.wait(_LOOK_S)
            if ending.is_set():
                return False
            self._inside += 1
            return True

    def leave(self) -> None:
        """Go out again."""
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def open(self) -> None:
        """Let everybody in."""
        with self._changed:
            self._is_open = True
            self._changed.notify_all()

    def close(self, at_most_s: float) -> None:
        """Let nobody in any more, and wait a time for those who are inside."""
        with self._changed:
            self._is_open = False
            self._changed.wait_for(lambda: self._inside == 0, at_most_s)
