"""What serves and builds here: Python, tritonserver and its backends, the C compiler, TensorRT."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Mapping
from typing import Final

from tritonchaos.doctor.check import Check
from tritonchaos.errors import TargetError, TemplateError
from tritonchaos.native import find_compiler
from tritonchaos.plugins import TARGETS

_TENSORRT: Final = (
    ("tensorrt", ("tensorrt", "tensorrt_cu13", "tensorrt_cu12", "tensorrt_cu11")),
    ("tensorrt_rtx", ("tensorrt_rtx", "tensorrt_rtx_cu13", "tensorrt_rtx_cu12")),
)


def python() -> Check:
    """Version of the running Python and of the packages on which an embedded server depends."""
    versions = [f"{name} {found}" for name in ("numpy", "tritonclient", "pydantic") if (found := _version_of(name))]
    return Check("Python", True, f"{platform.python_version()} ({', '.join(versions)}), {sys.executable}")


def tritonserver() -> list[Check]:
    """Is there a tritonserver that target `local` can start, and can its python backend run?"""
    if "local" not in TARGETS:
        return [Check("tritonserver", False, "target local cannot be loaded", "`tritonchaos list` says why")]
    target = TARGETS["local"]()
    try:
        target.check()
        facts: Mapping[str, str] = target.describe()
    except TargetError as error:
        return [Check("tritonserver", False, error.message, error.hint)]
    version = facts.get("triton_version") or "of unknown version"
    server = Check("tritonserver", True, f"{version}, {facts.get('server_path', '')}")
    return [server, _python_backend(facts.get("python_backend", ""), target.backends())]


def _python_backend(why_not: str, backends: frozenset[str]) -> Check:
    if "python" in backends:
        return Check("python backend", True, f"backends of the server: {', '.join(sorted(backends))}")
    reason = why_not.removeprefix("not available: ") or "this server does not bring it"
    fix = "for the embedded server: a Python with shared library (libpython), up to 3.12, and pip install 'numpy<2'"
    return Check("python backend", None, reason, fix)


def compiler() -> Check:
    """Is there a C compiler for the planted backend?"""
    try:
        found = find_compiler()
    except TemplateError as error:
        return Check("C compiler", None, error.message, error.hint)
    # What a compiler says of its version goes on with its licence.
    return Check("C compiler", True, f"{found.version.splitlines()[0]} ({' '.join(found.command)})")


def tensorrt() -> Check:
    """Is a TensorRT there to build engines with? Only looked up, as importing one takes seconds and a GPU's driver."""
    for module, distributions in _TENSORRT:
        if importlib.util.find_spec(module) is not None:
            version = next(filter(None, map(_version_of, distributions)), "of unknown version")
            return Check("TensorRT", True, f"Python module {module} {version}")
    fix = "pip install 'tritonchaos[tensorrt]' to build engines here"
    return Check("TensorRT", None, "neither Python module tensorrt nor tensorrt_rtx", fix)


def _version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
