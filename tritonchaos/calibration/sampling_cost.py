"""What a reading of all samplers costs, measured on the server under test just after its start."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from tritonchaos.errors import SamplerError
from tritonchaos.observations import Event, ServerStarted
from tritonchaos.plugins import SAMPLERS, Group, Sampler, SampleScope

_READINGS: Final = 50


@dataclass(frozen=True, slots=True)
class SamplingCost:
    """Processor time of one reading, in nanoseconds.

    Attributes:
        fast_ns: Of the metrics that are read 50 times a second.
        all_ns: Of all metrics, as in a settle window.
    """

    fast_ns: int
    all_ns: int

    @property
    def share(self) -> float:
        """Share of one core that sampling between settle windows takes."""
        return (49 * self.fast_ns + self.all_ns) / 1e9


class CostMeter:
    """An observer of a run: measures once, when the server has started, before anything is done to it."""

    def __init__(self) -> None:
        self.cost: SamplingCost | None = None

    def __call__(self, event: Event) -> None:
        """Take an event of the run."""
        if isinstance(event, ServerStarted) and self.cost is None:
            self.cost = measure(SampleScope(event.pid, is_here=event.pid is not None))


def measure(scope: SampleScope) -> SamplingCost | None:
    """Read all samplers some fifty times; None where one of them cannot be read."""
    samplers: list[Sampler] = [SAMPLERS[name]() for name in SAMPLERS.names()]
    try:
        for sampler in samplers:
            sampler.open(scope)
        return SamplingCost(_time(samplers, Group.FAST), _time(samplers, Group.ALL))
    except SamplerError:
        return None
    finally:
        for sampler in samplers:
            sampler.close()


def _time(samplers: list[Sampler], group: Group) -> int:
    began_ns = time.thread_time_ns()  # processor time: what else the machine does is not sampling's cost
    for _ in range(_READINGS):
        for sampler in samplers:
            sampler.read(group)
    return (time.thread_time_ns() - began_ns) // _READINGS
