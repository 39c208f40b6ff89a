"""Finds which TensorRT a server's tensorrt backend is linked with, without loading it into this process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_BACKEND: Final = "libtriton_tensorrt.so"
_NVINFER: Final = re.compile(r"^\s*libnvinfer\.so[.\d]* => (\S+)", re.MULTILINE)
# getInferLibVersion() of NvInferRuntime.h: major * 10000 + minor * 100 + patch since TensorRT 10, 1000 and 100 before.
_ASK: Final = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).getInferLibVersion())"
_DEADLINE_S: Final = 60.0


def find_tensorrt_version(backend: Path, environment: Mapping[str, str]) -> str | None:
    """Ask the libnvinfer that a tensorrt backend would get for its version.

    Args:
        backend: Folder with the backend's library.
        environment: Of the server: its LD_LIBRARY_PATH decides.

    Returns:
        Such as "10.13.3"; None if it cannot be told.
    """
    linked = _NVINFER.search(_output(["ldd", str(backend / _BACKEND)], environment))
    if linked is None:
        return None
    told = _output([sys.executable, "-c", _ASK, linked[1]], environment).strip()
    return version_text(int(told)) if told.isdigit() else None


def version_text(number: int) -> str:
    """Write the number of getInferLibVersion() as people do."""
    minor_at = 10000 if number >= 100_000 else 1000
    return f"{number // minor_at}.{number % minor_at // 100}.{number % 100}"


def _output(call: list[str], environment: Mapping[str, str]) -> str:
    try:
        return subprocess.run(
            call, capture_output=True, text=True, errors="replace", timeout=_DEADLINE_S, env=dict(environment)
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
