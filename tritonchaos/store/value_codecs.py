"""Single values to bytes and back: texts, numbers, series, JSON."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, Protocol

from tritonchaos.errors import TritonChaosBug
from tritonchaos.store.interning import Interned, Interner
from tritonchaos.store.packing import Cursor, write_count, write_gapped_series, write_integer, write_series


class Codec(Protocol):
    """Packs the values of one type."""

    def write(self, value: Any, out: bytearray, interner: Interner) -> None: ...

    def read(self, packed: Cursor, interned: Interned) -> Any: ...


def write_text(text: str, out: bytearray, interner: Interner) -> None:
    """Append the number of an interned text."""
    out += interner.packed_text(text)


class TextCodec:
    """A text, interned."""

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        out += interner.packed_text(value)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return interned.text(packed.count())


class BodyCodec:
    """Bytes, interned."""

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        write_count(interner.number(value), out)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return interned.body(packed.count())


class IntegerCodec:
    """An integer of any size."""

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        write_integer(value, out)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return packed.integer()


class TruthCodec:
    """True or False."""

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        write_count(int(value), out)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return bool(packed.count())


class SeriesCodec:
    """A tuple of integers that lie close to each other, shape [numbers]."""

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        write_series(value, out)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return tuple(packed.series())


class GappedSeriesCodec:
    """The same with None where a number is missing."""

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        write_gapped_series(value, out)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        return tuple(packed.gapped_series())


NULL, FALSE, TRUE, INTEGER, FLOAT, TEXT, LIST, OBJECT = range(8)


class JsonCodec:
    """Any JSON value; a tuple comes back as a list. Integers stay integers, floats keep every bit."""

    def write(self, value: Any, out: bytearray, interner: Interner) -> None:
        if value is None or isinstance(value, bool):
            out.append(NULL if value is None else TRUE if value else FALSE)
        elif isinstance(value, int):
            out.append(INTEGER)
            write_integer(value, out)
        elif isinstance(value, float):
            out.append(FLOAT)
            out += struct.pack("<d", value)
        elif isinstance(value, str):
            out.append(TEXT)
            write_text(value, out, interner)
        elif isinstance(value, list | tuple):
            out.append(LIST)
            write_count(len(value), out)
            for element in value:
                self.write(element, out, interner)
        else:
            self._write_object(value, out, interner)

    def _write_object(self, value: Any, out: bytearray, interner: Interner) -> None:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise TritonChaosBug(
                f"found a {type(value).__name__} to be stored, expected what JSON can carry: {value!r}"
            )
        out.append(OBJECT)
        write_count(len(value), out)
        for key, element in value.items():
            write_text(key, out, interner)
            self.write(element, out, interner)

    def read(self, packed: Cursor, interned: Interned) -> Any:
        tag = packed.count()
        if tag in CONSTANTS:
            return CONSTANTS[tag]
        if tag == INTEGER:
            return packed.integer()
        if tag == FLOAT:
            return struct.unpack("<d", packed.take(8))[0]
        if tag == TEXT:
            return interned.text(packed.count())
        if tag == LIST:
            return [self.read(packed, interned) for _ in range(packed.count())]
        if tag == OBJECT:
            return {interned.text(packed.count()): self.read(packed, interned) for _ in range(packed.count())}
        raise ValueError(f"found tag {tag}, expected at most {OBJECT}")


CONSTANTS: Final = {NULL: None, FALSE: False, TRUE: True}
