"""`tritonchaos --version`: the versions that matter when a result is to be understood."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator
from typing import Final

from tritonchaos import __version__

_LIBRARIES: Final = ("tritonclient", "numpy", "pydantic", "protobuf", "nvidia-ml-py")


def version_lines() -> Iterator[str]:
    """Print the version of tritonchaos first, then of what it runs on, and of the tritonserver found here."""
    yield f"tritonchaos {__version__}"
    yield f"python {platform.python_version()} ({platform.system()} {platform.machine()})"
    for name in _LIBRARIES:
        yield f"{name} {_installed(name)}"
    yield f"NVIDIA driver {_driver()}"
    yield f"tritonserver {_server()}"


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _driver() -> str:
    from tritonchaos.errors import SamplerError
    from tritonchaos.nvml import NoNvml, open_nvml

    nvml = open_nvml()
    if isinstance(nvml, NoNvml):
        return f"not usable: {nvml.reason}"
    try:
        return nvml.driver_version()
    except SamplerError as error:
        return f"not usable: {error.message}"
    finally:
        nvml.close()


def _server() -> str:
    from tritonchaos.errors import TargetUnavailable
    from tritonchaos.local_server.installation import find_installation

    try:
        installation = find_installation(None)
    except TargetUnavailable:
        return "not found on this machine"
    return f"{installation.triton_version or 'of unknown version'} ({installation.origin})"
