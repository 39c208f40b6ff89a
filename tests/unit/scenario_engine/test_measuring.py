"""Settle windows: memory that falls after one lengthens the next, unless it may be somebody else's."""

from __future__ import annotations

import pytest

from tritonchaos.observations import Event, Note
from tritonchaos.plugins import Group
from tritonchaos.sampling import Settled
from tritonchaos.scenario_engine.journal import Journal
from tritonchaos.scenario_engine.measuring import Measuring
from tritonchaos.units import MIB

HOST, DEVICE, PROCESS = "host_rss_bytes", "nvml_device_used_bytes", "nvml_process_used_bytes"
OTHER = f"{PROCESS}@GPU-2"


class Falling:
    """Stands for the samplers: settles at some values, of which less is left later."""

    def __init__(self, settled: dict[str, int], later: dict[str, int]) -> None:
        self._settled = settled
        self._later = later

    def settle(self, sample_count: int, at_most_s: float) -> Settled:
        values = {metric: (value,) * sample_count for metric, value in self._settled.items()}
        return Settled(tuple(range(sample_count)), values, frozenset(values))

    def read(self, group: Group) -> dict[str, int]:
        return self._later

    def lost(self) -> dict[str, str]:
        return {}


class Kept:
    """A store that keeps its events in a list."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)


def pauses_after(settled: dict[str, int], later: dict[str, int]) -> tuple[list[float], list[str]]:
    """How long the next window waits, and what is noted."""
    store, pauses = Kept(), []
    measuring = Measuring(Falling(settled, later), Journal(store, lambda: 0, 3), 3, 2.0, pauses.append)  # type: ignore[arg-type]
    measuring.settle_cycle("p", None, 0)
    measuring.before_next()
    measuring.settle_cycle("p", None, 1)
    return pauses, [event.text for event in store.events if isinstance(event, Note)]


@pytest.mark.parametrize(
    "fallen",
    [
        {HOST: (9 * MIB, MIB)},
        {DEVICE: (9 * MIB, MIB)},
        {DEVICE: (9 * MIB, MIB), PROCESS: (9 * MIB, MIB)},
        {f"{DEVICE}@GPU-1": (9 * MIB, MIB), OTHER: (MIB, MIB)},
    ],
)
def test_memory_that_fell_makes_the_next_window_begin_later(fallen: dict[str, tuple[int, int]]) -> None:
    pauses, notes = pauses_after({m: v[0] for m, v in fallen.items()}, {m: v[1] for m, v in fallen.items()})

    assert pauses == [0.05]
    assert "fell by 8 MiB after the settle window" in notes[0]


@pytest.mark.parametrize(
    "fallen", [{DEVICE: (9 * MIB, MIB), PROCESS: (MIB, MIB)}, {f"{DEVICE}@GPU-2": (9 * MIB, MIB), OTHER: (MIB, MIB)}]
)
def test_what_others_on_the_gpu_give_back_makes_no_window_later(fallen: dict[str, tuple[int, int]]) -> None:
    assert pauses_after({m: v[0] for m, v in fallen.items()}, {m: v[1] for m, v in fallen.items()}) == ([], [])
