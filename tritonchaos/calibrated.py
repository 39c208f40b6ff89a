"""What an earlier calibration of this machine and target says, for reports to quote."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tritonchaos import __version__
from tritonchaos.errors import SamplerError
from tritonchaos.native import cache_folder
from tritonchaos.nvml import NoNvml, open_nvml

_MACHINE_ID: Final = Path("/etc/machine-id")
# What changes what a set-up can see, of the facts that a target tells of itself.
_FACTS: Final = ("target", "triton_version", "image", "image_digest", "gpu_uuids", "url")
_DEVICE_VARIANT: Final = "planted_gpu"
_HOST_VARIANT: Final = "planted"


def key_parts(facts: Mapping[str, str]) -> dict[str, str]:
    """Return what a calibration belongs to: machine, target, versions, GPUs and their driver.

    The machine is told by a hash: by /etc/machine-id, else by the name of the host.

    Args:
        facts: What the target says of itself before it is started.
    """
    parts = {name: facts[name] for name in _FACTS if facts.get(name)}
    return {
        "machine": _machine(),
        "tritonchaos_version": __version__,
        **parts,
        **({"driver": _driver()} if facts.get("gpu_uuids") else {}),
    }


def keep(facts: Mapping[str, str], variants: Mapping[str, Mapping[str, Any]]) -> Path:
    """Keep what a calibration found, beside what is known of other variants; return the file.

    Args:
        variants: Variant -> {"statement": what reports quote, ...}.

    Raises:
        OSError: The cache cannot be written.
    """
    parts = key_parts(facts)
    file = _file(parts)
    document = {"key": parts, "variants": {**_read(file), **variants}}
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=file.parent, suffix=".new")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(document, stream, indent=2)
    Path(beside).replace(file)
    return file


def statement(facts: Mapping[str, str], uses_gpu: bool) -> str:
    """Return what a report quotes of the last calibration of this machine and target; "" if there is none.

    Args:
        uses_gpu: The run serves a variant that needs a GPU, so that device memory decides.
    """
    known = _read(_file(key_parts(facts))).get(_DEVICE_VARIANT if uses_gpu else _HOST_VARIANT)
    found = known.get("statement") if isinstance(known, dict) else None
    return found if isinstance(found, str) else ""


def _file(parts: Mapping[str, str]) -> Path:
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return cache_folder() / "calibrations" / f"{digest[:32]}.json"


def _read(file: Path) -> dict[str, Any]:
    """Return what is kept of each variant; what cannot be read is taken as nothing: a calibration can be made again."""
    try:
        variants = json.loads(file.read_text(encoding="utf-8"))["variants"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return variants if isinstance(variants, dict) else {}


def _machine() -> str:
    try:
        name = _MACHINE_ID.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        name = ""
    return hashlib.sha256((name or platform.node()).encode()).hexdigest()[:16]


def _driver() -> str:
    nvml = open_nvml()
    if isinstance(nvml, NoNvml):
        return ""
    try:
        return nvml.driver_version()
    except SamplerError:
        return ""
    finally:
        nvml.close()
