"""What goes on while a command that asks nothing of a server takes long: on standard error, and only then."""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import Final, TextIO

from tritonchaos.cli.progress import HEARTBEAT_S

_FIRST_S: Final = 2.0
_REFRESH_S: Final = 0.5
_START_OF_LINE: Final = "\r\x1b[K"


class Waiting:
    """Says what is being done: nothing at first, then a line now and then, on a terminal always the same one.

    Args:
        stream: Standard error.
        first_s: After which time it begins.
        every_s: How often it prints a line where there is no terminal.
    """

    def __init__(self, stream: TextIO, first_s: float = _FIRST_S, every_s: float = HEARTBEAT_S) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._first_s = first_s
        self._every_s = _REFRESH_S if self._is_terminal else every_s
        self._doing = ""
        self._began_s = time.monotonic()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._show, name="waiting", daemon=True)

    def __enter__(self) -> Waiting:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()

    def now(self, doing: str) -> None:
        """Take what is being done from now on."""
        self._doing = doing

    def _show(self) -> None:
        try:
            if self._ending.wait(self._first_s):
                return
            self._print()
            while not self._ending.wait(self._every_s):
                self._print()
            if self._is_terminal:
                self._write(_START_OF_LINE)
        except (OSError, ValueError):
            return  # the terminal or the reader of standard error has gone

    def _print(self) -> None:
        line = f"[{time.monotonic() - self._began_s:.0f} s] {self._doing}"
        self._write(f"{_START_OF_LINE}{line}" if self._is_terminal else f"{line}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
