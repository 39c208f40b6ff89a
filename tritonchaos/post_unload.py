"""Post-unload memory: what is still in use at the end of each cycle, when its models are gone again."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

from tritonchaos.cycle_reader import RECORD as RECORD
from tritonchaos.cycle_reader import CycleFollower
from tritonchaos.cycle_reader import CycleReader as CycleReader  # what follows is had from here by everybody
from tritonchaos.cycle_reader import medians as medians
from tritonchaos.cycle_reader import read_cycles as read_cycles
from tritonchaos.observations import ChosenReadings, CycleKind, CycleTable, History, Reading, ServerStarted
from tritonchaos.observations.cycle_readings import CycleReading as CycleReading
from tritonchaos.observations.skimming import Made, Stretches
from tritonchaos.units import KIB, MIB

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


def follow_cycles(history: History) -> CycleFollower:
    """Return what `cycle_table` has to see of a run."""
    return CycleFollower(history.facts.sample_count, is_skimming=history.stretches is not None)


def cycle_table(history: History) -> CycleTable:
    """Return the finished cycles of a run in columns."""
    return history.once("cycle table", _table)


def _table(history: History) -> CycleTable:
    follower = history.followed(CYCLES, lambda: follow_cycles(history))
    stretches, made = history.stretches, history.made(CYCLES)
    if stretches is None or made is None:
        return follower.table
    return _stored_table(stretches, made, follower)


def _stored_table(stretches: Stretches, made: Made, follower: CycleFollower) -> CycleTable:
    """Put together what the store knows of cycles that are alike, and what was seen of the others."""
    kinds: dict[CycleKind, int] = {}
    number_of = [-1 if kind is None else kinds.setdefault(kind, len(kinds)) for kind in made.values]
    others, places = follower.table, follower.stretches
    finished = array("I", (at for at, number in enumerate(made.numbers) if number_of[number] >= 0))
    return CycleTable(
        kinds=array("I", (number_of[made.numbers[at]] for at in finished)),
        kind_list=list(kinds),
        names=list(dict.fromkeys([*stretches.names, *others.names])),
        load=lambda name: stretches.column(name, others, places),
        stretches=finished,
    )


def cycle_readings(history: History) -> Sequence[CycleReading]:
    """Return the readings of all finished cycles of a run, in the order in which they ran."""
    table = cycle_table(history)
    return table if history.is_long else history.once("cycle readings", lambda _: list(table))


def judged_readings(history: History) -> Sequence[CycleReading]:
    """Return those of the cycles that are judged."""
    return history.once("judged_readings", _judged)


def _judged(history: History) -> Sequence[CycleReading]:
    table = cycle_table(history)
    chosen = ChosenReadings(table, table.select(lambda kind: kind.is_judged))
    return chosen if history.is_long else list(chosen)


def baseline(history: History, start_number: int = 1) -> Mapping[str, int]:
    """Return the first "ready" reading after a start of the server: used bytes with no model loaded; {} if none."""
    return history.followed(BASELINES, Baselines).by_start.get(start_number, {})


class Baselines:
    """Collects the first "ready" reading after each start of the server.

    Attributes:
        by_start: Number of the start -> metric -> value.
    """

    kinds: ClassVar[tuple[type, ...]] = (ServerStarted, Reading)

    def __init__(self) -> None:
        self._current = 1
        self.counts: Counter[Any] = Counter()
        self.by_start: dict[int, Mapping[str, int]] = {}

    @property
    def kept(self) -> int:
        """How many baselines it has."""
        return len(self.by_start)

    def state(self) -> Hashable:
        """Return which start of the server it is."""
        return self._current

    def resume(self, state: int) -> None:
        """Go on from there."""
        self._current = state

    def see(self, event: ServerStarted | Reading) -> None:
        """Take the next event."""
        if isinstance(event, ServerStarted):
            self._current = event.start_number
        elif event.name == "ready":
            self.by_start.setdefault(self._current, event.values)
