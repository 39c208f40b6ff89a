"""Records to what JSON can carry and back, by their type annotations."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

# What most values are; a member of an enumeration is of none of these types itself.
_PLAIN: Final = frozenset({int, str, bool, float, type(None), bytes})


def to_plain(value: Any) -> Any:
    """Make a record into mappings, lists and plain values."""
    if type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_plain(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: to_plain(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(element) for element in value]
    return value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def from_plain(kind: Any, value: Any) -> Any:
    """Make a record out of what JSON gave back for it: lists become tuples, texts become enum members."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{f.name: from_plain(hints[f.name], value[f.name]) for f in fields(kind) if f.name in value})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else from_plain(next(a for a in arguments if a is not type(None)), value)
    if origin is tuple:
        each = [arguments[0]] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(from_plain(part, element) for part, element in zip(each, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: from_plain(arguments[1], element) for key, element in value.items()}
    return value
