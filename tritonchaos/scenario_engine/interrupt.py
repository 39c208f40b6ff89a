"""How a user's interrupt reaches the engine: once ends the cycle in progress, twice ends everything at once."""

from __future__ import annotations

import threading


class Interrupt:
    """Asked for by a signal handler, looked at by the engine between steps and cycles."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def ask(self) -> None:
        """First interrupt: finish the cycle, judge and report. Second: stop now.

        Raises:
            KeyboardInterrupt: It had been asked before.
        """
        if self._asked.is_set():
            raise KeyboardInterrupt
        self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether the run should end after the cycle in progress."""
        return self._asked.is_set()

    def pause(self, seconds: float) -> None:
        """Wait for a time that an interrupt cuts short."""
        self._asked.wait(max(seconds, 0.0))
