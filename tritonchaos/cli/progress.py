"""Progress on standard error: one line that renews itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Final, TextIO

from tritonchaos.observations import (
    CycleFinished,
    CycleStarted,
    Event,
    PhaseSkipped,
    PhaseStopped,
    ServerExited,
    ServerStarted,
    ServerStopped,
    SettleWindow,
)
from tritonchaos.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from tritonchaos.running import Announcement

_BARS: Final = "▁▂▃▄▅▆▇█"
_CURVE_LENGTH: Final = 24
_SHOWN_METRICS: Final = ("nvml_process_used_bytes", "nvml_device_used_bytes", "host_private_bytes")
_PLAIN_EVERY_S: Final = 10.0


def sparkline(values: list[int]) -> str:
    """Draw values as bars between their smallest and largest; a flat series is a low line."""
    low, high = min(values, default=0), max(values, default=0)
    span = max(high - low, 1)
    return "".join(_BARS[(value - low) * (len(_BARS) - 1) // span] for value in values)


class Progress:
    """Shows a run as it goes: phase, cycle, time left, post-unload memory as a sparkline.

    Args:
        stream: Standard error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._at_most: dict[str, int] = {}
        self._phase, self._cycle, self._in_phase = "", 0, 0
        self._phase_began_s = self._last_line_s = time.monotonic()
        self._curve: deque[int] = deque(maxlen=_CURVE_LENGTH)
        self._metric = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def announce(self, announcement: Announcement) -> None:
        """Print what was chosen, and what was passed over."""
        for what, why in announcement.chosen.skipped:
            self._line(f"skipped {what}: {why}")
        target = announcement.chosen.target
        self._line(
            f"scenario {announcement.scenario.scenario} on target {target.name}, seed {announcement.scenario.seed}"
        )
        for model, variant in announcement.chosen.variants.items():
            self._line(f"model {model}: variant {variant}")
        self._at_most = {phase.name: phase.at_most for phase in announcement.schedule.phases}

    def see(self, event: Event) -> None:
        """Take the next event of the run; called by the engine."""
        if isinstance(event, CycleStarted):
            self._begin_cycle(event)
        elif isinstance(event, SettleWindow):
            self._add_to_curve(event)
        elif isinstance(event, CycleFinished):
            self._in_phase += 1
            self._show_cycle()
        else:
            self._say(event)

    def _begin_cycle(self, event: CycleStarted) -> None:
        if event.phase != self._phase:
            if not self._is_terminal and self._phase:
                self._line(self._cycle_text())
            self._phase, self._in_phase, self._phase_began_s = event.phase, 0, time.monotonic()
            self._show_cycle(always=True)
        self._cycle = event.cycle

    def _add_to_curve(self, event: SettleWindow) -> None:
        for metric in _SHOWN_METRICS:
            values = [value for value in event.values.get(metric, ()) if value is not None]
            # Without a CUDA context a device reading is 0 for ever; the first metric that says something is shown.
            if values and (values[-1] or metric == _SHOWN_METRICS[-1]):
                self._metric = metric
                self._curve.append(values[-1])
                return

    def _say(self, event: Event) -> None:
        if isinstance(event, ServerStarted):
            self._line(f"server is live at {event.url} (pid {event.pid}, after {format_seconds(event.boot_ns / 1e9)})")
        elif isinstance(event, ServerStopped) and event.signal == "" and event.exit_code is None:
            self._line("the models were unloaded; the server runs on")
        elif isinstance(event, ServerStopped):
            how = "after SIGKILL" if event.forced else "by itself after SIGTERM"
            self._line(f"server stopped {how} in {format_seconds(event.elapsed_ns / 1e9)}")
        elif isinstance(event, ServerExited):
            self._line(f"server ended unasked with {event.exit_code}")
        elif isinstance(event, PhaseStopped):
            self._line(f"phase {event.phase} ended after {event.cycles} cycles: {event.reason}")
        elif isinstance(event, PhaseSkipped):
            self._line(f"phase {event.phase} skipped: {event.reason}")

    def _show_cycle(self, *, always: bool = False) -> None:
        now = time.monotonic()
        if self._is_terminal:
            self._stream.write("\r\x1b[K" + self._cycle_text()[: _terminal_width(self._stream) - 1])
            self._stream.flush()
        elif always or now - self._last_line_s >= _PLAIN_EVERY_S:
            self._line(self._cycle_text())

    def _cycle_text(self) -> str:
        at_most = self._at_most.get(self._phase, 0)
        parts = [self._phase, f"cycle {self._in_phase}/{at_most}" if at_most else f"cycle {self._in_phase}"]
        if self._in_phase and at_most > self._in_phase:
            each_s = (time.monotonic() - self._phase_began_s) / self._in_phase
            parts.append(f"at most {format_seconds(each_s * (at_most - self._in_phase))} left")
        if self._curve:
            parts.append(f"{sparkline(list(self._curve))} {self._metric} {format_bytes(self._curve[-1])}")
        return "  ".join(parts)

    def _line(self, text: str) -> None:
        start = "\r\x1b[K" if self._is_terminal else ""
        self._stream.write(f"{start}{text}\n")
        self._stream.flush()
        self._last_line_s = time.monotonic()


def _terminal_width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except OSError:
        return 80
