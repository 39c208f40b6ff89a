"""Signals while a run goes on: Ctrl-C once finishes the cycle, twice stops at once; SIGTERM and SIGHUP stop at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonchaos.scenario_engine import Interrupt


@contextmanager
def obeyed(interrupt: Interrupt, tell: Callable[[str], None]) -> Iterator[None]:
    """Obey signals while the block lasts; what was begun before the first one is cleaned up by `finally` blocks.

    Args:
        tell: Shows a line; called in a signal handler, so it must not write to a stream that may be in use just then.
    """

    def on_interrupt(number: int, frame: object) -> None:
        if interrupt.is_asked_by_user:
            _ignore_all()
        interrupt.ask()
        tell("finishing the cycle; Ctrl-C again stops at once")

    def on_end(number: int, frame: object) -> None:
        _ignore_all()
        raise KeyboardInterrupt

    handlers = {signal.SIGINT: on_interrupt, signal.SIGTERM: on_end, signal.SIGHUP: on_end}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_all() -> None:
    """The clean-up that follows must not be broken off by one more."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
