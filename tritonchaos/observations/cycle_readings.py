"""The readings of finished cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tritonchaos.observations.replies import Arm


@dataclass(frozen=True, slots=True)
class CycleReading:
    """One finished cycle: what was still in use when its models were gone, and whether it counts.

    Attributes:
        start_number: Which start of the server was read; a change breaks every series.
        values: Metric -> median of the last `sample_count` readings; a metric without a reading is absent.
        unsettled: Metrics whose last readings did not lie within one quantum.
        mismatch: The first unmet expectation of its main-track steps, with the step's label; None: the cycle counts.
        loads: Number of load steps on the main track.
        loaded: Values of the cycle's last "loaded" reading; empty where there is none.
        latencies: latency_<NAME>_ns -> latency of the steps with `record: NAME`, the median if there were several.
    """

    phase: str
    arm: Arm
    cycle: int
    is_warm_up: bool
    start_number: int
    values: Mapping[str, int]
    unsettled: frozenset[str] = frozenset()
    mismatch: str | None = None
    loads: int = 0
    loaded: Mapping[str, int] = field(default_factory=dict)
    latencies: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_judged(self) -> bool:
        """It is no warm-up cycle and all its main-track steps did what they should."""
        return self.mismatch is None and not self.is_warm_up
