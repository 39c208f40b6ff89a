"""Edit a config.pbtxt as text, so that comments, unknown fields and layout keep every byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tritonchaos.errors import ConfigTextError, TritonChaosBug
from tritonchaos.observations import JsonValue
from tritonchaos.pbtxt import message as messages
from tritonchaos.pbtxt import splice
from tritonchaos.pbtxt.field_path import Hop, resolve
from tritonchaos.pbtxt.message import beyond_end, checked
from tritonchaos.pbtxt.model_config import integer_range, is_map, is_message, map_fields, rivals
from tritonchaos.pbtxt.render import read_scalar, render_field, render_one, render_value
from tritonchaos.pbtxt.spans import Field, Value, read_spans, unexpected

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import Message

Path = tuple[Hop, ...]


def edit(text: str, changes: Mapping[str, JsonValue]) -> str:
    """Edit a config.pbtxt by field path; what is not named keeps every byte.

    A scalar is replaced where it stands, a missing one gets a line at the end of its message, a deleted one takes its
    line with it. Fields that this ModelConfig does not know are left alone, unless a mapping replaces the message
    that they are in. A value that is already there is not written again. In a text that is not a valid ModelConfig
    (an unknown enum name, a doubled field) the named fields can still be edited as long as its brackets match.

    Args:
        changes: Field path -> new value, such as `output[0].data_type` -> "TYPE_INT32", `input[0].dims` -> [1, 2],
            `parameters["KEY"].string_value` -> "1", `max_batch_size` -> None. They are made in order. A list
            replaces a repeated field, a mapping replaces a message or a map, a list of mappings a repeated message,
            None deletes. An index equal to the length appends.

    Raises:
        ConfigTextError: An unknown field or enum name (with the nearest), a value of the wrong type, an index beyond
            the end, or a text whose brackets and quotes do not match.
    """
    before = _parsed(text)
    expected = messages.edit(before, changes) if before is not None else None
    edited = text
    for path, value in changes.items():
        hops = resolve(path)
        edited = _assign(edited, hops, checked(hops[-1], value))
    if expected is not None:
        _prove(edited, expected, changes)
    return edited


def _parsed(text: str) -> Message | None:
    try:
        return messages.parse(text, allow_unknown_fields=True)
    except ConfigTextError:
        return None


def _prove(edited: str, expected: Message, changes: Mapping[str, JsonValue]) -> None:
    """The text must now say what the message says that was edited by itself."""
    found = _parsed(edited)
    # Compared as bytes: a NaN is not equal to itself.
    if found is None or found.SerializeToString(deterministic=True) != expected.SerializeToString(deterministic=True):
        raise TritonChaosBug(f"editing config.pbtxt with {dict(changes)!r} gave another config than meant:\n{edited}")


# --- finding -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Element:
    """One value of a repeated field: an occurrence of its own, or one of a list's elements."""

    field: Field
    value: Value
    index_in_list: int | None


def _elements(message: Value, name: str) -> list[_Element]:
    found: list[_Element] = []
    for field in message.named(name):
        if field.value.kind == "list":
            found += [_Element(field, element, index) for index, element in enumerate(field.value.elements)]
        else:
            found.append(_Element(field, field.value, None))
    return found


def _selected(text: str, message: Value, hop: Hop) -> list[_Element]:
    """The elements that a selector means: at most one by index, all that have the key in a map."""
    elements = _elements(message, hop.field.name)
    if is_map(hop.field):
        return [element for element in elements if _key(text, element.value, hop) == hop.selector]
    index = int(hop.selector or 0)
    return elements[index : index + 1]


def _key(text: str, entry: Value, hop: Hop) -> JsonValue:
    key_field = map_fields(hop.field)[0]
    keys = _as_message(text, entry, hop).named("key")
    if not keys:
        return "" if integer_range(key_field) is None else 0
    return read_scalar(key_field, text[keys[-1].value.start : keys[-1].value.end])


def _as_message(text: str, value: Value, hop: Hop) -> Value:
    if value.kind != "message":
        raise unexpected(text, value.start, f"a {value.kind}", f"the message {hop.shown}")
    return value


def find(text: str, message: Value, hop: Hop) -> Value | None:
    """The value that one part of a path selects within a message."""
    if hop.selector is None:
        fields = message.named(hop.field.name)
        return fields[-1].value if fields else None
    length = len(_elements(message, hop.field.name))
    if not is_map(hop.field) and int(hop.selector) > length:
        raise beyond_end(hop, length, appends=True)
    selected = _selected(text, message, hop)
    if not selected or not is_map(hop.field):
        return selected[-1].value if selected else None
    # Where a key comes twice, the last one counts.
    values = _as_message(text, selected[-1].value, hop).named("value")
    return values[-1].value if values else None


def container_of(text: str, path: Path) -> Value | None:
    """The message that the last part of a path is a field of; None where it is absent."""
    message: Value | None = read_spans(text)
    for hop in path[:-1]:
        assert message is not None
        message = find(text, message, hop)
        if message is None:
            return None
        _as_message(text, message, hop)
    return message


# --- changing: each takes the text and gives the new text -------------------------------------------


def _assign(text: str, path: Path, value: JsonValue) -> str:
    if value is None:
        return _delete(text, path)
    hop = path[-1]
    if hop.is_whole:
        return _assign_map(text, path, value) if is_map(hop.field) else _assign_list(text, path, value)
    container = container_of(text, path)
    found = find(text, container, hop) if container is not None else None
    if found is None:
        return _create(text, path, value)
    if is_message(hop.value_field):
        return _assign_message(text, path, _as_message(text, found, hop), value)
    return _assign_scalar(text, hop, found, value)


def _assign_scalar(text: str, hop: Hop, found: Value, value: JsonValue) -> str:
    field = hop.value_field
    old = text[found.start : found.end]
    new = render_value(field, value, quote=old[0] if old[0] in "\"'" else '"')
    try:
        if read_scalar(field, old) == read_scalar(field, new):
            return text
    except ConfigTextError:
        # What stands there is not a value of this field, for example an enum name of a newer Triton.
        pass
    return splice.replace(text, found.start, found.end, new)


def _assign_message(text: str, path: Path, found: Value, value: Mapping[str, JsonValue]) -> str:
    for field in reversed(found.fields):
        if field.name not in value:
            text = splice.delete_field(text, field)
    for name, inner in value.items():
        text = _assign(text, (*path, path[-1].to(name)), inner)
    return text


def _assign_list(text: str, path: Path, values: list[JsonValue]) -> str:
    *parents, hop = path
    container = container_of(text, path)
    if container is None or not container.named(hop.field.name):
        # None there and none wanted, unless the messages that lead there are to be made.
        return text if container is not None and not values else _create(text, path, values)
    for index in reversed(range(len(values), len(_elements(container, hop.field.name)))):
        text = _delete_element(text, (*parents, hop.at(index)), keeps_brackets=True)
    for index, value in enumerate(values):
        text = _assign(text, (*parents, hop.at(index)), value)
    return text


def _assign_map(text: str, path: Path, values: Mapping[str | int, JsonValue]) -> str:
    *parents, hop = path
    container = container_of(text, path)
    if container is None or not container.named(hop.field.name):
        # None there and none wanted, unless the messages that lead there are to be made.
        return text if container is not None and not values else _create(text, path, values)
    keys = {_key(text, element.value, hop): None for element in _elements(container, hop.field.name)}
    for key in keys:
        if key not in values:
            text = _delete_element(text, (*parents, hop.at(key)), keeps_brackets=True)
    for key, value in values.items():
        text = _assign(text, (*parents, hop.at(key)), value)
    return text


def _delete(text: str, path: Path) -> str:
    hop = path[-1]
    container = container_of(text, path)
    if container is None:
        return text
    if hop.selector is not None:
        return _delete_element(text, path, keeps_brackets=False)
    for field in reversed(container.named(hop.field.name)):
        text = splice.delete_field(text, field)
    return text


def _delete_element(text: str, path: Path, *, keeps_brackets: bool) -> str:
    """Delete the element, or all entries with the key, that the path ends at.

    Args:
        keeps_brackets: The last element of `[a]` leaves `[]` behind, which is to be filled again, not nothing.
    """
    hop = path[-1]
    container = container_of(text, path)
    assert container is not None
    selected = _selected(text, container, hop)
    if not selected:
        if is_map(hop.field):
            return text
        raise beyond_end(hop, len(_elements(container, hop.field.name)), appends=False)
    element = selected[-1]
    is_only_list = keeps_brackets and len(container.named(hop.field.name)) == 1
    if element.index_in_list is None or (len(element.field.value.elements) == 1 and not is_only_list):
        text = splice.delete_field(text, element.field)
    else:
        text = splice.delete_element(text, element.field.value, element.index_in_list)
    # A key may come several times; offsets have moved, so look again.
    return _delete_element(text, path, keeps_brackets=keeps_brackets) if len(selected) > 1 else text


def _create(text: str, path: Path, value: JsonValue) -> str:
    """Put in what is absent: the last part of the path, or all from its first part that is absent."""
    message = read_spans(text)
    for depth, hop in enumerate(path):
        found = None if hop.is_whole else find(text, message, hop)
        if found is None:
            others = [field for name in rivals(hop.field) for field in message.named(name)]
            if others:
                # Only one member of a oneof may be set; offsets move, so begin again without the other.
                return _create(splice.delete_field(text, others[-1]), path, value)
            return _insert(text, message, hop, _nested(path[depth + 1 :], value))
        message = _as_message(text, found, hop)
    raise TritonChaosBug(f"{path[-1].shown} is present, yet it was to be created")


def _nested(path: Path, value: JsonValue) -> JsonValue:
    """Wrap a value in the messages that lead to it."""
    for hop in reversed(path):
        if hop.selector is None:
            value = {hop.field.name: value}
        elif is_map(hop.field):
            value = {hop.field.name: {hop.selector: value}}
        elif hop.selector == 0:
            value = {hop.field.name: [value]}
        else:
            raise beyond_end(hop, 0, appends=True)
    return value


def _insert(text: str, message: Value, hop: Hop, value: JsonValue) -> str:
    printed = partial(_printed, newline=splice.line_end_of(text))
    if hop.selector is None:
        return splice.insert_field(text, message, printed(render_field, hop.field, value))
    if is_map(hop.field):
        entries = _selected(text, message, hop)
        if entries:
            # The entry has a key and no value.
            return splice.insert_field(text, entries[-1].value, printed(render_field, hop.value_field, value))
        value = {"key": hop.selector, "value": value}
    fields = message.named(hop.field.name)
    if not fields and is_map(hop.field):
        return splice.insert_field(text, message, printed(render_one, hop.field, value))
    if not fields:
        return splice.insert_field(text, message, printed(render_field, hop.field, [value]))
    if fields[-1].value.kind == "list":
        return splice.append_element(text, fields[-1].value, printed(render_value, hop.field, value))
    return splice.insert_after(text, fields[-1], printed(render_one, hop.field, value))


def _printed(render: Callable[..., str], field: FieldDescriptor, value: JsonValue, *, newline: str) -> splice.Render:
    return lambda indent: render(field, value, indent=indent, newline=newline)
