"""What is known of a run while it goes on: where it is, how long it may take, what it has seen."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from tritonchaos.observations import (
    CycleFinished,
    CycleStarted,
    Event,
    Evidence,
    MetricLost,
    Note,
    PhaseSkipped,
    PhaseStopped,
    RunFacts,
    ServerExited,
    ServerStarted,
    ServerStopped,
)
from tritonchaos.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from tritonchaos.plugins import Watch
    from tritonchaos.post_unload import CycleReading
    from tritonchaos.running import Announcement

_KEPT_READINGS: Final = 400
_KEPT_SIGHTINGS: Final = 50
# Shown where no check judges a metric.
_FALLBACK: Final = ("nvml_process_used_bytes", "nvml_device_used_bytes", "host_private_bytes", "host_rss_bytes")
_DEVICE: Final = "nvml_"


class RunState:
    """Takes the events of one run and says what a person watching it wants to know.

    Args:
        watch: The stopping rule of the check that judges growth, if there is one; it is only looked at.
        now_s: Monotonic clock, in seconds, at the run's start.
    """

    def __init__(self, facts: RunFacts, watch: Watch | None, now_s: float) -> None:
        from tritonchaos.post_unload import CycleReader

        self.scenario, self.seed = facts.scenario, facts.seed
        self.target = f"{facts.target.get('target', '')} Triton {facts.target.get('triton_version', '')}".strip()
        self.began_s = self.phase_began_s = self.last_event_s = now_s
        self.phase, self.arm, self.cycles_done = "", "", 0
        self.curves: dict[str, deque[int]] = {}
        self.seen: dict[str, int] = {}
        self._phases = {phase.name: phase for phase in facts.phases}
        self._watch: Any = watch
        self._reader = CycleReader(facts.sample_count)
        self._limits: dict[str, tuple[int, float | None]] = {}
        self._cycles = 0

    # --- events ----------------------------------------------------------------------------------

    def see(self, event: Event, now_s: float) -> str | None:
        """Take the next event; return the line that it is worth, if any."""
        self.last_event_s = now_s
        reading = self._reader.see(event)
        if reading is not None:
            self._take(reading)
        if isinstance(event, CycleStarted):
            self._begin(event, now_s)
        elif isinstance(event, CycleFinished):
            self.cycles_done += 1
        elif isinstance(event, ServerExited):
            self._sight(f"crash: the server ended with {event.exit_code} at {event.position}")
        elif isinstance(event, Evidence) and event.kind == "hang":
            self._sight(f"hang: no answer in time at {event.position}")
        return _line(event)

    def _begin(self, event: CycleStarted, now_s: float) -> None:
        self.arm = event.arm.value
        if event.phase != self.phase:
            self.phase, self.cycles_done, self.phase_began_s = event.phase, 0, now_s

    def _take(self, reading: CycleReading) -> None:
        self._cycles += 1
        if reading.mismatch is not None:
            self._sight(f"unmet: {reading.mismatch}")
        for metric in self._shown(reading.values):
            self.curves.setdefault(metric, deque(maxlen=_KEPT_READINGS)).append(reading.values[metric])

    def _shown(self, values: Mapping[str, int]) -> list[str]:
        judged = [metric for metric in self._judged() if metric in values]
        if judged:
            # Without a CUDA context a device reading is 0 for ever.
            return [m for m in judged if values[m] or m in self.curves or not m.startswith(_DEVICE)]
        return [metric for metric in _FALLBACK if values.get(metric)][:1]

    def _sight(self, text: str) -> None:
        self.seen[text] = self.seen.pop(text, 0) + 1  # the latest comes last
        if len(self.seen) > _KEPT_SIGHTINGS:
            del self.seen[next(iter(self.seen))]

    # --- what is known ---------------------------------------------------------------------------

    @property
    def phase_number(self) -> int:
        """Number of the phase, from 1; 0 before the first with cycles."""
        return list(self._phases).index(self.phase) + 1 if self.phase in self._phases else 0

    @property
    def phase_count(self) -> int:
        """Number of phases."""
        return len(self._phases)

    @property
    def at_most(self) -> int:
        """Most cycles of the phase, both arms together, as far as they are known."""
        facts = self._phases.get(self.phase)
        if facts is None or facts.kind != "cycles":
            return 0
        return facts.at_most if facts.arm is not None else 2 * facts.at_most

    def left_s(self, now_s: float) -> float | None:
        """Longest time that the phase may still take at the pace so far; None while that is not known."""
        if not self.cycles_done or self.at_most < self.cycles_done:
            return None
        return (now_s - self.phase_began_s) / self.cycles_done * (self.at_most - self.cycles_done)

    def verdicts(self) -> list[str]:
        """Say for each deciding metric what would be said of it now, with the detection limit reached."""
        return [f"{metric}: {self._verdict(metric)}" for metric in self._deciding()]

    def _verdict(self, metric: str) -> str:
        state = self._watch.series[metric].latest
        word: str = state.verdict.value
        if word == "LEAK":
            low, high = state.interval or (state.bytes_per_cycle, state.bytes_per_cycle)
            return f"LEAK of {format_bytes(state.bytes_per_cycle or 0)} per {self._unit} ({_range(low, high)})"
        limit = state.excluded_bytes_per_cycle if word == "STABLE" else self._excluded(metric)
        if limit is not None and (state.bytes_per_cycle or 0.0) > limit:
            limit = None  # it grows by more than that
        reached = "" if limit is None else f", a leak of {format_bytes(limit)} per {self._unit} would show"
        return f"{word}{reached}" + (f"; {state.reason}" if state.reason else "")

    @property
    def _unit(self) -> str:
        unit: str = getattr(self._watch, "unit", "cycle")
        return unit

    def _excluded(self, metric: str) -> float | None:
        """Computed at most once per cycle, and only when it is looked at."""
        at, limit = self._limits.get(metric, (-1, None))
        if at != self._cycles:
            limit = self._watch.series[metric].excluded_so_far()
            self._limits[metric] = (self._cycles, limit)
        return limit

    def _judged(self) -> list[str]:
        """Metrics that the watching check judges, those that decide first. The engine may add one meanwhile."""
        series = list(getattr(self._watch, "series", ()))
        deciding = self._deciding()
        return [*deciding, *(metric for metric in series if metric not in deciding)]

    def _deciding(self) -> list[str]:
        series = set(getattr(self._watch, "series", ()))
        try:
            return [metric for metric in getattr(self._watch, "deciding", ()) if metric in series]
        except RuntimeError:  # the engine added one while they were looked through
            return []

    def last_sightings(self, count: int) -> list[str]:
        """Return what was seen last, the latest last."""
        last = list(self.seen.items())[-count:]
        return [f"{times} times {text}" if times > 1 else text for text, times in last]


def _range(low: float | None, high: float | None) -> str:
    return f"{format_bytes(low or 0)} to {format_bytes(high or 0)}"


def _line(event: Event) -> str | None:
    if isinstance(event, ServerStarted):
        pid = f"pid {event.pid}, " if event.pid is not None else ""
        return f"server is live at {event.url} ({pid}after {format_seconds(event.boot_ns / 1e9)})"
    if isinstance(event, ServerStopped) and event.is_left_running:
        return "the models were unloaded; the server runs on"
    if isinstance(event, ServerStopped):
        how = "after SIGKILL" if event.forced else "by itself after SIGTERM" if event.signal else "(it had ended)"
        return f"server stopped {how} in {format_seconds(event.elapsed_ns / 1e9)}"
    if isinstance(event, ServerExited):
        return f"server ended unasked with {event.exit_code} at {event.position}"
    if isinstance(event, PhaseStopped):
        return f"phase {event.phase} ended after {event.cycles} cycles: {event.reason}"
    if isinstance(event, PhaseSkipped):
        return f"phase {event.phase} skipped: {event.reason}"
    if isinstance(event, MetricLost):
        return f"{event.metric} is lost: {event.reason}"
    return event.text if isinstance(event, Note) else None


def announced(announcement: Announcement) -> Iterable[str]:
    """Say what was chosen, and what was passed over."""
    for what, why in announcement.chosen.skipped:
        yield f"skipped {what}: {why}"
    facts = announcement.facts
    yield f"scenario {facts.scenario} on target {announcement.chosen.target.name}, seed {facts.seed}"
    for model, variant in announcement.chosen.variants.items():
        yield f"model {model}: variant {variant}"
