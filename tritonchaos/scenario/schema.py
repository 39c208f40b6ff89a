"""JSON Schema of the scenario file, with the registered plug-ins and their help, for editors."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from tritonchaos.observations import JsonValue
from tritonchaos.plugins import Registry, Seconds, ways_of
from tritonchaos.scenario.entries import Families
from tritonchaos.scenario.entry_reader import CONTROL_STEPS, LATER_TARGETS
from tritonchaos.scenario.expect_fields import ExpectFields, PositiveSeconds
from tritonchaos.scenario.plugin_forms import field_names, plugin_schema
from tritonchaos.scenario.validation import NOT_YET

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_EVERY: Final[Mapping[str, JsonValue]] = {
    "type": "integer",
    "minimum": 1,
    "description": "Only in each so many-th cycle.",
}
_ATTRIBUTE: Final = re.compile(r"^    (?P<names>\w+(?:, \w+)*): (?P<text>.*(?:\n {8,}.*)*)", re.MULTILINE)


def complete_schema(records: Mapping[str, JsonValue], families: Families) -> dict[str, JsonValue]:
    """Add steps, checks and targets to the schema of the records.

    Args:
        records: Schema of `Scenario`, whose entries are marked {"x-entry": "step"}.
    """
    definitions: dict[str, JsonValue] = dict(records.get("$defs", {}))
    top = {key: value for key, value in records.items() if key != "$defs"}
    options = _step_options()
    definitions["step"] = _with_control_steps(_entries(families.steps, options, definitions))
    definitions["check"] = _entries(families.checkers, {}, definitions)
    definitions["target"] = _with_later_targets(_entries(families.targets, {}, definitions))
    whole = {"$schema": _DRAFT, **top, "$defs": definitions}
    linked: dict[str, JsonValue] = _link(whole)
    return linked


def _step_options() -> dict[str, JsonValue]:
    expect = {"anyOf": [{"enum": ["ok", "any"]}, TypeAdapter(ExpectFields).json_schema()]}
    deadline = TypeAdapter(PositiveSeconds).json_schema()
    return {
        "expect": {**expect, "description": "What the reply should be; absent: ok."},
        "deadline": {**deadline, "description": "Longest time the step may take."},
        "via": {"enum": ["http"], "description": "How the server is asked; both: over HTTP, then over gRPC."},
        "every": _EVERY,
        "record": {
            "type": "string",
            "pattern": "^[a-z][a-z0-9_]*$",
            "description": "Its latency becomes the metric latency_<NAME>_ns of the cycle.",
        },
    }


def _entries(
    registry: Registry[Any], options: Mapping[str, JsonValue], definitions: dict[str, JsonValue]
) -> dict[str, JsonValue]:
    """Schema of one entry of a list: NAME, NAME: scalar or NAME: {fields}."""
    properties = {name: _plugin(registry[name], options, definitions) for name in registry.names()}
    names = [{"const": name, "description": registry.help(name)} for name in registry.names()]
    mapping = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return {"anyOf": [*names, mapping]}


def _with_control_steps(entries: dict[str, JsonValue]) -> dict[str, JsonValue]:
    *names, mapping = entries["anyOf"]
    steps = {"type": "array", "items": {"$ref": "#/$defs/step"}, "minItems": 1}
    own = {
        "times": {"type": "integer", "minimum": 1, "description": "How many times."},
        "gap": {**TypeAdapter(Seconds).json_schema(), "description": "Time from one start to the next; absent: none."},
    }
    control = {
        name: {
            "description": text,
            "type": "object",
            "properties": {key: own[key], "steps": steps, "every": _EVERY},
            "required": ["times", "steps"] if key == "times" else ["steps"],
            "additionalProperties": False,
        }
        for name, (key, text) in CONTROL_STEPS.items()
    }
    return {"anyOf": [*names, {**mapping, "properties": {**mapping["properties"], **control}}]}


def _with_later_targets(entries: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Targets of later versions may stand in the list already, with any fields."""
    *names, mapping = entries["anyOf"]
    later = sorted(LATER_TARGETS - set(mapping["properties"]))
    names += [{"const": name, "description": NOT_YET} for name in later]
    fields = {name: {"description": NOT_YET, "type": ["object", "null"]} for name in later}
    return {"anyOf": [*names, {**mapping, "properties": {**mapping["properties"], **fields}}]}


def _plugin(plugin: Any, options: Mapping[str, JsonValue], definitions: dict[str, JsonValue]) -> dict[str, JsonValue]:
    schema = plugin_schema(plugin, "#/$defs/{model}")
    definitions.update(schema.pop("$defs", {}))
    summary, attributes = _help(plugin.__doc__ or "")
    names = field_names(plugin)
    if dataclasses.is_dataclass(plugin):
        attributes = {
            yaml: attributes.get(field.name, "") for yaml, field in zip(names, dataclasses.fields(plugin), strict=False)
        }
    fields = _described(schema.get("properties", {}), attributes)
    if "via" in options:
        options = {**options, "via": {**options["via"], "enum": list(ways_of(plugin))}}
    mapping: dict[str, JsonValue] = {
        "type": "object",
        "properties": {**fields, **options},
        "additionalProperties": False,
    }
    if schema.get("required"):
        mapping["required"] = schema["required"]
    scalar = [fields[names[0]]] if names else []
    nothing = [] if schema.get("required") else [{"type": "null"}]
    return {"description": summary, "anyOf": [*scalar, mapping, *nothing]}


def _described(properties: Mapping[str, JsonValue], attributes: Mapping[str, str]) -> dict[str, JsonValue]:
    return {
        name: {**schema, "description": attributes[name]} if attributes.get(name) else schema
        for name, schema in properties.items()
    }


def _help(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its summary and the texts of its section "Attributes"."""
    summary, _, rest = inspect.cleandoc(docstring).partition("Attributes:\n")
    attributes: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(rest.split("\n\n")[0]):
        text = " ".join(match["text"].split())
        attributes.update(dict.fromkeys(match["names"].split(", "), text))
    return " ".join(summary.split()), attributes


def _link(schema: JsonValue) -> JsonValue:
    """Put references in place of the marks, and the records' help where editors look for it."""
    if isinstance(schema, list):
        return [_link(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if set(schema) == {"x-entry"}:
        return {"$ref": f"#/$defs/{schema['x-entry']}"}
    linked = {key: _link(value) for key, value in schema.items()}
    if isinstance(linked.get("description"), str) and "Attributes:" in linked["description"]:
        linked["description"], attributes = _help(linked["description"])
        linked["properties"] = _described(linked.get("properties", {}), attributes)
    return linked
