"""ModelConfig as a protobuf message: parse it, edit it by field path, print it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tritonchaos.errors import ConfigTextError
from tritonchaos.observations import JsonValue
from tritonchaos.pbtxt.field_path import Hop, resolve
from tritonchaos.pbtxt.model_config import (
    is_enum,
    is_map,
    is_message,
    model_config_class,
    model_config_descriptor,
    nearest,
)
from tritonchaos.pbtxt.values import check_field, check_value

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message


def parse(text: str, *, allow_unknown_fields: bool = False) -> Message:
    """Read a config.pbtxt.

    Args:
        allow_unknown_fields: Leave out fields that this ModelConfig does not know, instead of refusing them.

    Raises:
        ConfigTextError: Not a ModelConfig; says line, column and what was found there.
    """
    from google.protobuf import text_format

    message = model_config_class()()
    try:
        return text_format.Parse(text, message, allow_unknown_field=allow_unknown_fields)
    except text_format.ParseError as error:
        raise _refused(text, error) from error
    except (UnicodeError, RecursionError) as error:
        raise ConfigTextError(f"config.pbtxt cannot be read: {error}", hint="it must be UTF-8 text") from error


def print_text(message: Message) -> str:
    """Print a message as config.pbtxt; the same message always gives the same text, map keys sorted."""
    from google.protobuf import text_format

    return text_format.MessageToString(message)


def edit(message: Message, changes: Mapping[str, JsonValue]) -> Message:
    """Return an edited copy of a ModelConfig.

    Args:
        changes: Field path -> new value. A list replaces a repeated field, a mapping replaces a message or a map, None
            deletes. An index equal to the length appends.

    Raises:
        ConfigTextError: An unknown field, a value of the wrong type, or an index beyond the end.
    """
    edited = type(message)()
    edited.CopyFrom(message)
    for path, value in changes.items():
        hops = resolve(path)
        _assign(edited, hops, checked(hops[-1], value))
    return edited


def checked(hop: Hop, value: JsonValue) -> JsonValue:
    """Check a value for the place that a path ends at; None, which deletes, fits everywhere."""
    if value is None:
        return None
    check = check_field if hop.is_whole else check_value
    return check(hop.value_field, value, hop.shown)


def beyond_end(hop: Hop, length: int, *, appends: bool) -> ConfigTextError:
    """The error for an index that a repeated field does not have."""
    expected = f"at most {length} (which appends)" if appends else f"below {length}"
    return ConfigTextError(f"{hop.shown}: found index {hop.selector} of a list of {length}, expected {expected}")


def _assign(message: Message, hops: tuple[Hop, ...], value: JsonValue) -> None:
    container: Any = message
    for hop in hops[:-1]:
        container = _enter(container, hop, creates=value is not None)
        if container is None:
            return
    if value is None:
        _delete(container, hops[-1])
    else:
        _put(container, hops[-1], value)


def _enter(container: Any, hop: Hop, *, creates: bool) -> Any:
    """Go into the message that a hop selects; None where it is absent and is not to be created."""
    name = hop.field.name
    if hop.selector is None:
        if not creates and not container.HasField(name):
            return None
        inner = getattr(container, name)
        inner.SetInParent()
        return inner
    values = getattr(container, name)
    if is_map(hop.field):
        return values[hop.selector] if creates or hop.selector in values else None
    if hop.selector == len(values) and creates:
        return values.add()
    if int(hop.selector) >= len(values):
        raise beyond_end(hop, len(values), appends=creates)
    return values[hop.selector]


def _delete(container: Any, hop: Hop) -> None:
    if hop.selector is None:
        container.ClearField(hop.field.name)
        return
    values = getattr(container, hop.field.name)
    if is_map(hop.field):
        if hop.selector in values:
            del values[hop.selector]
    elif int(hop.selector) >= len(values):
        raise beyond_end(hop, len(values), appends=False)
    else:
        del values[hop.selector]


def _put(container: Any, hop: Hop, value: JsonValue) -> None:
    if is_message(hop.value_field) and not hop.is_whole:
        inner = _enter(container, hop, creates=True)
        inner.Clear()
        _fill(inner, value)
    elif hop.is_whole:
        container.ClearField(hop.field.name)
        keys = list(value) if is_map(hop.field) else range(len(value))
        for key in keys:
            _put(container, hop.at(key), value[key])
    elif hop.selector is None:
        setattr(container, hop.field.name, _scalar(hop.field, value))
    else:
        _put_element(getattr(container, hop.field.name), hop, _scalar(hop.value_field, value))


def _put_element(values: Any, hop: Hop, value: Any) -> None:
    if is_map(hop.field) or int(hop.selector or 0) < len(values):
        values[hop.selector] = value
    elif hop.selector == len(values):
        values.append(value)
    else:
        raise beyond_end(hop, len(values), appends=True)


def _fill(message: Any, value: Mapping[str, JsonValue]) -> None:
    for name, inner in value.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        _put(message, Hop(field, None, name), inner)


def _scalar(field: FieldDescriptor, value: JsonValue) -> Any:
    if not is_enum(field):
        return value
    assert field.enum_type is not None
    return field.enum_type.values_by_name[value].number


def _refused(text: str, error: Any) -> ConfigTextError:
    line, column = error.GetLine() or 1, error.GetColumn() or 1
    # The library's message repeats the position and the whole line; keep what comes after them.
    reason = re.sub(r"^\d+:\d+ : ('.*': )?", "", str(error).strip(), flags=re.DOTALL)
    lines = text.split("\n")
    found = lines[line - 1][column - 1 :].strip()[:60] if line <= len(lines) else ""
    shown = f"{found!r}" if found else "the end of the line"
    return ConfigTextError(
        f"config.pbtxt line {line}, column {column}: found {shown}: {reason}", hint=_nearest_field(reason)
    )


def _nearest_field(reason: str) -> str:
    match = re.search(r'type "[\w.]*?(\w+)" has no field named "(\w+)"', reason)
    descriptor = _find_message(model_config_descriptor(), match[1], set()) if match else None
    return nearest(match[2], list(descriptor.fields_by_name)) if match and descriptor else ""


def _find_message(descriptor: Descriptor, name: str, seen: set[str]) -> Descriptor | None:
    if descriptor.name == name:
        return descriptor
    seen.add(descriptor.full_name)
    for field in descriptor.fields:
        inner = field.message_type
        if inner is not None and inner.full_name not in seen:
            found = _find_message(inner, name, seen)
            if found is not None:
                return found
    return None
