"""Field paths such as `output[0].data_type` and `parameters["KEY"].string_value`, checked against ModelConfig."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tritonchaos.errors import ConfigTextError
from tritonchaos.pbtxt.model_config import (
    field_named,
    integer_range,
    is_map,
    is_message,
    is_repeated,
    map_fields,
    model_config_descriptor,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

_PART: Final = re.compile(
    r"""([A-Za-z_][A-Za-z0-9_]*)            # field name
        (?:\[\s*(?:(\d+)                    # index, or key of a map with integer keys
               |"((?:[^"\\]|\\.)*)"         # key of a map
               |'((?:[^'\\]|\\.)*)')\s*\])?
        (\.(?!\Z)|\Z)""",
    re.VERBOSE,
)
_HINT: Final = 'a path looks like max_batch_size, output[0].data_type or parameters["KEY"].string_value'


@dataclass(frozen=True, slots=True)
class Hop:
    """One part of a field path, resolved.

    Attributes:
        field: The field that is named.
        selector: Index into a repeated field, key of a map, or None for the whole field.
        shown: The path up to and including this part, for messages.
    """

    field: FieldDescriptor
    selector: int | str | None
    shown: str

    @property
    def value_field(self) -> FieldDescriptor:
        """The field that gives the type of the selected value: the value field of a map's entry, else `field`."""
        return map_fields(self.field)[1] if is_map(self.field) and self.selector is not None else self.field

    @property
    def is_whole(self) -> bool:
        """It names a whole repeated field or a whole map."""
        return self.selector is None and is_repeated(self.field)

    def to(self, name: str) -> Hop:
        """Go on to a field of the selected message."""
        descriptor = self.value_field.message_type
        assert descriptor is not None
        return Hop(descriptor.fields_by_name[name], None, f"{self.shown}.{name}")

    def at(self, selector: int | str) -> Hop:
        """Select one element or entry of the whole field."""
        shown = selector if isinstance(selector, int) else f'"{selector}"'
        return Hop(self.field, selector, f"{self.shown}[{shown}]")


def resolve(path: str) -> tuple[Hop, ...]:
    """Read a field path and look each part up in ModelConfig.

    Raises:
        ConfigTextError: Not a path, a field that does not exist (with the nearest names), an index where the field
            is not repeated, or a part that is no message although the path goes on.
    """
    descriptor: Descriptor | None = model_config_descriptor()
    hops: list[Hop] = []
    position = 0
    while position < len(path) or not hops:
        match = _PART.match(path, position)
        if match is None:
            raise ConfigTextError(f"{path}: cannot be read as a field path from {path[position:]!r} on", hint=_HINT)
        hop = _hop(path, path[: match.start(5)], match, _descend(path, hops, descriptor))
        hops.append(hop)
        descriptor = hop.value_field.message_type
        position = match.end()
    return tuple(hops)


def _descend(path: str, hops: list[Hop], descriptor: Descriptor | None) -> Descriptor:
    if not hops:
        assert descriptor is not None
        return descriptor
    last = hops[-1]
    if last.is_whole:
        example = '["KEY"]' if is_map(last.field) else "[0]"
        raise ConfigTextError(
            f"{path}: {last.shown} is a {'map' if is_map(last.field) else 'list'}, expected one of its entries "
            f"before the next field name",
            hint=f"write {last.shown}{example}{path[len(last.shown) :]}",
        )
    if descriptor is None or not is_message(last.value_field):
        raise ConfigTextError(f"{path}: {last.shown} is a single value and has no fields", hint=_HINT)
    return descriptor


def _hop(path: str, shown: str, match: re.Match[str], descriptor: Descriptor) -> Hop:
    field = field_named(descriptor, match[1], path)
    quoted = match[3] if match[3] is not None else match[4]
    if quoted is None and match[2] is None:
        return Hop(field, None, shown)
    if is_map(field):
        return Hop(field, _map_key(field, quoted, match[2], path), shown)
    if not is_repeated(field):
        raise ConfigTextError(f"{path}: {match[1]} is not repeated, so it takes no [index]", hint=_HINT)
    if quoted is not None:
        raise ConfigTextError(f"{path}: {match[1]} is a list, found key {quoted!r}, expected an index", hint=_HINT)
    return Hop(field, int(match[2]), shown)


def _map_key(field: FieldDescriptor, quoted: str | None, number: str | None, path: str) -> int | str:
    key_field = map_fields(field)[0]
    text = number if number is not None else re.sub(r"\\(.)", r"\1", quoted or "")
    limits = integer_range(key_field)
    if limits is None:
        if number is not None:
            raise ConfigTextError(
                f"{path}: {field.name} is a map, found index {number}, expected a key in quotes",
                hint=f'write {field.name}["{number}"]',
            )
        return text
    if not re.fullmatch(r"\d+", text) or not limits[0] <= int(text) <= limits[1]:
        raise ConfigTextError(f"{path}: found key {text!r}, expected an integer from {limits[0]} to {limits[1]}")
    return int(text)
