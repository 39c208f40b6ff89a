"""GPUs: the driver, and for each GPU whether anybody uses it."""

from __future__ import annotations

from tritonchaos.doctor.check import Check
from tritonchaos.errors import SamplerError
from tritonchaos.nvml import Gpu, NoNvml, Nvml
from tritonchaos.processes import read_stat
from tritonchaos.units import format_bytes


def gpus(nvml: Nvml | NoNvml) -> list[Check]:
    """Driver, and for each GPU whether anybody uses it; closes the given use of NVML."""
    if isinstance(nvml, NoNvml):
        return [Check("NVIDIA driver", None, nvml.reason, nvml.hint)]
    try:
        found = nvml.gpus()
        driver = Check("NVIDIA driver", True, f"{nvml.driver_version()}, NVML answers, {len(found)} GPU(s)")
        broken = [Check("GPU", False, problem, "nvidia-smi shows the state of the GPU") for problem in nvml.problems]
        return [driver, *(_gpu(nvml, gpu) for gpu in found), *broken]
    except SamplerError as error:
        return [Check("NVIDIA driver", False, error.message, error.hint)]
    finally:
        nvml.close()


def _gpu(nvml: Nvml, gpu: Gpu) -> Check:
    try:
        return _look_at_gpu(nvml, gpu)
    except SamplerError as error:
        return Check(f"GPU {gpu.index}", False, error.message, error.hint)


def _look_at_gpu(nvml: Nvml, gpu: Gpu) -> Check:
    name = f"GPU {gpu.index}"
    memory = nvml.memory(gpu.uuid)
    facts = f"{gpu.name}, {format_bytes(memory.total_bytes)}, {gpu.uuid}{', MIG mode' if gpu.has_mig_mode else ''}"
    users = nvml.all_processes(gpu.uuid)
    if not users:
        return Check(name, True, f"{facts}, idle ({format_bytes(memory.used_bytes)} in use)")
    named = ", ".join(_user(pid, used) for pid, used in sorted(users.items()))
    return Check(name, None, f"{facts}, in use by {named}", "readings of the whole device need an otherwise idle GPU")


def _user(pid: int, used_bytes: int | None) -> str:
    stat = read_stat(pid)
    command = "of another container or user" if stat is None else stat.command
    used = "" if used_bytes is None else f" {format_bytes(used_bytes)}"
    return f"pid {pid} ({command}){used}"
