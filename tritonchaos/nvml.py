"""NVML, the driver's management library, through module `pynvml` of nvidia-ml-py: memory and processes of GPUs by UUID.

Source: NVML API reference, "Device Queries" and "Multi Instance GPU Management"; CUDA C++ programming guide,
"CUDA Environment Variables" (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tritonchaos.errors import SamplerError

T = TypeVar("T")

# The list of processes may grow between asking for its length and for its content; how often that is tried again.
_LIST_ATTEMPTS: Final = 3
# Where the version of the driver begins like this there is none: tests/nvml_stand_in.
_STAND_IN: Final = "stand-in"
# The usual ways to hide every GPU.
_NONE_WANTED: Final = ("", "-1", "NoDevFiles")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU.

    Attributes:
        index: NVML's; for printing only (CUDA counts in another order).
        uuid: "GPU-...".
        has_mig_mode: It is split into MIG instances, so its own numbers are the sum over them.
    """

    index: int
    uuid: str
    name: str
    has_mig_mode: bool


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Memory of a GPU.

    Attributes:
        reserved_bytes: Taken by driver and firmware; None where only version 1 of the query exists, which counts it
            as used.
    """

    total_bytes: int
    used_bytes: int
    reserved_bytes: int | None
    free_bytes: int


@dataclass(frozen=True, slots=True)
class NoNvml:
    """NVML cannot be used here, and why."""

    reason: str
    hint: str


class Nvml:
    """One counted use of NVML, between `open_nvml` and `close`.

    Args:
        library: Module `pynvml`, already initialised.

    Attributes:
        problems: What was wrong with GPUs that `gpus` left out.
    """

    def __init__(self, library: Any) -> None:
        self.problems: list[str] = []
        self._library = library
        self._handles: dict[str, Any] = {}
        self._memory_version: int | None = getattr(library, "nvmlMemory_v2", None)
        self._is_open = True

    def driver_version(self) -> str:
        """Version of the driver, such as "580.159.03"."""
        return str(self._ask("driver version", self._library.nvmlSystemGetDriverVersion))

    def is_stand_in(self) -> bool:
        """Say whether a test's library answers in place of the driver's; it gives itself away by its version."""
        try:
            return self.driver_version().startswith(_STAND_IN)
        except SamplerError:
            return False

    def gpus(self) -> list[Gpu]:
        """All GPUs that answer, in NVML's order (by PCI bus); MIG instances are found by their UUID only."""
        found = []
        self.problems = []
        for index in range(self._ask("number of GPUs", self._library.nvmlDeviceGetCount)):
            try:
                found.append(self._describe(self._handle_at(index), index))
            except SamplerError as error:
                self.problems.append(error.message)
        return found

    def memory(self, uuid: str) -> DeviceMemory:
        """Read the memory of a GPU; about 8 microseconds.

        Raises:
            SamplerError: The GPU or the driver is lost.

        Source: nvmlDeviceGetMemoryInfo_v2, whose `used` leaves `reserved` out; version 1 counts both as used.
        """
        handle = self._handle(uuid)
        if self._memory_version is not None:
            try:
                read = self._library.nvmlDeviceGetMemoryInfo(handle, version=self._memory_version)
                return DeviceMemory(int(read.total), int(read.used), int(read.reserved), int(read.free))
            except self._library.NVMLError as error:
                if not self._is_unsupported(error):
                    raise self._lost(f"memory of {uuid}", error) from error
                self._memory_version = None
        read = self._ask(f"memory of {uuid}", lambda: self._library.nvmlDeviceGetMemoryInfo(handle))
        return DeviceMemory(int(read.total), int(read.used), None, int(read.free))

    def processes(self, uuid: str) -> dict[int, int | None] | None:
        """Pid -> device memory in bytes (None: the driver does not tell) of the processes that compute on a GPU.

        Clients of the multi-process service (MPS) have a list of their own in NVML and are included.

        Returns:
            None where the driver does not list processes, or the list changed too fast to be read.

        Raises:
            SamplerError: The GPU or the driver is lost.
        """
        compute = self._listed(uuid, "nvmlDeviceGetComputeRunningProcesses")
        clients = self._listed(uuid, "nvmlDeviceGetMPSComputeRunningProcesses")
        return None if compute is None else (clients or {}) | compute

    def all_processes(self, uuid: str) -> dict[int, int | None]:
        """Like `processes`, with those that only draw; {} where the driver does not list processes."""
        graphics = self._listed(uuid, "nvmlDeviceGetGraphicsRunningProcesses") or {}
        return graphics | (self.processes(uuid) or {})

    def close(self) -> None:
        """Give this use back; NVML itself counts them. Harmless when repeated."""
        if self._is_open:
            self._is_open = False
            try:
                self._library.nvmlShutdown()
            except self._library.NVMLError:
                # A driver that went away has nothing left to shut down.
                return

    # --- how NVML is asked -----------------------------------------------------------------------

    def _ask(self, what: str, question: Callable[[], T]) -> T:
        try:
            return question()
        except self._library.NVMLError as error:
            raise self._lost(what, error) from error

    def _lost(self, what: str, error: Exception) -> SamplerError:
        return SamplerError(f"NVML cannot read the {what}: {error}", hint="nvidia-smi shows the state of the driver")

    def _is_unsupported(self, error: Exception) -> bool:
        lacking = ("NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_FUNCTION_NOT_FOUND", "NVML_ERROR_ARGUMENT_VERSION_MISMATCH")
        denied = ("NVML_ERROR_NO_PERMISSION",)
        return getattr(error, "value", None) in {getattr(self._library, name, None) for name in lacking + denied}

    def _handle(self, uuid: str) -> Any:
        if uuid not in self._handles:
            self._handles[uuid] = self._ask(f"GPU {uuid}", lambda: self._library.nvmlDeviceGetHandleByUUID(uuid))
        return self._handles[uuid]

    def _handle_at(self, index: int) -> Any:
        return self._ask(f"GPU number {index}", lambda: self._library.nvmlDeviceGetHandleByIndex(index))

    def _describe(self, handle: Any, index: int) -> Gpu:
        uuid = str(self._ask("UUID of a GPU", lambda: self._library.nvmlDeviceGetUUID(handle)))
        name = str(self._ask(f"name of {uuid}", lambda: self._library.nvmlDeviceGetName(handle)))
        return Gpu(index, uuid, name, has_mig_mode=self._has_mig_mode(handle))

    def _has_mig_mode(self, handle: Any) -> bool:
        try:
            current, _pending = self._library.nvmlDeviceGetMigMode(handle)
        except self._library.NVMLError:
            # GPUs without MIG answer "not supported".
            return False
        return bool(current)

    def _listed(self, uuid: str, function: str) -> dict[int, int | None] | None:
        ask = getattr(self._library, function, None)
        if ask is None:
            return None
        for _ in range(_LIST_ATTEMPTS):
            try:
                found = ask(self._handle(uuid))
            except self._library.NVMLError as error:
                if self._is_unsupported(error):
                    return None
                if getattr(error, "value", None) != self._library.NVML_ERROR_INSUFFICIENT_SIZE:
                    raise self._lost(f"processes of {uuid}", error) from error
            else:
                return {int(process.pid): _size(process.usedGpuMemory) for process in found}
        return None


def _size(used: object) -> int | None:
    # NVML_VALUE_NOT_AVAILABLE is all bits set; pynvml turns it into None for some of its lists only.
    return None if not isinstance(used, int) or used >= 2**64 - 1 else used


def open_nvml() -> Nvml | NoNvml:
    """Start to use NVML; say why where it cannot be used. Never raises."""
    try:
        import pynvml
    except ImportError:
        return NoNvml("Python module pynvml is not installed", "pip install nvidia-ml-py")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _why_not(pynvml, error)
    return Nvml(pynvml)


def _why_not(library: Any, error: Exception) -> NoNvml:
    value = getattr(error, "value", None)
    if value == library.NVML_ERROR_LIBRARY_NOT_FOUND:
        return NoNvml(
            "no NVIDIA driver: libnvidia-ml.so.1 not found",
            "without a GPU nothing is missing; in a container, start it with --gpus",
        )
    if value == library.NVML_ERROR_DRIVER_NOT_LOADED:
        return NoNvml("the NVIDIA driver is installed but not loaded", "load its kernel module: modprobe nvidia")
    if value == getattr(library, "NVML_ERROR_LIB_RM_VERSION_MISMATCH", None):
        return NoNvml("the NVIDIA driver was updated while it was loaded: versions differ", "restart the machine")
    return NoNvml(f"NVML does not start: {error}", "nvidia-smi shows the state of the driver")


# --- which GPUs a server sees --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VisibleGpus:
    """UUIDs of the GPUs that CUDA programs see, in CUDA's order as far as it is known, and what is doubtful of it."""

    uuids: tuple[str, ...]
    notes: tuple[str, ...] = ()


def visible_gpus(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> VisibleGpus:
    """Apply CUDA_VISIBLE_DEVICES to the list of GPUs.

    Entries are UUIDs, unique beginnings of UUIDs ("GPU-8932f937"), MIG instances, or numbers in CUDA's order. As in
    CUDA, the first entry that names no GPU hides itself and all that follow.
    """
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return VisibleGpus(tuple(gpu.uuid for gpu in gpus))
    uuids: list[str] = []
    notes: list[str] = []
    for entry in (part.strip() for part in chosen.split(",")):
        uuid = _uuid_of(entry, gpus)
        if uuid is None:
            notes += (
                [f"CUDA_VISIBLE_DEVICES: {entry!r} names no GPU; CUDA ignores it and what follows"] if entry else []
            )
            break
        uuids.append(uuid)
        if entry.isdigit() and not _counts_alike(gpus, environment):
            notes.append(
                f"CUDA_VISIBLE_DEVICES: number {entry} is taken as {uuid}; CUDA may count otherwise "
                "(set CUDA_DEVICE_ORDER=PCI_BUS_ID, or give the UUID)"
            )
    return VisibleGpus(tuple(dict.fromkeys(uuids)), tuple(notes))


def _uuid_of(entry: str, gpus: Sequence[Gpu]) -> str | None:
    if entry.isdigit():
        return gpus[int(entry)].uuid if int(entry) < len(gpus) else None
    if entry.startswith("MIG-"):
        return entry
    found = [gpu.uuid for gpu in gpus if entry.startswith("GPU-") and gpu.uuid.startswith(entry)]
    return found[0] if len(found) == 1 else None


def _counts_alike(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> bool:
    return len(gpus) == 1 or environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
