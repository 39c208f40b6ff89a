"""Samplers: read numbers, fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol, runtime_checkable

from tritonchaos.plugins.naming import Named


@dataclass(frozen=True, slots=True)
class SampleScope:
    """Whose numbers a sampler reads.

    Attributes:
        pid: The server process; None before it starts and after it ended (then only device metrics exist).
        gpu_uuids: GPUs to read; empty: every visible GPU.
        shm_prefix: Names in /dev/shm that are this run's.
        temp: The server's TMPDIR.
        is_here: The server runs on this machine; if not, the numbers of this machine are none of it.
        shared_memory: The server's /dev/shm as a path of this process; None: that of this machine.
        cgroups: Controller -> folder of the server's cgroup, where it has one to itself; "" for cgroup v2.
    """

    pid: int | None
    gpu_uuids: tuple[str, ...] = ()
    shm_prefix: str = ""
    temp: Path | None = None
    is_here: bool = True
    shared_memory: Path | None = None
    cgroups: Mapping[str, Path] = field(default_factory=dict)


class Group(str, Enum):
    """Which metrics a reading covers: the fast group alone (50 Hz), or the slow group too."""

    FAST = "fast"
    ALL = "all"


class Sampler(Named, Protocol):
    """Reads numbers, fast; opened again after every start of a server."""

    def open(self, scope: SampleScope) -> Mapping[str, str]:
        """Get ready to read; return metric -> why it cannot be read here.

        A driver that was never there is no error.

        Raises:
            SamplerError: What an earlier server's readings have is lost for good.
        """

    def read(self, group: Group) -> Mapping[str, int]:
        """Metric with unit suffix -> value. A metric that cannot be read now is absent, never zero.

        Raises:
            SamplerError: Metrics that were there are lost for good.
        """

    def quanta(self) -> Mapping[str, int]:
        """Metric -> smallest step it can show (2 MiB on the device, 4096 bytes per host page, 1 for counts)."""

    def notes(self) -> Sequence[str]:
        """What a reader should know, such as who else uses the GPU."""

    def close(self) -> None:
        """Release what `open` took."""


@runtime_checkable
class HasCapacities(Protocol):
    """A sampler of memory that can run out."""

    def capacities(self) -> Mapping[str, int]:
        """Metric -> total bytes that there are."""
