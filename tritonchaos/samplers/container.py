"""Memory of the container that the server runs in, as its limit counts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from tritonchaos.containers.outside import memory_bytes, memory_folder
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

    _folder: Path | None = field(default=None, init=False)

    def open(self, scope: SampleScope) -> Mapping[str, str]:
        self._folder = memory_folder(scope.cgroups)
        return {}

    def read(self, group: Group) -> Mapping[str, int]:
        if self._folder is None or group is not Group.ALL:
            return {}
        value = memory_bytes(self._folder)
        return {} if value is None else {_MEMORY: value}

    def quanta(self) -> Mapping[str, int]:
        return {} if self._folder is None else {_MEMORY: PAGE_BYTES}

    def notes(self) -> Sequence[str]:
        return ()

    def close(self) -> None:
        self._folder = None
