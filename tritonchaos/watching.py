"""The stopping rule of memory growth: what all finished cycles say up to now, live and offline alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tritonchaos.growth import Growth, JudgedSeries, quantum
from tritonchaos.observations import Arm
from tritonchaos.plugins import Advice
from tritonchaos.post_unload import OTHERS_USED, CycleReading, primary_metrics

_JUDGED: Final = ("nvml_process_used_bytes", "nvml_device_used_bytes", "host_private_bytes")
_TOTAL: Final = "nvml_device_used_bytes"
_CONTEXT_CYCLES: Final = 2
_INSTEAD: Final = ("host_rss_bytes", "host_private_bytes")  # the first is judged where the second cannot be read


@dataclass(slots=True)
class LeftOut:
    """Cycles of one arm that did not do what they should: the first, and how many; a long run may have any number."""

    first: CycleReading
    count: int = 0


@dataclass(slots=True)
class LoadsPerCycle:
    """Judged cycles in a row, of a phase with `amplify`, that loaded equally often before their reading."""

    phase: str
    loads: int
    cycles: int = 0


@dataclass(slots=True)
class _Others:
    """What others used on a GPU over the judged cycles; in the first of each start a context may still be made."""

    start_number: int = 0
    cycles: int = 0
    least: int = 0
    most: int = 0
    moved_bytes: int = 0

    def see(self, value: int, start_number: int) -> None:
        if start_number != self.start_number:
            self.start_number, self.cycles = start_number, 0
        self.cycles += 1
        if self.cycles <= _CONTEXT_CYCLES:
            self.least = self.most = value
        self.least, self.most = min(self.least, value), max(self.most, value)
        self.moved_bytes = max(self.moved_bytes, self.most - self.least)


class GrowthWatch:
    """The stopping rule: enough when a deciding metric leaks, or when all of them are stable.

    A leak of another metric ends nothing: what a leak on the device makes the host keep can show first and hide it.

    Args:
        uses_gpu: A variant that needs a GPU was served, so that only device metrics can decide.
        metrics: Metrics to judge, all of them deciding; empty: the checker's own choice.
        amplified: Phases whose cycles may do their steps more than once before they are read.
    """

    def __init__(self, uses_gpu: bool, metrics: Sequence[str] = (), amplified: Collection[str] = ()) -> None:
        self._uses_gpu = uses_gpu
        self._asked = tuple(metrics)
        self._amplified = frozenset(amplified)
        self.loads: list[LoadsPerCycle] = []
        self._others: dict[str, _Others] = {}
        # Names of metrics that were read together -> those of them that are of all processes on a GPU.
        self._totals_in: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._totals: dict[str, tuple[int, int, int]] = {}  # start of the server, first and last treatment reading
        self.series: dict[str, JudgedSeries] = {}
        self.left_out: dict[Arm, LeftOut] = {}
        self.first_treatment: CycleReading | None = None

    def see(self, reading: CycleReading) -> Advice:
        """Take the next finished cycle and say whether the evidence is in."""
        self.take(reading)
        # Asked first, as it looks at every series anew; which on a long run is not done at each cycle.
        more = reading.phase in self._amplified and self._want_more_loads()
        if self._has_deciding_leak() or self._all_stable():
            return Advice.ENOUGH
        return Advice.DOUBLE_LOADS if more else Advice.GO_ON

    def take(self, reading: CycleReading) -> None:
        """Take the next finished cycle."""
        if not reading.is_warm_up and reading.mismatch is not None:
            self.left_out.setdefault(reading.arm, LeftOut(reading)).count += 1
        if self.first_treatment is None and reading.is_judged and reading.arm is Arm.TREATMENT:
            self.first_treatment = reading
        names = tuple(reading.values)
        if names not in self._totals_in:
            self._begin(names)
        if reading.is_judged:
            self._see_others(reading, self._totals_in[names])
        if reading.phase in self._amplified:
            self._count_loads(reading)
        elif self._amplified:
            reading = replace(reading, loads=1)  # `every` may vary them, which means nothing here
        for series in self.series.values():
            series.take(reading)

    @property
    def unit(self) -> str:
        """What rates are stated per: "load" where cycles repeated their loads, else "cycle"."""
        return "load" if self.loads_in_words() else "cycle"

    def _begin(self, names: tuple[str, ...]) -> None:
        """Begin the series of metrics that were not read together before."""
        for metric in self._judged_metrics(names):
            self.series.setdefault(metric, JudgedSeries(metric, amplified=bool(self._amplified)))
        self._totals_in[names] = tuple(m for m in names if m.partition("@")[0] in (OTHERS_USED, _TOTAL))

    def _see_others(self, reading: CycleReading, metrics: Sequence[str]) -> None:
        for metric in metrics:
            value = reading.values[metric]
            if metric.partition("@")[0] == OTHERS_USED:
                self._others.setdefault(metric, _Others()).see(value, reading.start_number)
            elif reading.arm is Arm.TREATMENT:
                start, first, _ = self._totals.get(metric, (0, 0, 0))
                same = start == reading.start_number
                self._totals[metric] = (reading.start_number, first if same else value, value)

    def _count_loads(self, reading: CycleReading) -> None:
        if not reading.is_judged:
            return
        last = self.loads[-1] if self.loads else None
        if last is None or (last.phase, last.loads) != (reading.phase, reading.loads):
            last = LoadsPerCycle(reading.phase, reading.loads)
            self.loads.append(last)
        last.cycles += 1

    def loads_in_words(self) -> dict[str, str]:
        """Say for each phase that repeated its loads how often it did, and for how many judged cycles."""
        words: dict[str, list[str]] = {}
        for one in self.loads:
            words.setdefault(one.phase, []).append(f"{one.loads} (over {one.cycles} cycles)")
        return {phase: ", ".join(parts) for phase, parts in words.items() if len(parts) > 1}

    def _want_more_loads(self) -> bool:
        deciding = self.deciding
        return bool(deciding) and all(self.series[metric].wants_more_loads for metric in deciding)

    @property
    def has_leak(self) -> bool:
        """A metric that speaks for the server alone leaks."""
        return any(self.is_leak(metric) for metric in self.series)

    @property
    def deciding(self) -> tuple[str, ...]:
        """Metrics whose verdict is the run's."""
        return tuple(self.series) if self._asked else primary_metrics(self._uses_gpu, self.series)

    def is_leak(self, metric: str) -> bool:
        """Say whether a metric leaks, and it is the server that it speaks of."""
        is_leak = self.series[metric].latest.verdict is Growth.LEAK
        return is_leak and not self.may_be_somebody_elses(metric) and not self.noise_bytes(metric)

    def noise_bytes(self, metric: str) -> int:
        """How far what others use on the GPU moved over the judged cycles, where that spoils this metric; else 0.

        Only totals of a device are spoilt, and no growth that is ten times as large.
        """
        name, at, uuid = metric.partition("@")
        others = self._others.get(f"{OTHERS_USED}{at}{uuid}")
        if name != _TOTAL or others is None or others.moved_bytes < quantum(metric):
            return 0
        _, first, last = self._totals.get(metric, (0, 0, 0))
        return others.moved_bytes if last - first < 10 * others.moved_bytes else 0

    def may_be_somebody_elses(self, metric: str) -> bool:
        """Say whether others on the GPU could explain it: whole-device bytes that do not decide."""
        return metric.startswith("nvml_device_") and metric not in self.deciding

    def _has_deciding_leak(self) -> bool:
        return any(self.is_leak(metric) for metric in self.deciding or self.series)

    def _all_stable(self) -> bool:
        deciding = self.deciding
        return bool(deciding) and all(
            self.series[m].latest.verdict is Growth.STABLE and not self.noise_bytes(m) for m in deciding
        )

    def _judged_metrics(self, names: Sequence[str]) -> list[str]:
        wanted = self._asked or _JUDGED
        found = [metric for metric in names if metric in wanted or metric.partition("@")[0] in wanted]
        other, usual = _INSTEAD
        if not self._asked and usual not in names and usual not in self.series and other in names:
            found.append(other)
        return found
