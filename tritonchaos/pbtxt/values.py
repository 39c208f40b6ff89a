"""Check JSON-like values against ModelConfig's fields before anything is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tritonchaos.errors import ConfigTextError
from tritonchaos.observations import JsonValue
from tritonchaos.pbtxt.model_config import (
    field_named,
    integer_range,
    is_bool,
    is_bytes,
    is_enum,
    is_float,
    is_map,
    is_message,
    is_repeated,
    map_fields,
    nearest,
    rivals,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor


def check_field(field: FieldDescriptor, value: JsonValue, shown: str) -> JsonValue:
    """Check a value for a whole field: a list for a repeated field, a mapping for a map, else one value.

    Args:
        shown: The field's path, for the error message.

    Returns:
        The value in plain form: enum values by name, messages as dict by field name without None values, maps as
        dict by key, strings of bytes fields as bytes.

    Raises:
        ConfigTextError: A wrong type, an integer out of range, an unknown enum name (with the nearest names), or a
            field that does not exist.
    """
    if is_map(field):
        return _check_map(field, value, shown)
    if not is_repeated(field):
        return check_value(field, value, shown)
    if isinstance(value, str | bytes) or not isinstance(value, list | tuple):
        raise _wrong(shown, value, "a list")
    return [check_value(field, element, f"{shown}[{index}]") for index, element in enumerate(value)]


def check_value(field: FieldDescriptor, value: JsonValue, shown: str) -> JsonValue:
    """Check one value of a field: an element where the field is repeated. Returns and raises as `check_field`."""
    if is_message(field):
        assert field.message_type is not None
        return _check_message(field.message_type, value, shown)
    if is_enum(field):
        return _check_enum(field, value, shown)
    if is_bool(field):
        if not isinstance(value, bool):
            raise _wrong(shown, value, "true or false")
        return value
    if is_float(field):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(shown, value, "a number")
        # Any NaN becomes the one that the text can say.
        return math.nan if math.isnan(value) else float(value)
    limits = integer_range(field)
    return _check_string(field, value, shown) if limits is None else _check_integer(limits, value, shown)


def _check_integer(limits: tuple[int, int], value: JsonValue, shown: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not limits[0] <= value <= limits[1]:
        raise _wrong(shown, value, f"an integer from {limits[0]} to {limits[1]}")
    return value


def _check_string(field: FieldDescriptor, value: JsonValue, shown: str) -> str | bytes:
    if isinstance(value, bytes) and is_bytes(field):
        return value
    if not isinstance(value, str):
        raise _wrong(shown, value, "a string")
    try:
        encoded = value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _wrong(shown, value, "a string that UTF-8 can encode") from error
    return encoded if is_bytes(field) else value


def _check_enum(field: FieldDescriptor, value: JsonValue, shown: str) -> str:
    assert field.enum_type is not None
    names = list(field.enum_type.values_by_name)
    if not isinstance(value, str):
        raise _wrong(shown, value, f"the name of a {field.enum_type.name}, such as {names[-1]}")
    if value not in names:
        raise ConfigTextError(
            f"{shown}: {field.enum_type.name} has no value {value!r}; {nearest(value, names)}",
            hint="enum values are written as in Triton's model_config.proto",
        )
    return value


def _check_message(descriptor: Descriptor, value: JsonValue, shown: str) -> dict[str, JsonValue]:
    if not isinstance(value, Mapping):
        raise _wrong(shown, value, f"a mapping of {descriptor.name}'s fields")
    checked: dict[str, JsonValue] = {}
    for name, inner in value.items():
        if inner is None:
            continue
        path = f"{shown}.{name}"
        field = field_named(descriptor, str(name), path)
        for rival in rivals(field):
            if rival in checked:
                raise ConfigTextError(f"{shown}: found both {rival} and {name}, expected one of them")
        checked[field.name] = check_field(field, inner, path)
    return checked


def _check_map(field: FieldDescriptor, value: JsonValue, shown: str) -> dict[str | int, JsonValue]:
    if not isinstance(value, Mapping):
        raise _wrong(shown, value, "a mapping of keys to values")
    key_field, value_field = map_fields(field)
    checked: dict[str | int, JsonValue] = {}
    for key, inner in value.items():
        path = f'{shown}["{key}"]'
        # JSON has string keys only, so an integer key may come as its digits.
        plain_key = int(key) if integer_range(key_field) and isinstance(key, str) and key.isdecimal() else key
        if inner is not None:
            checked[check_value(key_field, plain_key, path)] = check_value(value_field, inner, path)
    return checked


def _wrong(shown: str, value: JsonValue, expected: str) -> ConfigTextError:
    printed = repr(value)
    if len(printed) > 60:
        printed = printed[:57] + "..."
    return ConfigTextError(f"{shown}: found {printed} ({type(value).__name__}), expected {expected}")
