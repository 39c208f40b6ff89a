"""Lays what the command line asks for over a scenario's document, before it is validated."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tritonchaos.errors import ScenarioError, UsageError
from tritonchaos.observations import JsonValue
from tritonchaos.plugins import TARGETS
from tritonchaos.scenario.field_paths import parse_assignment, set_value
from tritonchaos.scenario.plugin_forms import field_names
from tritonchaos.scenario.yaml_source import Document
from tritonchaos.scenario.yaml_text import yaml_text

# The option that names a target -> the target and the field that the option's value goes into.
_NAMES_TARGET: Final = {
    "server_path": ("local", "server_path"),
    "image": ("docker", "image"),
    "url": ("remote", "url"),
}


@dataclass(frozen=True, slots=True)
class Overrides:
    """What is asked for in place of what the scenario says; None leaves it as it is.

    Attributes:
        settings: "PATH=VALUE" for any field; they come last, so they win.
        seed: Seed of the run.
        variant: Forced for every model that comes from a template.
        cycles: Cycles of every phase on trial; control phases keep theirs.
        server_path: Binary of the target local, which is then the only target.
        image: Image of the target docker, which is then the only target.
        url: Address of the target remote, which is then the only target.
        gpus: GPUs by number or UUID, "0,1"; targets that cannot be told are left out.
        target: Name of the target that is then the only one, with the fields that the scenario gives it.
        pull: When the target docker fetches its image.
    """

    settings: tuple[str, ...] = ()
    seed: int | None = None
    variant: str | None = None
    cycles: int | None = None
    server_path: str | Path | None = None
    image: str | None = None
    url: str | None = None
    gpus: str | None = None
    target: str | None = None
    pull: str | None = None


def override(document: Document, overrides: Overrides) -> Document:
    """Return the document with the overrides in it, its text written anew; places still point at the given text.

    Without an override it is returned as it is, comments and all.

    Raises:
        UsageError: What is asked for does not fit the scenario; for a field path, with the nearest names.
        ScenarioError: A value is not YAML.
    """
    if overrides == Overrides() or not isinstance(document.value, dict):
        return document
    value: dict[str, Any] = copy.deepcopy(document.value)
    told = [line for change in _CHANGES for line in change(value, overrides)]
    return replace(document, value=value, text=_text_as_run(document, value, told))


def explain(error: ScenarioError, overrides: Overrides) -> ScenarioError:
    """Say in an error that the command line had changed the scenario: a value in it may not be the file's."""
    if overrides == Overrides():
        return error
    hint = f"{error.hint}; values of the command line are in place of the file's".lstrip("; ")
    return ScenarioError(error.message, hint=hint)


# --- the changes, each of which says what it did --------------------------------------------------


def _set_seed(value: dict[str, Any], overrides: Overrides) -> Iterator[str]:
    if overrides.seed is not None:
        value["seed"] = overrides.seed
        yield f"seed = {overrides.seed}"


def _set_variant(value: dict[str, Any], overrides: Overrides) -> Iterator[str]:
    if overrides.variant is None:
        return
    models = value.get("models")
    named = models.items() if isinstance(models, dict) else ()
    made = {name: model for name, model in named if isinstance(model, dict) and "template" in model}
    if not made:
        raise UsageError("--variant: no model of the scenario comes from a template")
    for name, model in made.items():
        model["variant"] = overrides.variant
        yield f"models.{name}.variant = {overrides.variant}"


def _set_cycles(value: dict[str, Any], overrides: Overrides) -> Iterator[str]:
    if overrides.cycles is None:
        return
    phases = value.get("phases")
    on_trial = [phase for phase in phases if _is_on_trial(phase)] if isinstance(phases, list) else []
    if not on_trial:
        raise UsageError("--cycles: no phase of the scenario has cycles that are on trial")
    for phase in on_trial:
        phase["cycles"] = overrides.cycles
        yield f"phases.{phase.get('phase')}.cycles = {overrides.cycles}"


def _is_on_trial(phase: Any) -> bool:
    return isinstance(phase, dict) and "cycles" in phase and phase.get("arm") != "control"


def _name_target(value: dict[str, Any], overrides: Overrides) -> Iterator[str]:
    asked = [name for name in _NAMES_TARGET if getattr(overrides, name) is not None]
    if len(asked) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise UsageError(f"found {options}, expected one of them: each names the only target")
    for name in asked:
        target, field = _NAMES_TARGET[name]
        if overrides.target not in (None, target):
            option = name.replace("_", "-")
            raise UsageError(f"found --target {overrides.target} and --{option}, expected --target {target} with it")
        given = next((_fields(entry) for entry in _targets(value) if _name(entry) == target), {})
        value["target"] = [{target: {**given, field: str(getattr(overrides, name))}}]
        yield f"target = {target} with {field} {getattr(overrides, name)}, and no other"


def _choose_target(value: dict[str, Any], overrides: Overrides) -> Iterator[str]:
    name = overrides.target
    if name is None or any(getattr(overrides, option) is not None for option in _NAMES_TARGET):
        return
    if name not in TARGETS:
        raise UsageError(f"found --target {name}, expected one of {', '.join(TARGETS.names())}")
    value["target"] = [next((entry for entry in _targets(value) if _name(entry) == name), name)]
    yield f"target = {name}, and no other"


def _set_pull(value: dict[str, Any], overrides: Overrides) -> Iterator[str]:
    if overrides.pull is None:
        return
    targets = _targets(value)
    if not any(_name(entry) == "docker" for entry in targets):
        raise UsageError("--pull: the scenario has no target docker", hint="name an image with --image")
    value["target"] = [
        {"docker": {**_fields(entry), "pull": overrides.pull}} if _name(entry) == "docker" else entry
        for entry in targets
    ]
    yield f"target docker with pull {overrides.pull}"


def _choose_gpus(value: dict[str, Any], overrides: Overrides) -> Iterator[str]:
    if overrides.gpus is None:
        return
    gpus = [int(part) if part.isdigit() else part for part in overrides.gpus.replace(" ", "").split(",") if part]
    told = [entry for entry in _targets(value) if _takes_gpus(_name(entry))]
    if not told:
        names = ", ".join(_name(entry) for entry in _targets(value))
        raise UsageError(
            f"--gpus: none of the scenario's targets ({names}) can be told which GPUs to use",
            hint="for a local server set CUDA_VISIBLE_DEVICES",
        )
    value["target"] = [{_name(entry): {**_fields(entry), "gpus": gpus}} for entry in told]
    yield f"target = {', '.join(map(_name, told))} with gpus {gpus}, and no other"


def _takes_gpus(name: str) -> bool:
    return name in TARGETS and "gpus" in field_names(TARGETS[name])  # type: ignore[arg-type]


def _apply_settings(value: dict[str, Any], overrides: Overrides) -> Iterator[str]:
    for setting in overrides.settings:
        path, new = parse_assignment(setting)
        set_value(value, path, new)
        yield f"{path} = {json.dumps(new, ensure_ascii=False)}"


_CHANGES: Final[tuple[Callable[[dict[str, Any], Overrides], Iterator[str]], ...]] = (
    _set_seed,
    _set_variant,
    _set_cycles,
    _name_target,
    _choose_target,
    _choose_gpus,
    _set_pull,
    _apply_settings,
)


def _targets(value: dict[str, Any]) -> list[Any]:
    targets = value.get("target", ["local"])
    return targets if isinstance(targets, list) else [targets]


def _name(entry: Any) -> str:
    return str(next(iter(entry), "")) if isinstance(entry, dict) else str(entry)


def _fields(entry: Any) -> dict[str, Any]:
    fields = entry.get(_name(entry)) if isinstance(entry, dict) else None
    return fields if isinstance(fields, dict) else {}


# --- the scenario as run ---------------------------------------------------------------------------


def _text_as_run(document: Document, value: JsonValue, told: list[str]) -> str:
    head = list(_leading_comments(document.text))
    head += ["# As run, with these values of the command line in place of the file's:"]
    head += [f"#   {' '.join(line.split())}" for line in told]
    return "\n".join(head) + "\n" + yaml_text(value)


def _leading_comments(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        yield line
