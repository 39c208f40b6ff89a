"""Takes every event once: into the store, into the cycle reader, and to whoever watches live."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tritonchaos.observations import CycleFinished, Event
from tritonchaos.plugins import Recorder
from tritonchaos.post_unload import CycleReader, CycleReading

Observer = Callable[[Event], None]


class Journal:
    """The one door through which events leave the engine; safe from several tracks at once.

    Args:
        store: Where events are kept.
        clock_ns: CLOCK_MONOTONIC nanoseconds since the run's start.
        sample_count: Number of readings whose median is the post-unload reading.
        observers: Called with each event after it is stored, such as a progress display.
    """

    def __init__(
        self, store: Recorder, clock_ns: Callable[[], int], sample_count: int, observers: Sequence[Observer] = ()
    ) -> None:
        self._store = store
        self._reader = CycleReader(sample_count)
        self._observers = observers
        self._lock = threading.Lock()
        self._latest: CycleReading | None = None
        self.now_ns = clock_ns

    def record(self, event: Event) -> None:
        """Store one event and show it to the observers."""
        with self._lock:
            self._store.record(event)
            reading = self._reader.see(event)
            if reading is not None:
                self._latest = reading
        for observer in self._observers:
            observer(event)

    def finish_cycle(self, event: CycleFinished) -> CycleReading:
        """Record a cycle's end and return its reading, the same that judging offline will see."""
        self.record(event)
        reading = self._latest
        if reading is None or (reading.phase, reading.cycle) != (event.phase, event.cycle):
            raise RuntimeError(f"cycle {event.cycle} of {event.phase} ended without having begun")
        return reading
