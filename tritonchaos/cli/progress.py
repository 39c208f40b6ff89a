"""Progress on standard error: a live view on a terminal, plain lines with a heartbeat elsewhere."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, TextIO

from tritonchaos.cli.live_view import draw, heartbeat
from tritonchaos.cli.run_state import RunState, announced
from tritonchaos.units import format_seconds

if TYPE_CHECKING:
    from rich.live import Live

    from tritonchaos.observations import Event
    from tritonchaos.running import Announcement

_REFRESH_S: Final = 0.25
# CI systems end a job that prints nothing for some minutes.
HEARTBEAT_S: Final = 10.0
_LAST_LOOK_S: Final = 2.0


class Progress:
    """Shows a run as it goes. Everything is drawn in a thread of its own: the engine only hands events over.

    So a heartbeat comes also while one step lasts, and a terminal that does not take what is written holds nothing up.

    Args:
        stream: Standard error.
        max_time_s: Longest time of a run, if there is one.
        heartbeat_s: Time after which a line is printed where there is no terminal.
    """

    def __init__(self, stream: TextIO, max_time_s: float | None = None, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._max_time_s = max_time_s
        self._heartbeat_s = heartbeat_s
        self._happened: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._state: RunState | None = None
        self._began_s = self._last_line_s = time.monotonic()
        self._live: Live | None = None
        self._failure = ""
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join(_LAST_LOOK_S)
        if self._failure:
            say(f"the progress display failed: {self._failure}")

    def announce(self, announcement: Announcement) -> None:
        """Show what was chosen, and what was passed over."""
        self._happened.put(partial(self._take_announcement, announcement, time.monotonic()))

    def see(self, event: Event) -> None:
        """Take the next event of the run; called by the engine, in any of its threads."""
        self._happened.put(partial(self._take_event, event, time.monotonic()))

    def line(self, text: str) -> None:
        """Show a line of its own."""
        self._happened.put(partial(self._print, text))

    # --- in the thread of its own ----------------------------------------------------------------

    def _show(self) -> None:
        try:
            if self._is_terminal:
                self._show_live()
            else:
                self._show_lines()
        except (OSError, ValueError):
            return  # the terminal or the reader of standard error has gone
        except Exception as error:  # a display that fails must not cost a run
            self._failure = f"{type(error).__name__}: {error}"

    def _show_lines(self) -> None:
        while not self._ending.wait(_REFRESH_S):
            self._take()
            if time.monotonic() - self._last_line_s >= self._heartbeat_s:
                self._print(self._heartbeat())
        self._take()

    def _show_live(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream, highlight=False, markup=False, emoji=False)
        with Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        ) as self._live:
            while not self._ending.wait(_REFRESH_S):
                self._take()
                if self._state is not None:
                    view = draw(self._state, time.monotonic(), console.width, self._max_time_s)
                    self._live.update(view, refresh=True)
            self._take()

    def _take(self) -> None:
        while True:
            try:
                happened = self._happened.get_nowait()
            except queue.Empty:
                return
            happened()

    def _take_announcement(self, announcement: Announcement, at_s: float) -> None:
        self._state = RunState(announcement.facts, announcement.watch, at_s)
        for line in announced(announcement):
            self._print(line)

    def _take_event(self, event: Event, at_s: float) -> None:
        if self._state is None:
            return
        before = self._state.phase
        line = self._state.see(event, at_s)
        if line:
            self._print(line)
        if self._state.phase != before and not self._is_terminal:
            self._print(self._heartbeat())

    def _heartbeat(self) -> str:
        now_s = time.monotonic()
        if self._state is None:
            return f"[{format_seconds(now_s - self._began_s)}] preparing"
        return heartbeat(self._state, now_s)

    def _print(self, text: str) -> None:
        self._last_line_s = time.monotonic()
        if self._live is not None:
            self._live.console.print(text, soft_wrap=True)
            return
        self._stream.write(f"{text}\n")
        self._stream.flush()


def say(text: str) -> None:
    """Print a line on standard error; nothing comes of it where that has gone (a closed terminal)."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return
