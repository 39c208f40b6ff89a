"""Plug-ins as people write them, NAME, NAME: scalar or NAME: {fields}, and how they become instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from tritonchaos.errors import PluginError, ScenarioError
from tritonchaos.observations import JsonValue
from tritonchaos.plugins import MISSING, Registry
from tritonchaos.scenario.problems import Problem, YamlPath, nearest, one_of, path_text, shown, told
from tritonchaos.scenario.validation import Keys, validate


def build_plugin(registry: Registry[Any], name: str, fields: JsonValue, where: str) -> Any:
    """Make an instance of a plug-in from its YAML fields.

    Args:
        registry: The family.
        fields: None, the scalar for its first field, or a mapping of its fields.
        where: What the fields belong to, in front of each error.

    Raises:
        ScenarioError: No such plug-in, or the fields do not fit it.
        PluginError: Its fields are annotated with something that cannot be validated.
    """
    if name not in registry:
        problem = unknown_name(registry, name, (name,))
        raise ScenarioError(f"{where}: {told(problem)}")
    plugin, problems = validate_plugin(registry[name], fields, ())
    if problems:
        told_each = [f"{where}: {_prefixed(problem)}" for problem in problems]
        raise ScenarioError("\n".join(told_each), hint=f"{name}: {registry.help(name)}")
    return plugin


def _prefixed(problem: Problem) -> str:
    return f"{path_text(problem.path)}: {told(problem)}" if problem.path else told(problem)


def unknown_name(registry: Registry[Any], name: str, path: YamlPath) -> Problem:
    """Say that a family has no plug-in of this name, and which name is near."""
    names = registry.names()
    kind = registry.family.removesuffix("s")
    reason = next((missing.reason for missing in MISSING if missing.name == f"{registry.family}/{name}"), "")
    hint = f"it cannot be imported: {reason}" if reason else nearest(name, names)
    return Problem(path, f"the unknown {kind} {shown(name)}", one_of(names), hint, at_key=True)


def validate_plugin(plugin: Any, fields: JsonValue, path: YamlPath) -> tuple[Any, list[Problem]]:
    """Make an instance of a plug-in class, or say all that is wrong with its fields.

    Args:
        path: Where the fields stand.

    Returns:
        (instance, []) or (None, problems).
    """
    given = _as_mapping(plugin, fields, path)
    if isinstance(given, Problem):
        return None, [given]
    keys = Keys(field_names(plugin))
    problems = [keys.problem(path, key) for key in given if key not in keys.known]
    if not _has_fields(plugin):
        return (None, problems) if problems else (plugin(), [])
    instance, wrong = validate(_adapter(plugin), {k: v for k, v in given.items() if k in keys.known}, path)
    problems += wrong
    return (None, problems) if problems else (instance, [])


def _as_mapping(plugin: Any, fields: JsonValue, path: YamlPath) -> Mapping[str, JsonValue] | Problem:
    names = field_names(plugin)
    if fields is None:
        return {}
    if isinstance(fields, Mapping):
        return fields
    if not names:
        return Problem(path, shown(fields), "nothing: it has no fields")
    if isinstance(fields, list):
        return Problem(path, shown(fields), f"a mapping with {', '.join(names)}, or just its {names[0]}")
    return {names[0]: fields}


def _has_fields(plugin: Any) -> bool:
    return dataclasses.is_dataclass(plugin)


@cache
def _adapter(plugin: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(plugin)
    except Exception as error:  # whatever pydantic or the annotations of a foreign plug-in raise
        raise PluginError(
            f"plug-in {plugin.name}: its fields cannot be validated: {type(error).__name__}: {error}",
            hint="annotate fields with types that pydantic knows, imported at run time",
        ) from error


@cache
def field_names(plugin: Any) -> tuple[str, ...]:
    """Names of a plug-in's fields as written in YAML (a pydantic `Field(alias=...)` renames one), in order."""
    if not _has_fields(plugin):
        return ()
    try:
        hints = get_type_hints(plugin, include_extras=True)
    except NameError as error:
        raise PluginError(f"plug-in {plugin.name}: {error}", hint="import the types of fields at run time") from error
    return tuple(_yaml_name(field.name, hints[field.name]) for field in dataclasses.fields(plugin) if field.init)


def _yaml_name(name: str, hint: Any) -> str:
    aliases = (getattr(extra, "alias", None) for extra in getattr(hint, "__metadata__", ()))
    return next((alias for alias in aliases if isinstance(alias, str)), name)


def fields_as_json(plugin: Any) -> Mapping[str, JsonValue]:
    """All fields of a plug-in instance under their YAML names, defaults included, as JSON values."""
    return _dumped(plugin, leave_out_defaults=False)


def fields_set(plugin: Any) -> Mapping[str, JsonValue]:
    """Fields of a plug-in instance that differ from their defaults, as `fields_as_json` has them."""
    return _dumped(plugin, leave_out_defaults=True)


def _dumped(plugin: Any, leave_out_defaults: bool) -> Mapping[str, JsonValue]:
    if not dataclasses.is_dataclass(plugin):
        return {}
    adapter = _adapter(_class_of(plugin))
    fields: Mapping[str, JsonValue] = adapter.dump_python(
        plugin, mode="json", by_alias=True, exclude_defaults=leave_out_defaults
    )
    return fields


def _class_of(plugin: Any) -> Any:
    return type(plugin)


def plugin_schema(plugin: Any, ref_template: str) -> dict[str, JsonValue]:
    """JSON Schema of a plug-in's fields."""
    if not _has_fields(plugin):
        return {"type": "object", "properties": {}}
    return _adapter(plugin).json_schema(by_alias=True, ref_template=ref_template)
