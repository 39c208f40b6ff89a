"""Makes one reading of the events of each finished cycle; the same live, while it is stored, and from a stored run."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from tritonchaos.expectation import Unmet, reply_text, unmet
from tritonchaos.observations import (
    CycleFinished,
    CycleKind,
    CycleReading,
    CycleStarted,
    CycleTable,
    Event,
    Reading,
    SeenCycle,
    ServerStarted,
    SettleWindow,
    StepFinished,
)

RECORD: Final = "record"
BEFORE_NEXT: Final = "before_next"
# Whose texts say how long something took, so that no two are alike.
_WITH_TIMES: Final = frozenset({"time", "no_answer"})


@dataclass(slots=True)
class _OpenCycle:
    started: CycleStarted
    window: SettleWindow | None = None
    mismatch: str | None = None
    has_time: bool = False
    loads: int = 0
    loaded: Mapping[str, int] = field(default_factory=dict)
    latencies: dict[str, list[int]] = field(default_factory=dict)
    load_replies: list[str] = field(default_factory=list)
    unload_replies: list[str] = field(default_factory=list)
    log_start: int = 0
    log_end: int = 0
    steps: int = 0

    def see_step(self, step: StepFinished) -> None:
        if step.position.track != "main" or step.position.cycle != self.started.cycle:
            return
        self.log_start = min(self.log_start, step.log_start) if self.steps else step.log_start
        self.log_end = max(self.log_end, step.log_end)
        self.steps += 1
        if step.spec.name == "load":
            self.loads += 1
            _add(self.load_replies, reply_text(step.reply))
        elif step.spec.name == "unload":
            _add(self.unload_replies, reply_text(step.reply))
        found = unmet(step)
        if self.mismatch is None and found is not None:
            self._not_met(step, found)

    def _not_met(self, step: StepFinished, found: Unmet) -> None:
        self.mismatch = f"{step.spec.label()}: {found.text}"
        self.has_time = found.kind in _WITH_TIMES

    def see_reading(self, reading: Reading) -> None:
        if reading.name == "loaded":
            self.loaded = reading.values
        at = reading.position
        if reading.name == RECORD and at is not None and (at.track, at.cycle) == ("main", self.started.cycle):
            for name, took_ns in reading.values.items():
                self.latencies.setdefault(name, []).append(took_ns)

    def see_window(self, window: SettleWindow) -> None:
        if window.cycle == self.started.cycle and window.phase == self.started.phase:
            self.window = window


def _add(texts: list[str], text: str) -> None:
    if text not in texts:
        texts.append(text)


class CycleReader:
    """Takes events in order; gives what a cycle came to when it is finished.

    Args:
        sample_count: Number of readings whose median is the post-unload reading.

    Attributes:
        start_number: Of the server that runs.
        timed: Cycles whose first unmet expectation is told with a time.
    """

    def __init__(self, sample_count: int) -> None:
        self._sample_count = sample_count
        self._open: _OpenCycle | None = None
        self.start_number = 1
        self.timed = 0

    def see(self, event: Event) -> CycleReading | None:
        """Take the next event; return the cycle's reading when it is finished."""
        seen = self.see_whole(event)
        return None if seen is None else seen.reading

    def see_whole(self, event: Event) -> SeenCycle | None:
        """Take the next event; return the cycle when it is finished."""
        if isinstance(event, ServerStarted):
            self.start_number = event.start_number
        elif isinstance(event, CycleStarted):
            self._open = _OpenCycle(event)
        elif self._open is not None:
            return self._see_in_cycle(self._open, event)
        return None

    def _see_in_cycle(self, cycle: _OpenCycle, event: Event) -> SeenCycle | None:
        if isinstance(event, StepFinished):
            cycle.see_step(event)
        elif isinstance(event, Reading):
            cycle.see_reading(event)
        elif isinstance(event, SettleWindow):
            cycle.see_window(event)
        elif isinstance(event, CycleFinished):
            self._open = None
            self.timed += cycle.has_time
            return self._close(cycle, event)
        return None

    def _close(self, cycle: _OpenCycle, finished: CycleFinished) -> SeenCycle:
        window, started = cycle.window, cycle.started
        reading = CycleReading(
            phase=started.phase,
            arm=started.arm,
            cycle=started.cycle,
            is_warm_up=started.is_warm_up,
            start_number=self.start_number if window is None else window.start_number,
            values={} if window is None else medians(window.values, self._sample_count),
            unsettled=frozenset() if window is None else frozenset(window.values) - window.settled,
            mismatch=cycle.mismatch,
            loads=cycle.loads,
            loaded=cycle.loaded,
            latencies={name: statistics.median_low(values) for name, values in cycle.latencies.items()},
        )
        replies = ("; ".join(cycle.load_replies), "; ".join(cycle.unload_replies))
        return SeenCycle(reading, *replies, started.t_ns, finished.t_ns, cycle.log_start, cycle.log_end)


def medians(values: Mapping[str, Sequence[int | None]], sample_count: int) -> dict[str, int]:
    """Return the median of the last readings of each metric; one without a reading is left out."""
    found = {}
    for metric, readings in values.items():
        last = [value for value in readings[-sample_count:] if value is not None]
        if last:
            # the lower middle one: a value that was really read, also when one of the readings is missing
            found[metric] = sorted(last)[(len(last) - 1) // 2]
    return found


def read_cycles(events: Iterable[Event], sample_count: int) -> list[CycleReading]:
    """Return the readings of all finished cycles, in the order in which they ran."""
    reader = CycleReader(sample_count)
    readings = (reader.see(event) for event in events)
    return [reading for reading in readings if reading is not None]


class CycleFollower:
    """Collects the finished cycles while a history is walked or skimmed.

    Args:
        sample_count: Number of readings whose median is the post-unload reading.
        is_skimming: Cycles that are alike need not be looked at one by one, as somebody else has their numbers.

    Attributes:
        table: All cycles; when skimming, those that are like no other.
        stretches: When skimming, where each of these is.
    """

    kinds: ClassVar[tuple[type, ...]] = (
        ServerStarted,
        CycleStarted,
        StepFinished,
        Reading,
        SettleWindow,
        CycleFinished,
    )

    def __init__(self, sample_count: int, *, is_skimming: bool = False) -> None:
        self._reader = CycleReader(sample_count)
        self._is_skimming = is_skimming
        self._seen: SeenCycle | None = None
        self._later: Mapping[str, int] | None = None
        self.counts: Counter[Any] = Counter()
        self.table = CycleTable()
        self.stretches = array("I")

    def see(self, event: Event) -> None:
        """Take the next event."""
        seen = self._reader.see_whole(event)
        if seen is not None:
            self._seen, self._later = seen, None
            if not self._is_skimming:
                self.table.add(seen)
        elif isinstance(event, CycleStarted):
            self._seen = None
        elif isinstance(event, Reading) and event.name == BEFORE_NEXT and self._seen is not None:
            self._later = event.values
            if not self._is_skimming:
                self.table.add_later(event.values)

    # --- skimming --------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Cycles whose mismatch is told with a time, which is another one each time."""
        return self._reader.timed

    def state(self) -> Hashable:
        """Return which start of the server it is."""
        return self._reader.start_number

    def resume(self, state: int) -> None:
        """Go on from there."""
        self._reader.start_number = state

    def stretch_read(self, at: int, is_alike: bool) -> None:
        """Keep a cycle that is like no other, now that all of its stretch has been seen."""
        if self._seen is None or is_alike:
            return
        self.table.add(self._seen)
        self.table.add_later(self._later or {})
        self.stretches.append(at)

    def made(self) -> CycleKind | None:
        """Return the kind of the cycle that was finished last, once."""
        seen, self._seen = self._seen, None
        return None if seen is None else seen.kind()
