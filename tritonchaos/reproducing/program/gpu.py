"""Device memory through libnvidia-ml by ctypes, else through nvidia-smi."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from typing import Any

MIB = 1024 * 1024
# Source: nvml.h. Version 2 of the memory query keeps `reserved` apart from `used`.
NVML_MEMORY_V2 = 40 | (2 << 24)
NVML_NO_VALUE = 2**64 - 1


class NvmlMemory(ctypes.Structure):
    """nvmlMemory_v2_t."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class NvmlProcess(ctypes.Structure):
    """nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Nvml:
    """libnvidia-ml; `read` gives bytes by UUID."""

    name = "libnvidia-ml"

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        if self.library.nvmlInit_v2() != 0:
            raise OSError("nvmlInit failed")
        count = ctypes.c_uint()
        if self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            raise OSError("nvmlDeviceGetCount failed")
        self.devices: dict[str, Any] = {}
        for number in range(count.value):
            handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(96)
            if self.library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)) == 0:
                self.library.nvmlDeviceGetUUID(handle, uuid, 96)
                self.devices[uuid.value.decode()] = handle

    def read(self, pid: int) -> dict[str, dict[str, int]]:
        """UUID -> {"device", and "process" where NVML knows the process by this pid}."""
        return {uuid: self.read_device(handle, pid) for uuid, handle in self.devices.items()}

    def read_device(self, handle: Any, pid: int) -> dict[str, int]:
        """Read one device."""
        values = {}
        memory = NvmlMemory(version=NVML_MEMORY_V2)
        if self.library.nvmlDeviceGetMemoryInfo_v2(handle, ctypes.byref(memory)) == 0:
            values["device"] = memory.used
        count, processes = ctypes.c_uint(128), (NvmlProcess * 128)()
        query = getattr(self.library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if query is not None and query(handle, ctypes.byref(count), processes) == 0:
            for process in processes[: count.value]:
                if process.pid == pid and process.used != NVML_NO_VALUE:
                    values["process"] = process.used
        return values


class NvidiaSmi:
    """nvidia-smi, which shows the same numbers in MiB; a call takes tens of milliseconds."""

    name = "nvidia-smi"

    def read(self, pid: int) -> dict[str, dict[str, int]]:
        """As `Nvml.read`."""
        values = {}
        for uuid, used in self.ask("--query-gpu=uuid,memory.used"):
            values[uuid] = {"device": int(used) * MIB}
        for uuid, told_pid, used in self.ask("--query-compute-apps=gpu_uuid,pid,used_memory"):
            if told_pid == str(pid) and used.isdigit():
                values.setdefault(uuid, {})["process"] = int(used) * MIB
        return values

    def ask(self, query: str) -> list[list[str]]:
        """Lines of a query, split into fields."""
        command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        return [[field.strip() for field in line.split(",")] for line in lines if line.strip()]


def open_gpu() -> Any:
    """The better of the two ways, or None where there is no NVIDIA driver."""
    try:
        nvml = Nvml()
        if any("device" in values for values in nvml.read(0).values()):
            return nvml
    except (OSError, AttributeError):
        pass
    return NvidiaSmi() if shutil.which("nvidia-smi") else None
