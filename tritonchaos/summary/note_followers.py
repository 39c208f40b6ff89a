"""What notes have to see of a run, event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tritonchaos.observations import (
    CycleFinished,
    CycleStarted,
    Event,
    History,
    Reading,
    SettleWindow,
    StepFinished,
    TrafficSummary,
)
from tritonchaos.post_unload import may_be_somebody_elses, medians, settle_quantum

TRACKS: Final = "track_requests"
SHORT_WINDOWS: Final = "short_windows"
# Memory that a settle window waits for; resident memory and counts come and go for many other reasons.
_AWAITED: Final = ("nvml_", "host_private")
# Where `TrafficSummary.latency_ns` has the 99 % time.
_AT_99_PERCENT: Final = 2


@dataclass(slots=True)
class Requests:
    """What one step of a track did in all.

    Attributes:
        slowest_ns: The longest 99 % time of a second.
    """

    count: int = 0
    late: int = 0
    slowest_ns: int = 0


class TrackRequests:
    """Counts the steps of the tracks beside the main one.

    Attributes:
        found: (phase, track, step) -> what it did.
    """

    kinds = (TrafficSummary, StepFinished)

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, str], Requests] = {}

    def see(self, event: TrafficSummary | StepFinished) -> None:
        """Take the next event."""
        if isinstance(event, TrafficSummary):
            requests = self.found.setdefault((event.phase, event.track, event.spec.label()), Requests())
            requests.count += event.count
            requests.late += event.late
            requests.slowest_ns = max(requests.slowest_ns, event.latency_ns[_AT_99_PERCENT])
        elif event.position.track != "main":
            key = (event.position.phase, event.position.track, event.spec.label())
            requests = self.found.setdefault(key, Requests())
            requests.count += 1
            requests.late += "late_ns" in event.observed


class ShortWindows:
    """Counts the cycles after whose settle window a metric fell further, by a quantum or more.

    Args:
        history: Whose events it will see.

    Attributes:
        counts: Metric -> number of such cycles.
    """

    kinds = (CycleStarted, SettleWindow, CycleFinished, Reading)

    def __init__(self, history: History) -> None:
        self.counts: Counter[str] = Counter()
        self._sample_count = history.facts.sample_count
        self._open: CycleStarted | None = None
        self._window: SettleWindow | None = None
        self._finished = False

    def see(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, CycleStarted):
            self._open, self._window, self._finished = event, None, False
        elif isinstance(event, SettleWindow):
            begun = self._open
            if begun is not None and (event.phase, event.cycle) == (begun.phase, begun.cycle):
                self._window = event
        elif isinstance(event, CycleFinished):
            # The reading before the next cycle belongs to the last one, but may come before its CycleFinished.
            self._open, self._finished = None, self._open is not None
        elif isinstance(event, Reading) and event.name == "before_next" and self._finished:
            self._compare(event)

    def _compare(self, later: Reading) -> None:
        if self._window is None:
            return
        awaited = {m: values for m, values in self._window.values.items() if m.startswith(_AWAITED)}
        self.counts.update(_fallen(medians(awaited, self._sample_count), later))


def _fallen(values: Mapping[str, int], later: Reading) -> list[str]:
    return [
        metric
        for metric, value in values.items()
        if metric in later.values
        and not may_be_somebody_elses(metric, later.values)
        and value - later.values[metric] >= settle_quantum(metric)
    ]
