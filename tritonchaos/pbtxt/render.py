"""Print single fields and values in protobuf text format, the way Triton's examples are laid out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tritonchaos.errors import ConfigTextError
from tritonchaos.observations import JsonValue
from tritonchaos.pbtxt.model_config import (
    is_bool,
    is_enum,
    is_float,
    is_map,
    is_message,
    is_repeated,
    map_fields,
    owner_class,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

# What is longer is laid out over several lines.
_LINE_LENGTH: Final = 72


def render_field(field: FieldDescriptor, value: JsonValue, *, indent: str = "", newline: str = "\n") -> str:
    """Print a field with its whole value: `dims: [ 1, 2 ]`, `dynamic_batching { }`.

    Args:
        value: As `values.check_field` returns it.
        indent: What stands before the field in its line; the following lines get it too.
        newline: The line end of the text that the field goes into.
    """
    return _laid_out(_field_line(field, value), _field_lines(field, value), indent, newline)


def render_one(field: FieldDescriptor, value: JsonValue, *, indent: str = "", newline: str = "\n") -> str:
    """Print a field with one value, also where the field is repeated: `dims: 3`, `output { name: "X" }`."""
    printed = render_value(field, value, indent=indent, newline=newline)
    return f"{field.name} {printed}" if is_message(field) else f"{field.name}: {printed}"


def render_value(
    field: FieldDescriptor, value: JsonValue, *, quote: str = '"', indent: str = "", newline: str = "\n"
) -> str:
    """Print one value of a field: a scalar, or a message with its brackets.

    Args:
        value: As `values.check_value` returns it; for an entry of a map a dict of "key" and "value".
    """
    if is_message(field):
        return _laid_out(_message_line(field, value), _message_lines(field, value), indent, newline)
    return _scalar(field, value, quote)


def read_scalar(field: FieldDescriptor, printed: str) -> JsonValue:
    """Read a printed scalar as a value of the field, enum values by name.

    Raises:
        ConfigTextError: It is not a value of this field.
    """
    from google.protobuf import text_format

    owner: Any = owner_class(field)()
    try:
        text_format.Parse(f"{field.name}: {printed}", owner)
    except (text_format.ParseError, UnicodeError) as error:
        raise ConfigTextError(f"{printed} is not a value of {field.full_name}") from error
    value = getattr(owner, field.name)
    if is_repeated(field):
        value = value[0]
    if not is_enum(field):
        return value
    assert field.enum_type is not None
    known = field.enum_type.values_by_number.get(value)
    return known.name if known is not None else value


def _laid_out(line: str, lines: list[str], indent: str, newline: str) -> str:
    return line if len(line) <= _LINE_LENGTH else (newline + indent).join(lines)


def _scalar(field: FieldDescriptor, value: JsonValue, quote: str) -> str:
    if is_enum(field):
        return str(value)
    if is_bool(field):
        return "true" if value else "false"
    if is_float(field):
        # Python's shortest form that reads back to the same double; text format spells inf and nan alike.
        return repr(float(value))
    return str(value) if isinstance(value, int) else _quoted(value, quote)


def _quoted(value: str | bytes, quote: str) -> str:
    from google.protobuf.text_encoding import CEscape

    is_text = isinstance(value, str)
    escaped = CEscape(value.encode("utf-8") if isinstance(value, str) else value, as_utf8=is_text)
    # CEscape escapes both quotes; only our own needs it.
    other = "'" if quote == '"' else '"'
    return quote + escaped.replace(f"\\{other}", other) + quote


def _entries(value: Mapping[Any, JsonValue]) -> list[dict[str, JsonValue]]:
    return [{"key": key, "value": inner} for key, inner in value.items()]


def _field_line(field: FieldDescriptor, value: JsonValue) -> str:
    if is_map(field):
        value = _entries(value)
    if not is_repeated(field):
        return f"{field.name} {_message_line(field, value)}" if is_message(field) else _scalar_field(field, value)
    if not value:
        return f"{field.name}: [ ]"
    if not is_message(field):
        return f"{field.name}: [ {', '.join(_scalar(field, element, chr(34)) for element in value)} ]"
    return f"{field.name} [ {', '.join(_message_line(field, element) for element in value)} ]"


def _field_lines(field: FieldDescriptor, value: JsonValue) -> list[str]:
    if is_map(field):
        value = _entries(value)
    if not is_message(field):
        return [_field_line(field, value)]
    if not is_repeated(field):
        first, *rest = _message_lines(field, value)
        return [f"{field.name} {first}", *rest]
    lines = [f"{field.name} ["]
    for element in value:
        *most, last = _message_lines(field, element)
        lines += [f"  {line}" for line in [*most, f"{last},"]]
    lines[-1] = lines[-1].removesuffix(",")
    return [*lines, "]"]


def _scalar_field(field: FieldDescriptor, value: JsonValue) -> str:
    return f"{field.name}: {_scalar(field, value, chr(34))}"


def _message_line(field: FieldDescriptor, value: Mapping[str, JsonValue]) -> str:
    inner = [_field_line(inner_field, inner) for inner_field, inner in _inner(field, value)]
    return " ".join(["{", *inner, "}"])


def _message_lines(field: FieldDescriptor, value: Mapping[str, JsonValue]) -> list[str]:
    lines = ["{"]
    for inner_field, inner in _inner(field, value):
        line = _field_line(inner_field, inner)
        inner_lines = [line] if len(line) <= _LINE_LENGTH else _field_lines(inner_field, inner)
        lines += [f"  {inner_line}" for inner_line in inner_lines]
    return [*lines, "}"]


def _inner(field: FieldDescriptor, value: Mapping[str, JsonValue]) -> list[tuple[FieldDescriptor, JsonValue]]:
    if is_map(field):
        key_field, value_field = map_fields(field)
        return [(key_field, value["key"]), (value_field, value["value"])]
    assert field.message_type is not None
    return [(field.message_type.fields_by_name[name], inner) for name, inner in value.items()]
