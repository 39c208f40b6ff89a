"""How an end that is asked for reaches the engine: the cycle in progress is finished, or everything ends at once."""

from __future__ import annotations

import queue


class Interrupt:
    """Asked for by a signal handler or a timer, looked at by the engine between steps and cycles.

    Nothing here takes a lock that a signal handler could find held by the thread it interrupted
    (`SimpleQueue.put` is reentrant, as Python's documentation says).
    """

    def __init__(self) -> None:
        self._reason = ""
        self._by_user = False
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ask(self) -> None:
        """First interrupt of the user: finish the cycle, judge and report. Second: stop now.

        Raises:
            KeyboardInterrupt: The user had asked before.
        """
        if self._by_user:
            raise KeyboardInterrupt
        self._by_user = True
        self._end("interrupted")

    def time_is_up(self) -> None:
        """The run's time is over: finish the cycle, judge and report."""
        if not self._reason:
            self._end("time")

    def begin_run(self) -> None:
        """Forget that the time of the run before this one was over; what the user asked for stays."""
        if self._reason == "time":
            self._reason = ""
            self._woken = queue.SimpleQueue()

    def _end(self, reason: str) -> None:
        self._reason = reason
        self._woken.put(None)

    @property
    def is_asked(self) -> bool:
        """Whether the run should end after the cycle in progress."""
        return bool(self._reason)

    @property
    def is_asked_by_user(self) -> bool:
        """Whether it was the user who asked."""
        return self._by_user

    @property
    def reason(self) -> str:
        """Why the run should end: "interrupted", "time", or "" if it should not."""
        return self._reason

    def pause(self, seconds: float) -> None:
        """Wait for a time that an interrupt cuts short, in any number of threads."""
        try:
            self._woken.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return
        self._woken.put(None)  # for the others that wait, and for those who will
