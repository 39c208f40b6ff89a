"""What notes have to see of a run, event by event."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import sub
from typing import Any, ClassVar, Final

from tritonchaos.observations import CycleTable, StepFinished, TrafficSummary
from tritonchaos.post_unload import may_be_somebody_elses, settle_quantum

TRACKS: Final = "track_requests"
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

    kinds: ClassVar[tuple[type, ...]] = (TrafficSummary, StepFinished)

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self.kept = 0  # it looks at nothing that is in cycles that are alike
        self.found: dict[tuple[str, str, str], Requests] = {}

    def state(self) -> None:
        """Return nothing: each event is taken by itself."""

    def resume(self, state: None) -> None:
        """Go on."""

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


def short_windows(table: CycleTable) -> Counter[str]:
    """Count the cycles after whose settle window a metric fell further, by a quantum or more."""
    counts: Counter[str] = Counter()
    for metric in table.metrics:
        if metric.startswith(_AWAITED):
            counts[metric] = _fallen(table, metric)
    return +counts


def _fallen(table: CycleTable, metric: str) -> int:
    at_end, later, quantum = table.values(metric), table.later(metric), settle_quantum(metric)
    fell = map(sub, at_end.values, later.values)
    places = (place for place, by in enumerate(fell) if by >= quantum)
    return sum(
        (at_end.has is None or at_end.has[place] == 1)
        and (later.has is None or later.has[place] == 1)
        and not may_be_somebody_elses(metric, _read_later(table, place))
        for place in places
    )


def _read_later(table: CycleTable, place: int) -> frozenset[str]:
    return frozenset(metric for metric in table.later_metrics if table.later(metric).at(place) is not None)
