"""What a target can serve with, and why a variant of a model template cannot be served with it."""

from __future__ import annotations

from dataclasses import dataclass

from tritonchaos import native
from tritonchaos.plugins import BuildsFiles, CompilesLibraries
from tritonchaos.templates.building import Builder
from tritonchaos.templates.template_file import VariantEntry


@dataclass(frozen=True, slots=True)
class Machine:
    """What a target can serve with.

    Attributes:
        backends: Backends that the server brings itself; None: not known, so that only a named variant can be served.
        c_compiler: A C compiler is there for our own backends; None: look for one, or ask the place.
        tensorrt_version: Of the server's TensorRT, such as "10.13.3"; None: not known.
        place: Builds model files, and maybe backends, where the server will run; None: they are built here.
    """

    backends: frozenset[str] | None
    has_gpu: bool
    c_compiler: bool | None = None
    tensorrt_version: str | None = None
    place: BuildsFiles | None = None


def stands_in(entry: VariantEntry, machine: Machine) -> str | None:
    """Say why a variant is never taken unasked; None if it may be. A stand-in for a backend of the server is not."""
    if entry.only_by_name:
        return "it is taken only by name"
    if entry.unless_backend is None or entry.unless_backend not in (machine.backends or ()):
        return None
    return f"the server brings the backend {entry.unless_backend}, for which this one only stands in"


def unmet(need: str, machine: Machine) -> str | None:
    """Say why one of a variant's `needs` is not there; None if it is."""
    kind, _, name = need.partition(":")
    if kind == "gpu":
        return None if machine.has_gpu else "no GPU"
    if kind == "c_compiler":
        if machine.c_compiler is None:
            if isinstance(machine.place, CompilesLibraries):
                return machine.place.missing_compiler()
            return native.missing_compiler()
        return None if machine.c_compiler else "no C compiler"
    if kind == "server_backend":
        is_there = machine.backends is None or name in machine.backends
        return None if is_there else f"the server has no backend {name}"
    return f"it needs {need!r}, which this version does not know"


def foreign_plan(builder: Builder, machine: Machine) -> str | None:
    """Say why a server could not read a plan of this builder.

    Source: TensorRT documentation, "Version compatibility": a plan is read by the version that built it.
    """
    if builder.library != "tensorrt":
        return f"only {builder.library} {builder.version} is installed here, whose plans no Triton serves"
    if builder.place:
        return None  # the server's own
    if machine.tensorrt_version is None:
        return "which TensorRT the server has is not known"
    if builder.version.split(".")[:3] != machine.tensorrt_version.split(".")[:3]:
        return f"TensorRT {builder.version} is installed here, but the server has {machine.tensorrt_version}"
    return None
