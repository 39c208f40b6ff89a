"""Did the steps that record their latency stay within what the scenario allows?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from tritonchaos.observations import Arm, History
from tritonchaos.plugins import CHECKERS, Seconds
from tritonchaos.post_unload import CycleReading, judged_readings
from tritonchaos.verdict import Assessment, Finding, Status

_NAME: Final = "latency"
_NS: Final = 1e9
_TIMES_CONTROL: Final = 2.0


@CHECKERS.register
@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of the steps with `record: NAME` must keep to a limit, or to that of the control arm.

    Cycles in which a step was not as expected do not count, nor do warm-up cycles.

    Attributes:
        record: The NAME; absent: each that was recorded.
        at_most: Longest time that is allowed.
        times_control: How many times the control arm's median the treatment arm's median may be; 2 if at_most is
            absent too.
        of: What `at_most` is held against: median, p99 or max over the treatment cycles.
    """

    name: ClassVar[str] = _NAME

    record: Annotated[str, Field(pattern=r"^([a-z][a-z0-9_]{0,59})?$")] = ""
    at_most: Annotated[Seconds, Field(gt=0)] | None = None
    times_control: Annotated[float, Field(gt=0)] | None = None
    of: Literal["median", "p99", "max"] = "median"

    def check(self, history: History) -> Sequence[Assessment]:
        """Hold the treatment arm's latencies against the limits."""
        readings = judged_readings(history)
        metrics = sorted({metric for reading in readings for metric in reading.latencies})
        if self.record:
            metrics = [f"latency_{self.record}_ns"]
        if not metrics:
            return [Assessment(_NAME, Status.UNKNOWN, "no judged cycle recorded a latency")]
        return [self._assess(metric, readings) for metric in metrics]

    def _assess(self, metric: str, readings: Sequence[CycleReading]) -> Assessment:
        treatment, control = (_of(readings, arm, metric) for arm in (Arm.TREATMENT, Arm.CONTROL))
        if not treatment or (self._times_control is not None and not control):
            arm = "treatment" if not treatment else "control"
            return Assessment(_NAME, Status.UNKNOWN, f"no judged {arm} cycle recorded it", metric)
        found = self._found(treatment, control)
        cycles = len(treatment)
        shown = ", ".join(f"{what} {_told(took_s)}" for what, took_s in found.items())
        reason = f"{shown} over {cycles} cycles"
        over = self._over(found)
        if over is None:
            return Assessment(_NAME, Status.PASS, reason, metric, cycles_used=cycles)
        title = f"{metric.removeprefix('latency_').removesuffix('_ns')} took too long: {over}"
        finding = Finding("slowdown", _NAME, title, metric, evidence=(reason,))
        return Assessment(_NAME, Status.FAIL, over, metric, cycles_used=cycles, findings=(finding,))

    @property
    def _times_control(self) -> float | None:
        is_without_limit = self.at_most is None and self.times_control is None
        return _TIMES_CONTROL if is_without_limit else self.times_control

    def _found(self, treatment: Sequence[int], control: Sequence[int]) -> Mapping[str, float]:
        """What was measured, in seconds."""
        rank = math.ceil(0.99 * len(treatment)) - 1
        found = {
            "median": statistics.median(treatment) / _NS,
            "p99": sorted(treatment)[rank] / _NS,
            "max": max(treatment) / _NS,
        }
        return found | ({"control's median": statistics.median(control) / _NS} if control else {})

    def _over(self, found: Mapping[str, float]) -> str | None:
        if self.at_most is not None and found[self.of] > self.at_most:
            return f"{self.of} {_told(found[self.of])}, more than {_told(self.at_most)}"
        limit = self._times_control
        if limit is None or found["median"] <= limit * found["control's median"]:
            return None
        times = found["median"] / max(found["control's median"], 1 / _NS)
        return f"median {times:.2f} times that of the control arm, more than {limit:g}"


def _told(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _of(readings: Sequence[CycleReading], arm: Arm, metric: str) -> list[int]:
    return [reading.latencies[metric] for reading in readings if reading.arm is arm and metric in reading.latencies]
