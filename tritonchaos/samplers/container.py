"""Memory of the container that the server runs in, as its limit counts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from tritonchaos.containers.cgroups import MemoryCount
from tritonchaos.plugins import SAMPLERS, Group, SampleScope
from tritonchaos.processes import PAGE_BYTES

_MEMORY: Final = "container_memory_bytes"


@SAMPLERS.register
@dataclass(slots=True)
class ContainerSampler:
    """Read the memory that the server's container uses from its cgroup: processes, /dev/shm, /tmp and page cache.

    It is what a memory limit counts. Page cache comes and goes, so it is not judged. A server in no container has none.
    """

    name: ClassVar[str] = "container"

    _count: MemoryCount | None = field(default=None, init=False)

    def open(self, scope: SampleScope) -> Mapping[str, str]:
        self.close()
        count = MemoryCount(scope.cgroups)
        self._count = None if count.bytes() is None else count
        return {}

    def read(self, group: Group) -> Mapping[str, int]:
        value = self._count.bytes() if self._count is not None and group is Group.ALL else None
        return {} if value is None else {_MEMORY: value}

    def quanta(self) -> Mapping[str, int]:
        return {} if self._count is None else {_MEMORY: PAGE_BYTES}

    def notes(self) -> Sequence[str]:
        return ()

    def close(self) -> None:
        if self._count is not None:
            self._count.close()
        self._count = None
