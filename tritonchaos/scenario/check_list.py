"""Checks named on the command line: names parted by commas, or a YAML list as in the scenario's `check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritonchaos.errors import UsageError
from tritonchaos.observations import JsonValue
from tritonchaos.plugins import CHECKERS
from tritonchaos.scenario.plugin_forms import field_names, unknown_name
from tritonchaos.scenario.problems import told
from tritonchaos.scenario.yaml_source import read_yaml

Checks = Sequence[tuple[str, Mapping[str, JsonValue]]]


def parse_checks(text: str, of_run: Checks) -> tuple[tuple[str, dict[str, JsonValue]], ...]:
    """Read a list of checks.

    Args:
        text: "memory_growth,hang" or '[hang, {returns_to_baseline: 10MiB}]'.
        of_run: The run's own checks; one that is only named keeps the fields that it has there.

    Raises:
        UsageError: It names nothing, an unknown check, or is no list.
        ScenarioError: It is not YAML.
    """
    known = {name: dict(fields) for name, fields in of_run}
    checks = tuple(_check(item, known) for item in _items(text))
    if not checks:
        raise UsageError("--checks: found no check, expected names such as memory_growth,hang")
    return checks


def _items(text: str) -> list[JsonValue]:
    if not text.lstrip().startswith("["):
        return [name.strip() for name in text.split(",") if name.strip()]
    document = read_yaml(text, "--checks")
    if document.problems:
        raise document.error(document.problems)
    items: list[Any] = document.value
    return items


def _check(item: JsonValue, known: Mapping[str, dict[str, JsonValue]]) -> tuple[str, dict[str, JsonValue]]:
    if isinstance(item, str):
        return _known_name(item), dict(known.get(item, {}))
    if not isinstance(item, Mapping) or len(item) != 1:
        raise UsageError(f"--checks: found {item!r:.80}, expected NAME or {{NAME: fields}}")
    ((name, fields),) = item.items()
    return _known_name(name), dict(fields) if isinstance(fields, dict) else _first_field(name, fields)


def _known_name(name: str) -> str:
    if name not in CHECKERS:
        raise UsageError(f"--checks: {told(unknown_name(CHECKERS, name, ('check',)))}")
    return name


def _first_field(name: str, value: JsonValue) -> dict[str, JsonValue]:
    checker: Any = CHECKERS[name]
    names = field_names(checker)
    if value is None:
        return {}
    if not names:
        raise UsageError(f"--checks: found {value!r:.80} for {name}, expected nothing: it has no fields")
    return {names[0]: value}
