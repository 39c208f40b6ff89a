"""The files of the models in each state: which are handed on, which are left out, and what stands in for them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tritonchaos.errors import StoreError, TemplateError
from tritonchaos.redaction import Redactor
from tritonchaos.reproducing.recorded import Recorded
from tritonchaos.reproducing.stand_ins import stand_in
from tritonchaos.templates import ModelTemplate, find_template
from tritonchaos.templates.building_in_place import WORKERS

# What a user's own model may consist of beside its weights.
_TEXTS: Final = frozenset({".pbtxt", ".py", ".json", ".txt", ".yaml", ".yml", ".md", ".cfg", ".ini", ".labels"})
_LARGEST_TEXT_BYTES: Final = 256 * 1024
_PLANTS: Final = re.compile(
    r"(key:\s*\"(?P<name>plant|(?:retain|leave|sleep|abort|segfault)_\w+)\"\s*value\s*\{\s*string_value:\s*\")"
    r"(?:[^\"\\]|\\.)*(\"\s*\})"
)


@dataclass(slots=True)
class ModelFiles:
    """What the folder `models` of a bundle gets.

    Attributes:
        files: Path below `models`, "STATE/MODEL/...", -> content.
        empty_folders: Folders without files, such as a version directory.
        missing: Files that were left out, as {"path", "bytes", "sha256"}.
        build: Files that repro.py builds, as {"state", "model", "file", "folder", "parameters"}.
        scripts: Path in the bundle of what builds them -> content.
        twins: State -> state without its plants.
        stand_ins: Models that a template stands in for.
        redacted: Texts, such as m/config.pbtxt, that something was taken out of.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    empty_folders: list[str] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    build: list[dict[str, Any]] = field(default_factory=list)
    scripts: dict[str, bytes] = field(default_factory=dict)
    twins: dict[str, str] = field(default_factory=dict)
    stand_ins: list[str] = field(default_factory=list)
    redacted: list[str] = field(default_factory=list)

    def differences(self) -> list[str]:
        """Say how the models are not those of the recorded run."""
        told = [f"{model} was served; here a stand-in is, with the same inputs and outputs" for model in self.stand_ins]
        names = ", ".join(dict.fromkeys(self.redacted))
        return [*told, *([f"{names} had texts that are taken out here"] if names else [])]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What of a user's models is wanted in the bundle."""

    include_weights: bool = False
    stand_in: bool = False


def gather(recorded: Recorded, used: Mapping[str, set[str]], redactor: Redactor, wishes: Wishes) -> ModelFiles:
    """Read the models' files in the states that are used; only the run directory and our own templates are read.

    Args:
        used: State -> models that are used in it.
    """
    found = ModelFiles()
    for state in sorted(used):
        for model in sorted(used[state]):
            _gather_one(recorded, state, model, redactor, wishes, found)
    return found


def _gather_one(
    recorded: Recorded, state: str, model: str, redactor: Redactor, wishes: Wishes, found: ModelFiles
) -> None:
    template, entry = _template_of(recorded, model)
    built = _built_file(recorded, template, model)
    folder = recorded.model_folder(state, model)
    if template is None and wishes.stand_in:
        first = recorded.model_folder(recorded.added_state(model), model)
        found.files |= {f"{state}/{model}/{path}": body for path, body in stand_in(first, folder, model).items()}
        found.stand_ins += [model] if model not in found.stand_ins else []
        return
    for path, file in _paths(folder):
        inside = f"{state}/{model}/{path}"
        if file is None:
            found.empty_folders.append(inside)
        elif path == built and not wishes.include_weights:
            _order_build(recorded, template, entry, state, model, path, found)
        elif template is not None or wishes.include_weights or _is_text(file):
            found.files[inside] = _content(file, inside, redactor)
            if template is None and found.files[inside] != _bytes_of(file):
                found.redacted.append(f"{model}/{path}")
        else:
            body = _bytes_of(file)
            digest = hashlib.sha256(body).hexdigest()
            found.missing.append({"path": inside, "bytes": len(body), "sha256": digest})
            redactor.note("model file", f"models/{inside}")
    variant = recorded.finished.history.facts.variants.get(model, "")
    if template is not None and variant.startswith(("planted", "python")):
        _add_twin(state, model, found)


def _template_of(recorded: Recorded, model: str) -> tuple[ModelTemplate | None, Mapping[str, Any]]:
    """The shipped template that a model was made from; None for a model of the user's own."""
    models = recorded.scenario.get("models")
    entry = models.get(model) if isinstance(models, Mapping) else None
    if not isinstance(entry, Mapping) or "template" not in entry:
        return None, {}
    try:
        return find_template(str(entry["template"])), entry
    except TemplateError:
        return None, entry


def _built_file(recorded: Recorded, template: ModelTemplate | None, model: str) -> str | None:
    """Path of the file that a build script made, such as 1/model.plan."""
    variant = recorded.finished.history.facts.variants.get(model, "")
    entry = template.read.variants.get(variant) if template is not None else None
    return f"1/{entry.file}" if entry is not None and entry.build and entry.file else None


def _order_build(
    recorded: Recorded,
    template: ModelTemplate | None,
    entry: Mapping[str, Any],
    state: str,
    model: str,
    path: str,
    found: ModelFiles,
) -> None:
    """Let repro.py build the file on the machine where it is served: a plan fits one GPU and one TensorRT only."""
    assert template is not None
    from tritonchaos.templates.template_file import read_parameters

    variant = recorded.finished.history.facts.variants[model]
    chosen = template.read.variants[variant]
    values = read_parameters(template.read, dict(entry.get("parameters") or {}))
    parameters = {
        name: values[name]
        for name, parameter in template.read.parameters.items()
        if variant in parameter.only or not parameter.only
    }
    place = f"build/{template.name}-{variant}"
    found.scripts |= {f"{place}/{name}": body for name, body in build_sources(template.folder / str(chosen.build))}
    found.build.append({"state": state, "model": model, "file": path, "folder": place, "parameters": parameters})


def build_sources(script: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what building a file where the server runs needs: the template's scripts, headers, and what calls them."""
    for name in ("build_in_place.sh", "build_model.py"):
        yield name, (WORKERS / name).read_bytes()
    for file in (script, script.with_suffix(".cc"), *sorted(script.with_name("build.include").glob("*"))):
        if file.is_file():
            yield file.relative_to(script.parent).as_posix(), file.read_bytes()


def _paths(folder: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield (path below the folder, file), an empty folder with None; links and compiled Python are passed over."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        below = Path(here).relative_to(folder).as_posix()
        files = [name for name in sorted(names) if not (Path(here) / name).is_symlink()]
        for name in files:
            yield (name if below == "." else f"{below}/{name}"), Path(here) / name
        if not files and not folders:
            yield ("" if below == "." else below), None


def _is_text(file: Path) -> bool:
    if file.suffix not in _TEXTS or file.stat().st_size > _LARGEST_TEXT_BYTES:
        return False
    try:
        file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _content(file: Path, inside: str, redactor: Redactor) -> bytes:
    """Content of a file; that of a text without what must not be seen."""
    body = _bytes_of(file)
    if not _is_text(file):
        return body
    return redactor.text(body.decode("utf-8"), f"models/{inside}").encode("utf-8")


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}", hint="copy the run directory again, whole") from error


def _add_twin(state: str, model: str, found: ModelFiles) -> None:
    """For a model with plants, add the same state without them."""
    inside = f"{state}/{model}/config.pbtxt"
    config = found.files.get(inside)
    if config is None or without_plants(config) == config:
        return
    twin = f"{state}-clean"
    found.twins[state] = twin
    prefix = f"{state}/{model}/"
    for path, body in list(found.files.items()):
        if path.startswith(prefix):
            found.files[f"{twin}/{model}/{path[len(prefix) :]}"] = without_plants(body) if path == inside else body
    found.empty_folders += [
        f"{twin}/{path[len(state) + 1 :]}" for path in found.empty_folders if path.startswith(prefix)
    ]


def without_plants(config: bytes) -> bytes:
    """Set every planted defect in the text of a config.pbtxt to none."""

    def replace(match: re.Match[str]) -> str:
        return f"{match[1]}{'[]' if match['name'] == 'plant' else '0'}{match[3]}"

    return _PLANTS.sub(replace, config.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
