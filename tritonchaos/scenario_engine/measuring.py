"""Named readings and settle windows, taken when the schedule says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tritonchaos.observations import Arm, MetricLost, Note, Position, Reading, SettleWindow
from tritonchaos.plugins import Group
from tritonchaos.post_unload import may_be_somebody_elses, settle_quantum
from tritonchaos.sampling import Sampling
from tritonchaos.scenario_engine.journal import Journal
from tritonchaos.units import format_bytes, format_seconds

_LONGEST_EXTRA_S: Final = 2.0
_LOADS_IN_FULL: Final = 10
_TRIMMED: Final = ("host_private_bytes", "nvml_process_used_bytes")


class Measuring:
    """Takes readings in the engine's own thread and records them.

    Args:
        sampling: The samplers behind one lock.
        sample_count: Readings that must lie within one quantum, and whose median counts.
        settle_at_most_s: Longest settle window.
    """

    def __init__(
        self,
        sampling: Sampling,
        journal: Journal,
        sample_count: int,
        settle_at_most_s: float,
        pause: Callable[[float], None],
    ) -> None:
        self._sampling = sampling
        self._journal = journal
        self._sample_count = sample_count
        self._at_most_s = settle_at_most_s
        self._pause = pause
        self._last: SettleWindow | None = None
        self._extra_s = 0.0
        self._loads = 0
        self._lost: set[str] = set()
        self._noted: set[str] = set()
        self._here: Position | None = None
        self.start_number = 0

    def at(self, position: Position | None) -> None:
        """Say where in the schedule the next readings are taken."""
        self._here = position

    def take(self, name: str, group: Group = Group.ALL) -> Reading:
        """Take one reading under a name: of all metrics, or of the fast group alone."""
        reading = Reading(self._journal.now_ns(), name, self._here, self._sampling.read(group))
        self._journal.record(reading)
        self._record_lost()
        return reading

    def take_loaded(self) -> Reading:
        """Read what a loaded model takes: all metrics at first, then at every tenth load, else the fast group.

        A footprint is the largest difference of many cycles; to read private host bytes in each of them would be the
        dearest part of a cycle.
        """
        self._loads += 1
        is_full = self._loads <= _LOADS_IN_FULL or self._loads % _LOADS_IN_FULL == 0
        return self.take("loaded", Group.ALL if is_full else Group.FAST)

    def settle(self) -> None:
        """Take a settle window where the schedule stands."""
        here = self._here
        self.settle_cycle(here.phase if here else "", here.arm if here else None, here.cycle if here else None)

    def around_trim(self, trim: Callable[[], str]) -> str:
        """Read before and after the server's allocators give back what they keep; note what came back."""
        self.settle()
        before = self.take("before_trim").values
        why_not = trim()
        if why_not:
            return why_not
        self.settle()
        after = self.take("after_trim").values
        for metric in _TRIMMED:
            returned = before.get(metric, 0) - after.get(metric, before.get(metric, 0))
            if returned >= settle_quantum(metric):
                text = f"malloc_trim returned {format_bytes(returned)} of {metric}: free memory that the allocator kept"
                self._journal.record(Note(self._journal.now_ns(), text))
        return ""

    def settle_cycle(self, phase: str, arm: Arm | None, cycle: int | None) -> None:
        """Take the settle window of a cycle: the last one taken in a cycle is its post-unload reading."""
        if self._extra_s:
            self._pause(self._extra_s)
        settled = self._sampling.settle(self._sample_count, self._at_most_s)
        window = SettleWindow(
            phase, arm, cycle, self.start_number, settled.times_ns, settled.values, frozenset(settled.settled)
        )
        self._journal.record(window)
        self._record_lost()
        self._last = window

    def before_next(self) -> None:
        """Read once more just before the next cycle; if memory still fell, the windows must be longer.

        The fast group is enough: private host bytes cost more than all else here, and do not fall unless resident
        bytes do.
        """
        window, self._last = self._last, None
        if window is None or window.start_number != self.start_number:
            return
        reading = self.take("before_next", Group.FAST)
        fell = _fell_since(window, reading.values)
        if not fell:
            return
        self._extra_s = min(max(2 * self._extra_s, 0.05), _LONGEST_EXTRA_S)
        metric, by_bytes = fell
        self._journal.record(
            Note(
                self._journal.now_ns(),
                f"{metric} fell by {format_bytes(by_bytes)} after the settle window of {window.phase} cycle "
                f"{window.cycle} had ended; later windows begin {format_seconds(self._extra_s)} later",
            )
        )

    def record_missed(self) -> None:
        """Record how many readings of the sampling thread were missed over the whole run."""
        text = self._sampling.missed_note()
        if text is not None:
            self._journal.record(Note(self._journal.now_ns(), text))

    def record_notes(self) -> None:
        """Record what the samplers want a reader to know, such as who else uses the GPU; each once."""
        for text in self._sampling.notes():
            if text not in self._noted:
                self._noted.add(text)
                self._journal.record(Note(self._journal.now_ns(), text))

    def _record_lost(self) -> None:
        for metric, reason in self._sampling.lost().items():
            if metric not in self._lost:
                self._lost.add(metric)
                self._journal.record(MetricLost(self._journal.now_ns(), metric, reason))


def _fell_since(window: SettleWindow, later: Mapping[str, int]) -> tuple[str, int] | None:
    for metric, readings in window.values.items():
        last = next((value for value in reversed(readings) if value is not None), None)
        is_memory = metric.partition("@")[0].endswith("_bytes") and metric.startswith(("nvml_", "host_rss"))
        if last is None or metric not in later or not is_memory or may_be_somebody_elses(metric, later):
            continue
        if last - later[metric] >= settle_quantum(metric):
            return metric, last - later[metric]
    return None
