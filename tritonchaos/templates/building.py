"""Model files that must be built: by the template's script, in a process of its own, once for what they depend on."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from tritonchaos import native
from tritonchaos.errors import TemplateError

_WORKER: Final = Path(__file__).resolve().parents[1] / "workers" / "build_model.py"
_FACTS: Final = "facts.json"
_DEADLINE_S: Final = 900.0
_SHOWN_LINES: Final = 15


@dataclass(frozen=True, slots=True)
class Builder:
    """What builds a model file.

    Attributes:
        library: Module name, such as "tensorrt" or "tensorrt_rtx".
        version: As the library says it, such as "10.13.3.9".
        device: What it builds for: a GPU and its compute capability, or "cpu".
    """

    library: str
    version: str
    device: str


@dataclass(frozen=True, slots=True)
class Built:
    """A built model file in the cache, and what its script says is in it (such as "tensors")."""

    file: Path
    facts: Mapping[str, Any]


@lru_cache(maxsize=8)
def find_builder(script: Path) -> Builder:
    """Ask a build script what it would build with; its libraries are imported in its own process only.

    Raises:
        TemplateError: It cannot build here, such as for want of the library.
    """
    told = _call("identify", script)
    try:
        return Builder(str(told["library"]), str(told["version"]), str(told["device"]))
    except (KeyError, TypeError) as error:
        raise TemplateError(f"{script}: identify() gave {told!r}, expected library, version and device") from error


def build_model_file(script: Path, name: str, parameters: Mapping[str, Any]) -> Built:
    """Build a model file, or take it from the cache.

    The cache key covers the script, the library and its version, the device and the parameters. Any number of
    processes may build the same file at once: each builds its own and renames it into place.

    Args:
        name: Of the file, such as "model.plan".

    Raises:
        TemplateError: It cannot be built; shows the last lines that the script printed.
    """
    folder = native.cache_folder() / "models" / f"{Path(name).stem}-{_key(script, find_builder(script), parameters)}"
    if not (folder / name).exists():
        try:
            _build_into(folder, script, name, parameters)
        except OSError as error:
            raise TemplateError(
                f"cannot write the cache {folder.parent}: {error.strerror}", hint="name a folder in $TRITONCHAOS_CACHE"
            ) from error
    return Built(folder / name, json.loads((folder / _FACTS).read_text()))


def _key(script: Path, builder: Builder, parameters: Mapping[str, Any]) -> str:
    depends_on = (script.read_text(), builder.library, builder.version, builder.device)
    text = json.dumps([*depends_on, dict(parameters)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _build_into(folder: Path, script: Path, name: str, parameters: Mapping[str, Any]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as temporary:
        built = Path(temporary) / "built"
        built.mkdir()
        facts = _call("build", script, str(built / name), json.dumps(dict(parameters)))
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
        done = subprocess.run(call, capture_output=True, text=True, errors="replace", timeout=_DEADLINE_S)
    except subprocess.TimeoutExpired as error:
        raise TemplateError(f"{script} did not finish in {_DEADLINE_S:.0f} s") from error
    output = f"{done.stdout}\n{done.stderr}"
    if done.returncode != 0:
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        raise TemplateError(f"{script.parent.name}/{script.name} failed with {ended}:\n{_last_lines(output)}")
    try:
        told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise TemplateError(f"{script} gave nothing that can be read:\n{_last_lines(output)}") from error
    return told


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_SHOWN_LINES:])
