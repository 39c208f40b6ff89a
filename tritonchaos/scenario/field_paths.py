"""Sets one value of a YAML document by its path, such as phases.wrong_output_datatype.cycles or check[0].hang."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tritonchaos.errors import UsageError
from tritonchaos.observations import JsonValue
from tritonchaos.scenario.parsing import keys_at
from tritonchaos.scenario.problems import YamlPath, nearest, one_of, path_text, shown
from tritonchaos.scenario.yaml_source import read_yaml

# A name, or a name in double quotes (for keys with dots), each with a dot in front unless it is first; or [number].
_PART: Final = re.compile(r'(?:(?:^|\.)(?:"([^"]*)"|([^.\[\]"=]+)))|\[(\d+)\]')
# Items of lists that are mappings with a name of their own are found by it.
_NAMED_BY: Final = ("phase", "track")


def parse_assignment(text: str) -> tuple[str, JsonValue]:
    """Read "PATH=VALUE", the value as YAML.

    Raises:
        UsageError: There is no "=", or the path is not one.
        ScenarioError: The value is not YAML.
    """
    match = re.match(r'((?:"[^"]*"|[^="])+)=(.*)\Z', text, re.DOTALL)
    if match is None:
        raise UsageError(
            f"--set: found {shown(text)}, expected PATH=VALUE",
            hint="for example --set phases.wrong_output_datatype.cycles=20",
        )
    path, value = match[1].strip(), match[2]
    if not value.strip():
        return path, None
    document = read_yaml(value, f"--set {path}")
    if document.problems:
        raise document.error(document.problems)
    return path, document.value


def set_value(root: dict[str, JsonValue], path: str, value: JsonValue) -> None:
    """Set a value in place. Mappings on the way that a scenario may have are made where they are missing.

    Items of lists are named by number, or by their name: of a phase, a track, a step, a check or a target.
    `target.FIELD` sets a field of every target.

    Raises:
        UsageError: The path leads nowhere; names the part that is wrong and what is near.
    """
    parts = _parts(path)
    targets = root.get("target")
    if parts[0] == "target" and len(parts) > 1 and isinstance(targets, list) and _is_field(targets, parts[1]):
        for number in range(len(targets)):
            _set(root, ["target", str(_name_of(targets[number])), *parts[1:]], value, path, ())
    else:
        _set(root, parts, value, path, ())


def _is_field(targets: list[Any], part: str | int) -> bool:
    return isinstance(part, str) and not part.isdigit() and part not in map(_name_of, targets)


def _set(holder: Any, parts: list[str | int], value: JsonValue, path: str, done: YamlPath) -> None:
    if isinstance(holder, list):
        _set_in_list(holder, parts, value, path, done)
        return
    if not isinstance(holder, dict):
        raise UsageError(
            f"--set {path}: found {shown(holder)} at {path_text(done)}, which has no {parts[0]!r} in it",
            hint=f"set {path_text(done)} as a whole",
        )
    key, rest = str(parts[0]), parts[1:]
    if key not in holder:
        _refuse_unknown(holder, key, path, done, is_last=not rest)
    if not rest:
        holder[key] = value
        return
    if holder.get(key) is None:
        holder[key] = {}
    _set(holder[key], rest, value, path, (*done, key))


def _set_in_list(items: list[Any], parts: list[str | int], value: JsonValue, path: str, done: YamlPath) -> None:
    part, rest = parts[0], parts[1:]
    number = _index(items, part, path, done)
    if isinstance(items[number], str) and (rest or part == items[number]):
        items[number] = {items[number]: {}}  # a plug-in written as its bare name
    item = items[number]
    plugin = _plugin_in(item)
    is_named = isinstance(part, str) and not part.isdigit()
    if plugin and (is_named or (rest and rest[0] != plugin)):
        rest = [plugin, *rest]  # to its fields, whether or not the path names it
    if rest:
        _set(item, rest, value, path, (*done, number))
    else:
        items[number] = value


def _parts(path: str) -> list[str | int]:
    parts: list[str | int] = []
    end = 0
    for match in _PART.finditer(path):
        if match.start() != end:
            break
        quoted, plain, index = match.groups()
        parts.append(int(index) if index is not None else plain if quoted is None else quoted)
        end = match.end()
    if not parts or end != len(path):
        raise UsageError(
            f"--set: found the path {shown(path)}, which cannot be read from its character {end + 1} on",
            hint='write names with dots between them, lists as name[0], keys with dots in them as "a.b"',
        )
    return parts


def _refuse_unknown(holder: Mapping[str, JsonValue], key: str, path: str, done: YamlPath, is_last: bool) -> None:
    """Names that only the validation of the whole can judge (parameters, fields of plug-ins) are let through."""
    if done == ("models",):
        names: Sequence[str] = () if is_last else tuple(holder)
    else:
        keys = keys_at(done)
        names = () if key in keys.known or key in keys.later else keys.known
    if names:
        raise _unknown(path, f"{path_text(done) or 'the scenario'} has no {key!r}", key, names)


def _index(items: list[Any], part: str | int, path: str, done: YamlPath) -> int:
    if isinstance(part, int) or part.isdigit():
        if int(part) < len(items):
            return int(part)
        raise UsageError(f"--set {path}: found {len(items)} items in {path_text(done)}, expected more than {part}")
    names = [_name_of(item) for item in items]
    found = [number for number, name in enumerate(names) if name == part]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"--set {path}: found {len(found)} items called {part!r} in {path_text(done)}, expected one",
            hint=f"name it by number: {', '.join(f'{path_text(done)}[{number}]' for number in found)}",
        )
    raise _unknown(path, f"{path_text(done)} has no item {part!r}", part, [name for name in names if name])


def _name_of(item: Any) -> str:
    if isinstance(item, str):
        return item
    names = [item[key] for key in _NAMED_BY if isinstance(item.get(key), str)] if isinstance(item, dict) else []
    return names[0] if names else _plugin_in(item)


def _plugin_in(item: Any) -> str:
    """Name of the plug-in that an item NAME: {fields} is; "" for any other item."""
    is_plugin = isinstance(item, dict) and len(item) == 1 and not set(item) & set(_NAMED_BY)
    return next(iter(item)) if is_plugin else ""


def _unknown(path: str, what: str, name: str, names: Sequence[str]) -> UsageError:
    near = nearest(name, names)
    return UsageError(f"--set {path}: {what}, expected {one_of(names)}", hint=near)
