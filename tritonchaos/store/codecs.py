"""Records to bytes and back, by their type annotations, so that a new field or event needs no code here.

The names of all records and fields are written once per store (`layout_of`) and readers go by them: a field that was
added later takes its default when an older store is read, and a field that this version does not know says that a newer
tritonchaos wrote the store.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from tritonchaos.errors import StoreError, TritonChaosBug
from tritonchaos.store.interning import Interned, Interner
from tritonchaos.store.packing import Cursor, write_count
from tritonchaos.store.value_codecs import (
    BodyCodec,
    Codec,
    GappedSeriesCodec,
    IntegerCodec,
    JsonCodec,
    SeriesCodec,
    TextCodec,
    TruthCodec,
    write_text,
)

# Record name -> names of its fields, in the order in which they are packed.
Layout: TypeAlias = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an enumeration, by its value."""

    kind: type[Enum]

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        write_text(self.kind(value).value, out, interner)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return self.kind(interned.text(packed.count()))


@dataclass(frozen=True, slots=True)
class Many:
    """A tuple or a set of one type of element, shape [elements]."""

    container: Callable[[Any], Any]
    element: Codec

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        elements = sorted(value) if self.container is frozenset else value
        write_count(len(elements), out)
        for element in elements:
            self.element.write(element, out, interner)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return self.container([self.element.read(packed, interned) for _ in range(packed.count())])


@dataclass(frozen=True, slots=True)
class ByName:
    """A mapping from texts to one type of value; keeps its order."""

    element: Codec

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        write_count(len(value), out)
        for key, element in value.items():
            write_text(key, out, interner)
            self.element.write(element, out, interner)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return {interned.text(packed.count()): self.element.read(packed, interned) for _ in range(packed.count())}


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value or None."""

    element: Codec

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        out.append(0 if value is None else 1)
        if value is not None:
            self.element.write(value, out, interner)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return self.element.read(packed, interned) if packed.count() else None


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several records, told apart by name."""

    records: Mapping[str, Codec]

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        name = type(value).__name__
        if name not in self.records:
            raise TritonChaosBug(f"found a {name} to be stored, expected one of {', '.join(self.records)}")
        write_text(name, out, interner)
        self.records[name].write(value, out, interner)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return self.records[interned.text(packed.count())].read(packed, interned)


@dataclass(frozen=True, slots=True)
class RecordOf:
    """A record, field by field."""

    kind: Any
    fields: tuple[tuple[str, Codec], ...]

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        for name, codec in self.fields:
            codec.write(getattr(value, name), out, interner)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return self.kind(**{name: codec.read(packed, interned) for name, codec in self.fields})


@dataclass(frozen=True, slots=True)
class Shared:
    """A record that repeats word for word from cycle to cycle and is interned whole."""

    record: Codec

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        write_count(interner.number_of(value, lambda: self._pack(value, interner)), out)

    def _pack(self, value: Any, interner: Interner) -> bytes:
        packed = bytearray()
        self.record.write(value, packed, interner)
        return bytes(packed)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return self.read_number(packed.count(), interned)

    def read_number(self, number: int, interned: Interned) -> Any:
        """Return the record that is interned under a number; it is made once."""
        return interned.record(number, self, lambda body: self.record.read(Cursor(body), interned))


_SIMPLE: Final[Mapping[Any, Codec]] = {
    Any: JsonCodec(),
    str: TextCodec(),
    bytes: BodyCodec(),
    bool: TruthCodec(),
    int: IntegerCodec(),
    # A field of type float may hold an integer, and must then give it back as one.
    float: JsonCodec(),
    tuple[int, ...]: SeriesCodec(),
    tuple[int | None, ...]: GappedSeriesCodec(),
}


def codec_for(kind: Any, layout: Layout, shared: frozenset[type] = frozenset()) -> Codec:
    """Make the codec of a type.

    Args:
        kind: A type annotation, evaluated: a record, a union of records, a tuple, a mapping with text keys, ...
        layout: As the store has it.
        shared: Records to be interned whole.

    Raises:
        StoreError: The layout has a record field that this version does not know.
        TritonChaosBug: Values of such a type cannot be stored.
    """
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Member(kind)
    if is_dataclass(kind):
        record = _record_codec(kind, layout, shared)
        return Shared(record) if kind in shared else record
    return _container_codec(kind, layout, shared)


def _record_codec(kind: Any, layout: Layout, shared: frozenset[type]) -> RecordOf:
    hints = get_type_hints(kind)
    names = layout.get(kind.__name__, ())
    for name in names:
        if name not in hints:
            raise StoreError(
                f"written by a newer tritonchaos; found {kind.__name__}.{name}, which this one does not know",
                hint="read it with the version that wrote it, or a later one",
            )
    return RecordOf(kind, tuple((name, codec_for(hints[name], layout, shared)) for name in names))


def _container_codec(kind: Any, layout: Layout, shared: frozenset[type]) -> Codec:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        alternatives = [a for a in arguments if a is not type(None)]
        if len(alternatives) == 1:
            return Maybe(codec_for(alternatives[0], layout, shared))
        one_of = OneOf({a.__name__: codec_for(a, layout, shared) for a in alternatives})
        return one_of if len(alternatives) == len(arguments) else Maybe(one_of)
    if origin is tuple and arguments[1:] == (...,):
        return Many(tuple, codec_for(arguments[0], layout, shared))
    if origin is frozenset:
        return Many(frozenset, codec_for(arguments[0], layout, shared))
    if isinstance(origin, type) and issubclass(origin, Mapping) and arguments[0] is str:
        return ByName(codec_for(arguments[1], layout, shared))
    raise TritonChaosBug(f"values of type {kind} cannot be stored")


def layout_of(kind: Any) -> dict[str, tuple[str, ...]]:
    """Collect the names of every record that a type can hold, and of its fields."""
    found: dict[str, tuple[str, ...]] = {}
    if is_dataclass(kind) and isinstance(kind, type):
        found[kind.__name__] = tuple(f.name for f in fields(kind))
        for part in get_type_hints(kind).values():
            found |= layout_of(part)
    for part in get_args(kind):
        found |= layout_of(part)
    return found
