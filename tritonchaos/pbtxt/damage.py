"""Break a config.pbtxt on purpose, in the ways that hands and scripts break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from tritonchaos.errors import ConfigTextError
from tritonchaos.pbtxt.model_config import (
    integer_range,
    is_enum,
    is_message,
    is_repeated,
    model_config_descriptor,
    nearest,
)
from tritonchaos.pbtxt.spans import Field, Value, read_spans, tokens
from tritonchaos.pbtxt.splice import replace

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

Place = TypeVar("Place")

UNKNOWN_FIELD: Final = "tritonchaos_unknown_field"
UNKNOWN_ENUM: Final = "TYPE_TRITONCHAOS_UNKNOWN"
_BAD_NUMBERS: Final = ("12abc", "1.2.3", "0xZZ", "99999999999999999999999999", "1e400000")


def damage(text: str, kind: str, random: Random) -> str:
    """Damage a config.pbtxt so that it is no ModelConfig any more; the same `random` always damages alike.

    Args:
        text: A valid ModelConfig in text format.
        kind: "drop_brace" (one bracket is missing), "unknown_field" (one field more, of a name nobody knows),
            "unknown_enum" (an enum name nobody knows), "truncate" (the end is missing), "bad_number" (an integer that
            is none or far out of range) or "duplicate_field" (a field that may come once comes twice).
        random: Chooses the place.

    Raises:
        ConfigTextError: An unknown kind, or a text that has no place for it.
    """
    if kind not in DAMAGES:
        raise ConfigTextError(f"found damage {kind!r}; {nearest(kind, list(DAMAGES))}")
    return DAMAGES[kind](text, random)


def _drop_brace(text: str, random: Random) -> str:
    braces = [token for token in tokens(text) if token.kind == "mark" and token.text in "{}[]<>"]
    brace = _chosen(braces, random, "a bracket")
    return replace(text, brace.start, brace.end, "")


def _unknown_field(text: str, random: Random) -> str:
    places = [field.start for field, _ in _known_fields(text)] or [len(text)]
    at = random.choice(places)
    return replace(text, at, at, f"{UNKNOWN_FIELD}: 1 ")


def _unknown_enum(text: str, random: Random) -> str:
    values = [value for value, descriptor in _scalars(text) if is_enum(descriptor)]
    value = _chosen(values, random, "an enum value")
    return replace(text, value.start, value.end, UNKNOWN_ENUM)


def _truncate(text: str, random: Random) -> str:
    # A cut between two fields could leave a valid config, so cut where something must follow.
    all_tokens = list(tokens(text))
    cuts = [token.end for token in all_tokens if token.kind == "mark" and token.text in ":{[<"]
    cuts += [token.start + 1 for token in all_tokens if token.kind == "string"]
    return text[: _chosen(cuts, random, "a value")]


def _bad_number(text: str, random: Random) -> str:
    values = [value for value, descriptor in _scalars(text) if integer_range(descriptor) is not None]
    value = _chosen(values, random, "an integer")
    return replace(text, value.start, value.end, random.choice(_BAD_NUMBERS))


def _duplicate_field(text: str, random: Random) -> str:
    single = [field for field, descriptor in _known_fields(text) if not is_repeated(descriptor)]
    field = _chosen(single, random, "a field that may come only once")
    return replace(text, field.stop, field.stop, f" {text[field.start : field.end]}")


DAMAGES: Final[dict[str, Callable[[str, Random], str]]] = {
    "drop_brace": _drop_brace,
    "unknown_field": _unknown_field,
    "unknown_enum": _unknown_enum,
    "truncate": _truncate,
    "bad_number": _bad_number,
    "duplicate_field": _duplicate_field,
}


def _chosen(places: Sequence[Place], random: Random, what: str) -> Place:
    if not places:
        raise ConfigTextError(f"this config.pbtxt has no place for this damage: it lacks {what}")
    return random.choice(places)


def _known_fields(text: str) -> list[tuple[Field, FieldDescriptor]]:
    return list(_walk(read_spans(text), model_config_descriptor()))


def _walk(message: Value, descriptor: Descriptor) -> Iterator[tuple[Field, FieldDescriptor]]:
    for field in message.fields:
        known = descriptor.fields_by_name.get(field.name)
        if known is None:
            continue
        yield field, known
        if is_message(known):
            assert known.message_type is not None
            for value in field.value.elements or (field.value,):
                yield from _walk(value, known.message_type)


def _scalars(text: str) -> Iterator[tuple[Value, FieldDescriptor]]:
    for field, descriptor in _known_fields(text):
        if not is_message(descriptor):
            for value in field.value.elements or (field.value,):
                yield value, descriptor
