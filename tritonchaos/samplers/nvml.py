"""Device metrics from NVML: memory of each GPU, and of the server's processes on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from tritonchaos.errors import SamplerError
from tritonchaos.nvml import Gpu, NoNvml, Nvml, open_nvml, visible_gpus
from tritonchaos.plugins import SAMPLERS, Group, SampleScope
from tritonchaos.post_unload import OTHERS_USED
from tritonchaos.processes import read_stat
from tritonchaos.units import MIB, format_bytes

DEVICE_USED: Final = "nvml_device_used_bytes"
DEVICE_RESERVED: Final = "nvml_device_reserved_bytes"
PROCESS_USED: Final = "nvml_process_used_bytes"
_METRICS: Final = (DEVICE_USED, DEVICE_RESERVED, PROCESS_USED)

# The driver maps device memory in pages of this size.
_DEVICE_PAGE_BYTES: Final = 2 * MIB
# An idle GPU shows a few MiB as used; more, with nobody listed, is a program that this system does not show.
_IDLE_BYTES: Final = 64 * MIB
# Number of the first PID namespace of a machine (PROC_PID_INIT_INO in the kernel's proc_ns.h).
_FIRST_PID_NAMESPACE: Final = "pid:[4026531836]"


@SAMPLERS.register
@dataclass(slots=True)
class NvmlSampler:
    """Read used and reserved memory of each GPU, and what the server's processes hold there, from NVML.

    `nvidia-smi --query-gpu=memory.used,memory.reserved` and `--query-compute-apps=pid,used_memory` show the same.
    """

    name: ClassVar[str] = "nvml"

    connect: Callable[[], Nvml | NoNvml] = open_nvml
    pids_are_ours: bool = field(default_factory=lambda: _is_first_pid_namespace())
    _nvml: Nvml | None = field(default=None, init=False)
    _uuids: tuple[str, ...] = field(default=(), init=False)
    _lost: set[str] = field(default_factory=set, init=False)
    _was_read: set[str] = field(default_factory=set, init=False)
    _totals: dict[str, int] = field(default_factory=dict, init=False)
    _tree: _ServerTree = field(default_factory=lambda: _ServerTree(), init=False)
    _notes: list[str] = field(default_factory=list, init=False)
    _neighbours: dict[tuple[str, int], _Neighbour] = field(default_factory=dict, init=False)

    def open(self, scope: SampleScope) -> Mapping[str, str]:
        self.close()
        if not scope.is_here:
            return dict.fromkeys(_METRICS, "not applicable: the server runs on another machine")
        connected = self.connect()
        if isinstance(connected, NoNvml):
            if self._was_read:
                raise SamplerError(f"NVML is gone: {connected.reason}", hint=connected.hint)
            return dict.fromkeys(_METRICS, connected.reason)
        self._nvml = connected
        self._tree.start(scope.pid)
        try:
            return self._choose(connected, scope)
        except SamplerError as error:
            self.close()
            if self._was_read:
                raise
            return dict.fromkeys(_METRICS, error.message)

    def read(self, group: Group) -> Mapping[str, int]:
        values: dict[str, int] = {}
        for uuid in self._uuids:
            if self._nvml is not None and uuid not in self._lost:
                values.update(self._read_or_lose(self._nvml, uuid))
        return values

    def quanta(self) -> Mapping[str, int]:
        return {self._metric(metric, uuid): _DEVICE_PAGE_BYTES for uuid in self._uuids or ("",) for metric in _METRICS}

    def capacities(self) -> Mapping[str, int]:
        return dict(self._totals)

    def notes(self) -> Sequence[str]:
        if self._nvml is not None:
            for uuid in self._uuids:
                self._look_around(self._nvml, uuid)
        found = sorted(self._neighbours.items())
        is_certain = self.pids_are_ours or self._tree.was_listed
        neighbours = [neighbour.note(uuid, pid, is_certain) for (uuid, pid), neighbour in found]
        return (*dict.fromkeys(self._notes), *self._note_foreign_pids(), *neighbours)

    def close(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
        self._nvml = None
        self._uuids = ()

    # --- opening ---------------------------------------------------------------------------------

    def _choose(self, nvml: Nvml, scope: SampleScope) -> dict[str, str]:
        gpus = nvml.gpus()
        if scope.gpu_uuids:
            self._uuids = scope.gpu_uuids
        else:
            visible = visible_gpus(gpus, os.environ)
            self._uuids = visible.uuids
            self._notes.extend(visible.notes)
        if not self._uuids:
            return dict.fromkeys(_METRICS, f"no GPU is visible ({len(gpus)} in the machine; see CUDA_VISIBLE_DEVICES)")
        if nvml.is_stand_in():
            self._notes.append("device memory was read from a stand-in NVML, not from a GPU")
        self._notes.extend(nvml.problems)
        self._note_mig(gpus)
        unavailable: dict[str, str] = {}
        for uuid in self._uuids:
            try:
                unavailable.update(self._try_out(nvml, uuid, scope.pid))
            except SamplerError as error:
                if uuid not in self._was_read:
                    self._lost.add(uuid)
                # One that an earlier server's readings have is tried once more, and then reported as lost.
                unavailable.update({self._metric(metric, uuid): error.message for metric in _METRICS})
        return unavailable

    def _try_out(self, nvml: Nvml, uuid: str, pid: int | None) -> dict[str, str]:
        """Ask once, so that what this driver cannot tell is known before the run and not during it."""
        memory = nvml.memory(uuid)
        self._totals[self._metric(DEVICE_USED, uuid)] = memory.total_bytes
        unavailable = {}
        if memory.reserved_bytes is None:
            unavailable[DEVICE_RESERVED] = "this driver has version 1 of the memory query only; used includes reserved"
            self._notes.append(f"{uuid}: {unavailable[DEVICE_RESERVED]}")
        listed = nvml.processes(uuid)
        if listed is None:
            unavailable[PROCESS_USED] = "this driver does not list processes"
        elif None in listed.values():
            unavailable[PROCESS_USED] = "this driver does not tell the memory of a process (as on WSL)"
        elif pid is None:
            unavailable[PROCESS_USED] = "not applicable: no server process is known on this machine"
        self._look_around(nvml, uuid)
        if pid is None and not self._tree.known and memory.used_bytes > _IDLE_BYTES and not nvml.all_processes(uuid):
            used = format_bytes(memory.used_bytes)
            self._notes.append(f"{uuid}: {used} in use before the server started, by nobody that the driver lists")
        return {self._metric(metric, uuid): reason for metric, reason in unavailable.items()}

    def _note_mig(self, gpus: Iterable[Gpu]) -> None:
        for gpu in gpus:
            if gpu.has_mig_mode and gpu.uuid in self._uuids:
                self._notes.append(f"{gpu.uuid} is in MIG mode: its numbers are sums over its instances (MIG-...)")

    # --- reading ---------------------------------------------------------------------------------

    def _read_or_lose(self, nvml: Nvml, uuid: str) -> dict[str, int]:
        try:
            return self._read_gpu(nvml, uuid)
        except SamplerError as error:
            self._lost.add(uuid)
            metrics = [self._metric(metric, uuid) for metric in _METRICS]
            raise SamplerError(error.message, metrics=metrics, hint=error.hint) from error

    def _read_gpu(self, nvml: Nvml, uuid: str) -> dict[str, int]:
        memory, listed = nvml.memory(uuid), nvml.processes(uuid)
        own = self._own_bytes(listed)
        read = {
            DEVICE_USED: memory.used_bytes,
            DEVICE_RESERVED: memory.reserved_bytes,
            PROCESS_USED: own,
            OTHERS_USED: _others_bytes(memory.used_bytes, own, listed),
        }
        self._remember_neighbours(uuid, listed or {})
        self._was_read.add(uuid)
        return {self._metric(metric, uuid): value for metric, value in read.items() if value is not None}

    def _own_bytes(self, listed: Mapping[int, int | None] | None) -> int | None:
        """Sum over the server's processes; one that a driver does not list has no memory there."""
        if self._tree.pid is None or listed is None or None in listed.values():
            return None
        own = [used or 0 for pid, used in listed.items() if self._tree.has(pid)]
        if not own and not self.pids_are_ours and not self._tree.was_listed:
            # In a container the driver may list pids of the host; nobody can tell which one is the server's.
            return None
        self._tree.was_listed |= bool(own)
        return sum(own)

    def _metric(self, metric: str, uuid: str) -> str:
        return f"{metric}@{uuid}" if len(self._uuids) > 1 else metric

    # --- who else is there -----------------------------------------------------------------------

    def _look_around(self, nvml: Nvml, uuid: str) -> None:
        if uuid in self._lost:
            return
        try:
            self._remember_neighbours(uuid, nvml.all_processes(uuid))
        except SamplerError:
            # The next reading meets the same trouble and reports it as lost.
            return

    def _note_foreign_pids(self) -> Sequence[str]:
        if self.pids_are_ours or self._tree.pid is None or self._tree.was_listed or not self._neighbours:
            return ()
        return (
            "memory of the server's processes is not known: the driver lists pids of another PID namespace "
            "(run the container with the host's, --pid=host)",
        )

    def _remember_neighbours(self, uuid: str, listed: Mapping[int, int | None]) -> None:
        for pid, used in listed.items():
            if self._tree.has(pid) or (self.pids_are_ours and read_stat(pid) is None):
                # The driver still lists a process for a moment after its end.
                continue
            known = self._neighbours.get((uuid, pid))
            if known is None:
                self._neighbours[uuid, pid] = _Neighbour(_command(pid), used)
            elif used is not None:
                known.used_bytes = max(used, known.used_bytes or 0)


def _others_bytes(used_bytes: int, own: int | None, listed: Mapping[int, int | None] | None) -> int | None:
    """What others than the server use; where its processes are not known, others than all that are listed."""
    if own is not None:
        return used_bytes - own
    if not listed or None in listed.values():
        return None
    return used_bytes - sum(used or 0 for used in listed.values())


@dataclass(slots=True)
class _Neighbour:
    """Another process on the same GPU, with the most that was seen of it."""

    command: str
    used_bytes: int | None

    def note(self, uuid: str, pid: int, is_certain: bool) -> str:
        used = "unknown memory" if self.used_bytes is None else format_bytes(self.used_bytes)
        doubt = "" if is_certain else " (or the server itself: the pid may be the host's)"
        return f"{uuid} is not idle: pid {pid} ({self.command}) uses it too, {used}{doubt}"


@dataclass(slots=True)
class _ServerTree:
    """Which pids are the server's: its own, and those whose parents lead to it.

    Attributes:
        known: Every pid that was once the server's; a stub that lost its parent stays one of them.
        was_listed: The driver has listed one of them, so its pids are those of this machine.
    """

    pid: int | None = None
    known: set[int] = field(default_factory=set)
    strangers: set[int] = field(default_factory=set)
    was_listed: bool = False

    def start(self, pid: int | None) -> None:
        self.pid = pid
        self.strangers.clear()
        self.was_listed = False
        if pid is not None:
            self.known.add(pid)

    def has(self, pid: int) -> bool:
        if pid not in self.known and pid not in self.strangers:
            (self.known if self._leads_to_server(pid) else self.strangers).add(pid)
        return pid in self.known

    def _leads_to_server(self, pid: int) -> bool:
        while self.pid is not None and pid > 1:
            if pid in self.known:
                return True
            stat = read_stat(pid)
            pid = 0 if stat is None else stat.parent_pid
        return False


def _command(pid: int) -> str:
    stat = read_stat(pid)
    return "of another container or user" if stat is None else stat.command


def _is_first_pid_namespace() -> bool:
    try:
        return str(Path("/proc/self/ns/pid").readlink()) == _FIRST_PID_NAMESPACE
    except OSError:
        return False
