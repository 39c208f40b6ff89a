"""Post-unload memory: what is still in use at the end of each cycle, when its models are gone again."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tritonchaos.expectation import mismatch
from tritonchaos.observations import (
    CycleFinished,
    CycleStarted,
    Event,
    History,
    PackedReadings,
    Reading,
    ServerStarted,
    SettleWindow,
    StepFinished,
    pick,
)
from tritonchaos.observations.cycle_readings import CycleReading as CycleReading  # is had from here by everybody
from tritonchaos.units import KIB, MIB

RECORD: Final = "record"
# Under which what they collect is kept (see `History.followed`).
CYCLES: Final = "cycle_readings"
BASELINES: Final = "baselines"
# Used on a GPU by others than the server, as far as the driver tells.
OTHERS_USED: Final = "nvml_others_used_bytes"

FLAT_AT_LEAST: Final = 4
_FLAT_LAST: Final = 3


class Channel(str, Enum):
    """Where a metric comes from; decides how coarse and how noisy it may be."""

    DEVICE = "device"
    HOST = "host"
    COUNT = "count"


def channel(metric: str) -> Channel:
    """Tell device memory, host memory and exact counts (fds, threads, shared memory, temp files) apart by name."""
    if metric.startswith("nvml_"):
        return Channel.DEVICE
    if metric.startswith(("host_", "stub_")) and metric.endswith("_bytes"):
        return Channel.HOST
    return Channel.COUNT


def primary_metrics(uses_gpu: bool, available: Collection[str]) -> tuple[str, ...]:
    """Return the metrics whose growth decides: per-process device bytes, else device bytes, else private host bytes.

    Device metrics decide only where a variant that needs a GPU was served; then nothing else can stand in for them.
    With several GPUs there is one of each, named `NAME@GPU-uuid`.

    Args:
        available: Names of the metrics that were read.
    """
    choices = ("nvml_process_used_bytes", "nvml_device_used_bytes")
    for name in choices if uses_gpu else ("host_private_bytes", "host_rss_bytes"):
        found = tuple(sorted(metric for metric in available if metric.partition("@")[0] == name))
        if found:
            return found
    return ()


def may_be_somebody_elses(metric: str, available: Collection[str]) -> bool:
    """Say whether a metric is of others, or of a whole GPU while the server's own memory there is known.

    What other programs take and give back must then not lengthen the server's settle windows.

    Args:
        available: Names of the metrics that were read with it.
    """
    name, at, uuid = metric.partition("@")
    if name == OTHERS_USED:
        return True
    return name == "nvml_device_used_bytes" and f"nvml_process_used_bytes{at}{uuid}" in available


def settle_quantum(metric: str) -> int:
    """Return how far readings of a metric may differ and still count as settled.

    In bytes: 2 MiB on the device (page size of the driver), 16 KiB of host memory, 4096 for shared memory and temp
    files; 1 for counts such as fds and threads.
    """
    if channel(metric) is Channel.DEVICE:
        return 2 * MIB
    if channel(metric) is Channel.HOST:
        return 16 * KIB
    return 4096 if metric.endswith("_bytes") else 1


def has_settled(values: Sequence[int | None], count: int, quantum: int) -> bool:
    """Say whether the last `count` readings exist and lie within one quantum."""
    last = [value for value in values[-count:] if value is not None]
    return len(last) == count > 0 and max(last) - min(last) <= quantum


def is_flat(readings: Sequence[int], quantum: int) -> bool:
    """Say whether a phase with `until: flat` may end: at least 4 post-unload readings, the last 3 within a quantum."""
    return len(readings) >= FLAT_AT_LEAST and has_settled(readings, _FLAT_LAST, quantum)


@dataclass(slots=True)
class _OpenCycle:
    started: CycleStarted
    window: SettleWindow | None = None
    mismatch: str | None = None
    loads: int = 0
    loaded: Mapping[str, int] = field(default_factory=dict)
    latencies: dict[str, list[int]] = field(default_factory=dict)

    def see_step(self, step: StepFinished) -> None:
        if step.position.track != "main" or step.position.cycle != self.started.cycle:
            return
        self.loads += step.spec.name == "load"
        unmet = mismatch(step)
        if self.mismatch is None and unmet is not None:
            self.mismatch = f"{step.spec.label()}: {unmet}"

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


class CycleReader:
    """Makes one `CycleReading` of the events of each finished cycle; the same live and from a stored history.

    Args:
        sample_count: Number of readings whose median is the post-unload reading.
    """

    def __init__(self, sample_count: int) -> None:
        self._sample_count = sample_count
        self._open: _OpenCycle | None = None
        self._start_number = 1

    def see(self, event: Event) -> CycleReading | None:
        """Take the next event; return the cycle's reading when it is finished."""
        if isinstance(event, ServerStarted):
            self._start_number = event.start_number
        elif isinstance(event, CycleStarted):
            self._open = _OpenCycle(event)
        elif self._open is not None:
            return self._see_in_cycle(self._open, event)
        return None

    def _see_in_cycle(self, cycle: _OpenCycle, event: Event) -> CycleReading | None:
        if isinstance(event, StepFinished):
            cycle.see_step(event)
        elif isinstance(event, Reading):
            cycle.see_reading(event)
        elif isinstance(event, SettleWindow):
            cycle.see_window(event)
        elif isinstance(event, CycleFinished):
            self._open = None
            return self._close(cycle)
        return None

    def _close(self, cycle: _OpenCycle) -> CycleReading:
        window, started = cycle.window, cycle.started
        return CycleReading(
            phase=started.phase,
            arm=started.arm,
            cycle=started.cycle,
            is_warm_up=started.is_warm_up,
            start_number=self._start_number if window is None else window.start_number,
            values={} if window is None else medians(window.values, self._sample_count),
            unsettled=frozenset() if window is None else frozenset(window.values) - window.settled,
            mismatch=cycle.mismatch,
            loads=cycle.loads,
            loaded=cycle.loaded,
            latencies={name: statistics.median_low(values) for name, values in cycle.latencies.items()},
        )


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
    """Collects the readings of all finished cycles while a history is walked.

    Args:
        history: Whose events it will see.
    """

    kinds = (ServerStarted, CycleStarted, StepFinished, Reading, SettleWindow, CycleFinished)

    def __init__(self, history: History) -> None:
        self._reader = CycleReader(history.facts.sample_count)
        self.readings: list[CycleReading] | PackedReadings = PackedReadings() if history.is_long else []

    def see(self, event: Event) -> None:
        """Take the next event."""
        reading = self._reader.see(event)
        if reading is not None:
            self.readings.append(reading)


def cycle_readings(history: History) -> Sequence[CycleReading]:
    """Return the readings of all finished cycles of a run, in the order in which they ran."""
    return history.followed(CYCLES, lambda: CycleFollower(history)).readings


def judged_readings(history: History) -> Sequence[CycleReading]:
    """Return those of the cycles that are judged."""
    return history.once("judged_readings", lambda h: pick(cycle_readings(h), lambda reading: reading.is_judged))


def baseline(history: History, start_number: int = 1) -> Mapping[str, int]:
    """Return the first "ready" reading after a start of the server: used bytes with no model loaded; {} if none."""
    return history.followed(BASELINES, Baselines).by_start.get(start_number, {})


class Baselines:
    """Collects the first "ready" reading after each start of the server.

    Attributes:
        by_start: Number of the start -> metric -> value.
    """

    kinds = (ServerStarted, Reading)

    def __init__(self) -> None:
        self._current = 1
        self.by_start: dict[int, Mapping[str, int]] = {}

    def see(self, event: ServerStarted | Reading) -> None:
        """Take the next event."""
        if isinstance(event, ServerStarted):
            self._current = event.start_number
        elif event.name == "ready":
            self.by_start.setdefault(self._current, event.values)
