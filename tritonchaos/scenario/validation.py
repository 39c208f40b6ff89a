"""Strict validation of plain values, and what pydantic says about them in our words."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter, ValidationError

from tritonchaos.observations import JsonValue
from tritonchaos.scenario.problems import Problem, YamlPath, nearest, one_of, shown

NOT_YET: Final = "not in this version"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that a mapping may have now, and those that a later version will understand."""

    known: tuple[str, ...]
    later: frozenset[str] = frozenset()

    def problem(self, path: YamlPath, key: str) -> Problem:
        """Say what is wrong with a key that is not known."""
        if key in self.later:
            found, hint = f"the key {key!r}, which is {NOT_YET}", ""
        else:
            found, hint = f"the unknown key {key!r}", nearest(key, self.known)
        return Problem((*path, key), found, one_of(self.known), hint, at_key=True)


KeysAt: TypeAlias = Callable[[YamlPath], Keys]


def validate(
    adapter: TypeAdapter[Any], raw: JsonValue, path: YamlPath, keys_at: KeysAt | None = None
) -> tuple[Any, list[Problem]]:
    """Validate plain values strictly (no text for a number, no number for a truth value).

    Args:
        path: Where `raw` stands in the document.
        keys_at: Gives the keys that may stand at a path below `raw`.

    Returns:
        (value, []) or (None, problems).
    """
    try:
        # As JSON, because only there strict still takes a list for a tuple and a text for an enum.
        return adapter.validate_json(json.dumps(raw), strict=True), []
    except ValidationError as error:
        return None, problems_of(error, raw, path, keys_at)


_EXPECTED: Final[Mapping[str, str]] = {
    "bool_type": "true or false",
    "bytes_type": "text",
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
    "float_type": "a number",
    "frozen_set_type": "a list",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "is_instance_of": "something else",
    "list_type": "a list",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "nothing",
    "set_type": "a list",
    "string_type": "text",
    "tuple_type": "a list",
}


def problems_of(error: ValidationError, raw: JsonValue, path: YamlPath, keys_at: KeysAt | None = None) -> list[Problem]:
    """Turn a validation error into problems, each at the path of its value.

    Args:
        raw: What was validated.
        path: Where `raw` stands in the document.
        keys_at: Gives the keys that may stand at a path below `raw`.
    """
    merged: dict[tuple[YamlPath, str], Problem] = {}
    for said in error.errors(include_url=False):
        if said["type"] == "too_short" and len(said["input"]) >= said["ctx"]["min_length"]:
            continue  # pydantic does not count entries that are wrong, and these are told one by one
        problem = _problem(said, raw, path, keys_at)
        seen = merged.get((problem.path, problem.found))
        if seen is not None and seen.expected != problem.expected:
            # The members of a union each complain about the same value.
            problem = dataclasses.replace(seen, expected=f"{seen.expected} or {problem.expected}")
        merged[problem.path, problem.found] = problem
    return list(merged.values())


def _problem(said: Any, raw: JsonValue, path: YamlPath, keys_at: KeysAt | None) -> Problem:
    kind, loc, found = said["type"], tuple(said["loc"]), shown(said["input"])
    if kind == "missing":
        return Problem((*path, *_existing(raw, loc[:-1])), f"no key {loc[-1]!r}", "one: it is required")
    if kind == "extra_forbidden":
        keys = keys_at(loc[:-1]) if keys_at else Keys(())
        return keys.problem((*path, *loc[:-1]), str(loc[-1]))
    where = (*path, *_existing(raw, loc))
    if kind in ("value_error", "assertion_error"):
        return _from_value_error(str(said["ctx"]["error"]), where, found)
    if kind in ("literal_error", "enum"):
        names = _choices(said["ctx"]["expected"])
        return Problem(where, found, one_of(names), nearest(str(said["input"]), names))
    return Problem(where, found, _expected(said))


def _existing(raw: JsonValue, loc: Sequence[str | int]) -> YamlPath:
    """Return the part of a location that exists; pydantic adds names of union members, which do not."""
    return tuple(_walk(raw, loc))


def _walk(raw: JsonValue, loc: Sequence[str | int]) -> Iterator[str | int]:
    for part in loc:
        is_there = part in raw if isinstance(raw, Mapping) else _is_index(raw, part)
        if not is_there:
            return
        raw = raw[part]
        yield part


def _is_index(raw: JsonValue, part: str | int) -> bool:
    return isinstance(raw, list | tuple) and isinstance(part, int) and part < len(raw)


def _from_value_error(message: str, path: YamlPath, found: str) -> Problem:
    head, comma, tail = message.partition(", expected ")
    if comma and head.startswith("found "):
        return Problem(path, head.removeprefix("found "), tail)
    return Problem(path, found, message)


def _choices(expected: str) -> list[str]:
    """Split pydantic's "'a', 'b' or 'c'"."""
    return [name.strip().strip("'") for name in expected.replace(" or ", ", ").split(",")]


def _expected(said: Any) -> str:
    context = said.get("ctx", {})
    match said["type"]:
        case "greater_than":
            return f"more than {context['gt']:g}"
        case "greater_than_equal":
            return f"at least {context['ge']:g}"
        case "less_than":
            return f"less than {context['lt']:g}"
        case "less_than_equal":
            return f"at most {context['le']:g}"
        case "string_too_short":
            return f"text of at least {context['min_length']} characters"
        case "string_too_long":
            return f"text of at most {context['max_length']} characters"
        case "too_short":
            return f"at least {context['min_length']} entries"
        case "string_pattern_mismatch":
            return f"text that matches {context['pattern']}"
        case kind:
            return _EXPECTED.get(kind, str(said["msg"]))
