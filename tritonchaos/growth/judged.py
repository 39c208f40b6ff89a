"""Feeds the growth test of one metric with the cycles of a run that may be judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from tritonchaos.growth.sequential import GrowthTest
from tritonchaos.growth.state import Growth, GrowthState
from tritonchaos.observations import Arm
from tritonchaos.post_unload import Channel, CycleReading, channel

# So little per cycle, on the host, may be code and heap that are touched for the first time (see `allocator`).
_SLOW_BYTES: Final = 64 * 1024
_CYCLES_BEFORE_DOUBLING: Final = 12
_LONG, _SHARE = 1_000, 25  # readings, and the part more, after which the numbers are brought up to date
_QUANTA: Final = {Channel.DEVICE: 2 * 1024**2, Channel.HOST: 4096}


def quantum(metric: str) -> int:
    """Return the smallest step that a metric can show: 2 MiB on the device, a page of memory or file, else 1."""
    if channel(metric) is Channel.COUNT:
        return 4096 if metric.endswith("_bytes") else 1
    return _QUANTA[channel(metric)]


def growth_test(metric: str, footprint: int = 0) -> GrowthTest:
    """Return a growth test for the readings of a metric.

    On the device the quantum is learned, never finer than a page of 2 MiB: what hands memory out in larger pieces
    (a pool of 20 MiB blocks) hides a leak for longer, and only a test that knows the pieces says how much STABLE
    excludes. On the host it is the page of the kernel, and counts are exact: both are known, and there a run of even
    differences would only be taken for a coarser quantum by chance.
    """
    kind, size = channel(metric), quantum(metric)
    if kind is Channel.DEVICE:
        return GrowthTest(None, footprint, kind, finest_quantum=size)
    return GrowthTest(size, footprint, kind)


@dataclass(slots=True)
class _SameLoads:
    """Cycles in a row that repeated their loads equally often, with their first and last reading.

    Attributes:
        cycles: Those of the treatment arm.
    """

    times: int = 0
    cycles: int = 0
    first: int = 0
    last: int = 0

    def take(self, times: int, arm: Arm, value: int) -> None:
        if times != self.times:
            self.times, self.cycles, self.first = times, 0, value
        self.cycles += arm is Arm.TREATMENT
        self.last = value


class JudgedSeries:
    """One metric over the cycles that count.

    Warm-up cycles and cycles whose expectation was not met are left out; what grew in them is taken off all later
    readings, so that nobody is blamed for it, while what they gave back counts. A new start of the server begins a new
    series.

    Args:
        metric: Name with unit, such as "host_private_bytes".
        amplified: The cycles of a phase repeat their loads 1, 2, 4 ... times before the reading. How many times is
            taken from `CycleReading.loads`, against that of the first judged cycle of the phase and arm.
    """

    def __init__(self, metric: str, amplified: bool = False) -> None:
        self.metric = metric
        self.amplified = amplified
        self._present = _SameLoads()
        self._first_loads: dict[tuple[str, Arm], int] = {}
        self.unsettled = 0
        self.missing = 0
        self._test: GrowthTest | None = None
        self._treated: GrowthTest | None = None  # of the last start of the server with treatment cycles
        self._earlier: GrowthState | None = None
        self._told: GrowthState | None = None
        self._told_at = 0
        self._start_number: int | None = None
        self._taken_off = 0
        self._last: int | None = None
        self._footprint = 0
        self._arms: set[tuple[str, Arm]] = set()
        self._is_interleaved = False

    @property
    def state(self) -> GrowthState:
        """What all cycles up to now say; a leak before a restart of the server stays one."""
        return self._known(lambda test: test.state)

    @property
    def latest(self) -> GrowthState:
        """What was found with the last readings, without events and words; on a long run not always the very last.

        May be asked from another thread while readings come in.
        """
        return self._known(lambda test: self._told or test.latest)

    def _known(self, ask: Callable[[GrowthTest], GrowthState]) -> GrowthState:
        if self._earlier and (self._earlier.verdict is Growth.LEAK or self._test is None):
            return self._earlier
        if self._test is None:
            return GrowthState(Growth.INCONCLUSIVE, reason="no cycle was judged")
        if self._earlier and self._test.treatment_cycles == 0:
            return self._earlier
        return ask(self._test)

    @property
    def wants_more_loads(self) -> bool:
        """Whether more loads would show more: nothing can be said of 12 treatment cycles at the present number of them.

        They were flat; or, on the host, where pages trickle in on a healthy server too, each took less than the warm-up
        of a heap may.
        """
        if self._test is None or self._present.cycles < _CYCLES_BEFORE_DOUBLING:
            return False
        return self._test.wants_more_loads or self._is_slow()

    def _is_slow(self) -> bool:
        at = self._present
        return channel(self.metric) is Channel.HOST and at.last - at.first < at.cycles * _SLOW_BYTES

    def in_plain_words(self) -> str:
        """Return a paragraph that says why, with the numbers that decided, or what is missing."""
        state = self.state
        return state.plain_words or f"Nothing was judged: {state.reason}."

    def excluded_so_far(self) -> float | None:
        """Return the smallest leak, in bytes per cycle, that the last start's cycles would have shown, if any."""
        test = self._test
        return None if test is None else test.excluded_so_far()

    @property
    def footprint(self) -> int:
        """Largest difference seen between a loaded model and the same cycle's post-unload reading, in bytes."""
        return self._footprint

    def values(self, arm: Arm) -> list[int]:
        """Return the judged readings of one arm, in order, of the last start of the server with treatment cycles."""
        return [value for seen, value in self._readings() if seen is arm]

    def blocks(self) -> list[tuple[Arm, list[int]]]:
        """Return the judged readings in runs of cycles of one arm, in order."""
        return [(arm, [value for _, value in run]) for arm, run in groupby(self._readings(), key=itemgetter(0))]

    def _readings(self) -> list[tuple[Arm, int]]:
        test = self._treated or self._test
        return [] if test is None else list(test.readings.in_order())

    def control_state(self) -> GrowthState:
        """Judge the control arm by itself, from what grew in its own cycles; it may leak as well."""
        test, level = growth_test(self.metric, self._footprint), 0
        before: int | None = None
        for arm, value in self._readings():
            if arm is Arm.CONTROL:
                level += 0 if before is None else value - before
                test.see(level, Arm.TREATMENT)
            before = value
        return test.state

    def see(self, reading: CycleReading) -> GrowthState:
        """Take the next cycle; return what is found with it."""
        self.take(reading)
        return self.latest

    def take(self, reading: CycleReading) -> None:
        """Take the next cycle."""
        value = reading.values.get(self.metric)
        if reading.start_number != self._start_number:
            self._begin(reading.start_number)
        if value is None:
            self.missing += reading.is_judged
            return
        self._note_footprint(reading, value)
        if reading.is_judged:
            self._judge(reading, value)
        elif self._last is not None:
            self._taken_off += max(0, value - self._last)
        self._last = value

    def _begin(self, start_number: int) -> None:
        if self._test is not None and self._test.treatment_cycles and not self._has_leak_before():
            self._earlier = self._test.state
        self._test, self._last, self._taken_off, self._present = None, None, 0, _SameLoads()
        self._told, self._told_at = None, 0
        self._start_number = start_number

    def _has_leak_before(self) -> bool:
        return self._earlier is not None and self._earlier.verdict is Growth.LEAK

    def _note_footprint(self, reading: CycleReading, value: int) -> None:
        loaded = reading.loaded.get(self.metric)
        if loaded is not None:
            self._footprint = max(self._footprint, loaded - value)

    def _judge(self, reading: CycleReading, value: int) -> None:
        if (reading.phase, reading.arm) not in self._arms:
            self._arms.add((reading.phase, reading.arm))
            # Only coin-ordered pairs put both arms into one phase.
            self._is_interleaved = len({phase for phase, _ in self._arms}) < len(self._arms)
        if self._test is None:
            self._test = growth_test(self.metric)
        self._test.interleaved = self._is_interleaved
        self._test.footprint = self._footprint
        self.unsettled += self.metric in reading.unsettled
        if reading.arm is Arm.TREATMENT:
            self._treated = self._test
        times, level = self._times(reading) if self.amplified else 1, value - self._taken_off
        self._present.take(times, reading.arm, level)
        self._tell(self._test, self._test.see(level, reading.arm, times).verdict)

    def _tell(self, test: GrowthTest, verdict: Growth) -> None:
        """Bring the numbers up to date: at each reading, in a long run with each 25th part more."""
        count = len(test.readings)
        is_due = count < _LONG or count >= self._told_at + self._told_at // _SHARE
        if self._told is None or self._told.verdict is not verdict or is_due:
            self._told, self._told_at = test.brief(), count

    def _times(self, reading: CycleReading) -> int:
        first = self._first_loads.setdefault((reading.phase, reading.arm), reading.loads)
        return max(1, reading.loads // first) if first else 1
