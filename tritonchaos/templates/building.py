"""Model files that must be built: by the template's script, in a process of its own, once for what they depend on.

A target may have a place of its own to build in, such as a container of its image: there the server's own library
builds (see `building_in_place`).
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from tritonchaos import native
from tritonchaos.errors import TemplateError
from tritonchaos.plugins import BuildsFiles
from tritonchaos.templates import building_in_place
from tritonchaos.templates.building_in_place import last_lines

_WORKER: Final = building_in_place.WORKERS / "build_model.py"
_FACTS: Final = "facts.json"


@dataclass(frozen=True, slots=True)
class Builder:
    """What builds a model file.

    Attributes:
        library: Module name, such as "tensorrt" or "tensorrt_rtx".
        version: As the library says it, such as "10.13.3.9".
        device: What it builds for: a GPU and its compute capability, or "cpu".
        place: What the target's place to build in is known by; "": it builds with this Python.
        way: In such a place: "python" for the template's build.py, "c++" for its build.cc.
    """

    library: str
    version: str
    device: str
    place: str = ""
    way: str = "python"


@dataclass(frozen=True, slots=True)
class Built:
    """A built model file in the cache, and what its script says is in it (such as "tensors")."""

    file: Path
    facts: Mapping[str, Any]


def find_builder(script: Path, place: BuildsFiles | None = None) -> Builder:
    """Ask a build script what it would build with; its libraries are imported in a process of its own only.

    Args:
        place: Of a target that builds where its server will run; None: here.

    Raises:
        TemplateError: It cannot build there, such as for want of the library.
    """
    return _find_builder_here(script) if place is None else _find_builder_in(place, script)


@lru_cache(maxsize=8)
def _find_builder_here(script: Path) -> Builder:
    return _builder(script, _call("identify", script))


def _find_builder_in(place: BuildsFiles, script: Path) -> Builder:
    """Ask in a place, once for the same place and sources: starting a container and compiling take seconds."""
    known_as = place.build_place()
    digest = _digest(*building_in_place.sources(script), known_as)
    file = native.cache_folder() / "builders" / f"{script.parent.name}-{digest}.json"
    if not file.exists():
        with _writing(file.parent), tempfile.TemporaryDirectory(prefix=".asking-", dir=file.parent) as temporary:
            way, told = building_in_place.identify(place, script, Path(temporary))
            written = Path(temporary) / "found.json"
            written.write_text(json.dumps({**told, "place": known_as, "way": way}))
            written.rename(file)
    return _builder(script, json.loads(file.read_text()))


def _builder(script: Path, told: Mapping[str, Any]) -> Builder:
    try:
        names = (str(told["library"]), str(told["version"]), str(told["device"]))
    except (KeyError, TypeError) as error:
        raise TemplateError(f"{script}: identify() gave {told!r}, expected library, version and device") from error
    return Builder(*names, place=str(told.get("place", "")), way=str(told.get("way", "python")))


def build_model_file(script: Path, name: str, parameters: Mapping[str, Any], place: BuildsFiles | None = None) -> Built:
    """Build a model file, or take it from the cache.

    The cache key covers the script, the library and its version, the device and the parameters, and what the place is
    known by. Any number of processes may build the same file at once: each builds its own and renames it into place.

    Args:
        name: Of the file, such as "model.plan".
        place: Of a target that builds where its server will run; None: here.

    Raises:
        TemplateError: It cannot be built; shows the last lines that the script printed.
    """
    builder = find_builder(script, place)
    key = _digest(
        *building_in_place.sources(script),
        *(builder.library, builder.version, builder.device, builder.place),
        parameters,
    )
    folder = native.cache_folder() / "models" / f"{Path(name).stem}-{key}"

    def build(out: Path) -> dict[str, Any]:
        if place is not None:
            return building_in_place.build(place, builder.way, script, out, parameters)
        return _call("build", script, str(out), json.dumps(dict(parameters)))

    if not (folder / name).exists():
        with _writing(folder.parent):
            _build_into(folder, script, name, build)
    return Built(folder / name, json.loads((folder / _FACTS).read_text()))


def _digest(*depends_on: Any) -> str:
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Make a folder of the cache; what cannot be written there is told as such."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise TemplateError(
            f"cannot write the cache {folder}: {error.strerror}", hint="name a folder in $TRITONCHAOS_CACHE"
        ) from error


def _build_into(folder: Path, script: Path, name: str, build: Callable[[Path], dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as temporary:
        built = Path(temporary) / "built"
        built.mkdir()
        facts = build(built / name)
        if not (built / name).is_file():
            raise TemplateError(f"{script} built no {name}")
        (built / _FACTS).write_text(json.dumps(facts, sort_keys=True))
        try:
            built.rename(folder)
        except OSError:
            # Somebody else was first; what they built depends on the same.
            if not (folder / name).exists():
                raise


def _call(command: str, script: Path, *arguments: str) -> dict[str, Any]:
    call = [sys.executable, str(_WORKER), command, str(script), *arguments]
    try:
        done = subprocess.run(
            call, capture_output=True, text=True, errors="replace", timeout=building_in_place.DEADLINE_S
        )
    except subprocess.TimeoutExpired as error:
        raise TemplateError(f"{script} did not finish in {building_in_place.DEADLINE_S:.0f} s") from error
    output = f"{done.stdout}\n{done.stderr}"
    if done.returncode != 0:
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        raise TemplateError(f"{script.parent.name}/{script.name} failed with {ended}:\n{last_lines(output)}")
    try:
        told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise TemplateError(f"{script} gave nothing that can be read:\n{last_lines(output)}") from error
    return told
