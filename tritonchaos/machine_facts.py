"""What a reader of a report asks of the machine that a run was made on: processor, kernel, driver and GPUs."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from tritonchaos.errors import SamplerError
from tritonchaos.nvml import NoNvml, open_nvml


def machine_facts(target: Mapping[str, str]) -> dict[str, str]:
    """Return facts of this machine for the run's record; those of its GPUs only where the target's server may use them.

    Args:
        target: What the target says of itself. One that is remote may have another machine's GPUs.
    """
    facts = {"machine": platform.machine(), "kernel": platform.release()}
    return facts if target.get("target") == "remote" else {**facts, **_gpu_facts()}


def _gpu_facts() -> dict[str, str]:
    nvml = open_nvml()
    if isinstance(nvml, NoNvml):
        return {}
    try:
        names = dict.fromkeys(gpu.name for gpu in nvml.gpus())
        return {"driver_version": nvml.driver_version(), "gpu_names": ", ".join(names)}
    except SamplerError:
        return {}
    finally:
        nvml.close()
