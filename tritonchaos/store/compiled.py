"""Turns the codec of events into one Python function for each kind of event, which reads twice as fast.

A run may hold millions of events, and what a codec costs is calls: of codecs, of the cursor, for each field of each
record. So the tree of codecs is written out as straight code, as `dataclasses` does for `__init__`. What a codec reads
stays defined by its own `read`; the tests hold the two against each other.
"""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections.abc import Callable
from typing import Any, Final

from tritonchaos.store import codecs, value_codecs
from tritonchaos.store.interning import Interned
from tritonchaos.store.packing import Cursor, unsqueeze

_INDENT: Final = "    "


class EventReader:
    """Reads rows that hold one of several records.

    Args:
        codec: As `codecs.codec_for` makes it for a union of records.
        interned: Texts and bodies that the rows refer to.

    Attributes:
        kinds: The types of the records.
    """

    def __init__(self, codec: codecs.OneOf, interned: Interned) -> None:
        self._by_name = {name: _Source(interned).function(record) for name, record in codec.records.items()}
        self._kind_by_name = {name: getattr(record, "kind", object) for name, record in codec.records.items()}
        self._functions = _Memo(lambda number: self._by_name[interned.text(number)])
        self._kinds = _Memo(lambda number: self._kind_by_name[interned.text(number)])
        self.kinds = frozenset(self._kind_by_name.values())

    def read(self, stored: bytes) -> Any:
        """Read a row."""
        # The mark in front says whether the rest is deflated.
        packed, at = (stored, 1) if stored[0] == 0 else (unsqueeze(stored), 0)
        number = packed[at]
        at += 1
        if number > 0x7F:
            number, at = _more(packed, at, number)
        return self._functions[number](packed, at)

    def kind_of(self, stored: bytes) -> type:
        """Say what a row holds, without unpacking it if it is not deflated."""
        packed, at = (stored, 1) if stored[0] == 0 else (unsqueeze(stored), 0)
        number = packed[at]
        if number > 0x7F:
            number, _ = _more(packed, at + 1, number)
        kind: type = self._kinds[number]
        return kind


def _more(packed: bytes, at: int, number: int) -> tuple[int, int]:
    """Read the rest of a count whose first byte says that there is more."""
    number &= 0x7F
    shift = 7
    while True:
        byte = packed[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


class _Source:
    """Writes the code of one function; `b` is the packed bytes, `i` the place in them, `n` a count just read."""

    def __init__(self, interned: Interned) -> None:
        self._interned = interned
        self._names = (f"v{number}" for number in itertools.count())
        self._lines: list[str] = []
        self._known: dict[str, Any] = {
            "more": _more,
            "body": interned.body,
            "text": interned.text,
            "texts": interned.texts,
            "json_value": _json_reader(interned),
        }

    def function(self, codec: Any) -> Callable[[bytes, int], Any]:
        """Make the function that reads what a codec has written."""
        result = self._value(codec, 1)
        source = "\n".join(["def read(b, i):", *self._lines, f"{_INDENT}return {result}"])
        exec(source, self._known)
        made: Callable[[bytes, int], Any] = self._known["read"]
        return made

    def _line(self, depth: int, *lines: str) -> None:
        self._lines += [_INDENT * depth + line for line in lines]

    def _count(self, depth: int, target: str = "n") -> str:
        self._line(
            depth, f"{target} = b[i]", "i += 1", f"if {target} > 127:", f"{_INDENT}{target}, i = more(b, i, {target})"
        )
        return target

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._known)}"
        self._known[name] = value
        return name

    def _value(self, codec: Any, depth: int) -> str:
        """Write the code that reads a value; return the name that then holds it."""
        target = next(self._names)
        write = getattr(self, f"_{type(codec).__name__}")
        write(codec, target, depth)
        return target

    def _IntegerCodec(self, codec: Any, target: str, depth: int) -> None:  # noqa: N802 - named after the codec
        self._count(depth)
        self._line(depth, f"{target} = -(n + 1 >> 1) if n & 1 else n >> 1")

    def _TruthCodec(self, codec: Any, target: str, depth: int) -> None:  # noqa: N802
        self._count(depth)
        self._line(depth, f"{target} = n != 0")

    def _TextCodec(self, codec: Any, target: str, depth: int) -> None:  # noqa: N802
        self._count(depth)
        self._line(depth, f"{target} = texts.get(n)", f"if {target} is None:", f"{_INDENT}{target} = text(n)")

    def _BodyCodec(self, codec: Any, target: str, depth: int) -> None:  # noqa: N802
        self._count(depth)
        self._line(depth, f"{target} = body(n)")

    def _JsonCodec(self, codec: Any, target: str, depth: int) -> None:  # noqa: N802
        self._line(depth, f"{target}, i = json_value(b, i)")

    def _SeriesCodec(self, codec: Any, target: str, depth: int) -> None:  # noqa: N802
        self._line(depth, f"{target} = []")
        self._series(target, depth)
        self._line(depth, f"{target} = tuple({target})")

    def _series(self, target: str, depth: int) -> None:
        length, number = next(self._names), next(self._names)
        self._count(depth, length)
        self._line(depth, f"{number} = 0", f"for _ in range({length}):")
        self._count(depth + 1)
        self._line(depth + 1, f"{number} += -(n + 1 >> 1) if n & 1 else n >> 1", f"{target}.append({number})")

    def _GappedSeriesCodec(self, codec: Any, target: str, depth: int) -> None:  # noqa: N802
        gaps = next(self._names)
        self._line(depth, f"{gaps} = []", f"{target} = []")
        self._series(gaps, depth)
        self._series(target, depth)
        self._line(depth, f"for n in {gaps}:", f"{_INDENT}{target}.insert(n, None)", f"{target} = tuple({target})")

    def _Member(self, codec: codecs.Member, target: str, depth: int) -> None:  # noqa: N802
        members = self._constant(_Memo(lambda number: codec.kind(self._interned.text(number))))
        self._count(depth)
        self._line(depth, f"{target} = {members}[n]")

    def _Maybe(self, codec: codecs.Maybe, target: str, depth: int) -> None:  # noqa: N802
        self._count(depth)
        self._line(depth, f"{target} = None", "if n:")
        self._line(depth + 1, f"{target} = {self._value(codec.element, depth + 1)}")

    def _Many(self, codec: codecs.Many, target: str, depth: int) -> None:  # noqa: N802
        length = self._count(depth, next(self._names))
        self._line(depth, f"{target} = []", f"for _ in range({length}):")
        self._line(depth + 1, f"{target}.append({self._value(codec.element, depth + 1)})")
        self._line(depth, f"{target} = {self._constant(codec.container)}({target})")

    def _ByName(self, codec: codecs.ByName, target: str, depth: int) -> None:  # noqa: N802
        length, key = self._count(depth, next(self._names)), next(self._names)
        self._line(depth, f"{target} = {{}}", f"for _ in range({length}):")
        self._TextCodec(None, key, depth + 1)
        self._line(depth + 1, f"{target}[{key}] = {self._value(codec.element, depth + 1)}")

    def _OneOf(self, codec: codecs.OneOf, target: str, depth: int) -> None:  # noqa: N802
        kind = next(self._names)
        self._TextCodec(None, kind, depth)
        for number, (name, record) in enumerate(codec.records.items()):
            self._line(depth, f"{'elif' if number else 'if'} {kind} == {name!r}:")
            self._line(depth + 1, f"{target} = {self._value(record, depth + 1)}")
        self._line(depth, "else:", f"{_INDENT}raise KeyError({kind})")

    def _RecordOf(self, codec: codecs.RecordOf, target: str, depth: int) -> None:  # noqa: N802
        fields = [(name, self._value(field, depth)) for name, field in codec.fields]
        # Arguments by place cost less than by name.
        first = [field.name for field in dataclasses.fields(codec.kind)][: len(fields)]
        is_in_order = first == [name for name, _ in fields]
        arguments = ", ".join(value if is_in_order else f"{name}={value}" for name, value in fields)
        self._line(depth, f"{target} = {self._constant(codec.kind)}({arguments})")

    def _Shared(self, codec: codecs.Shared, target: str, depth: int) -> None:  # noqa: N802
        def unpack(number: int) -> Any:
            return codec.read_number(number, self._interned)

        self._count(depth)
        self._line(depth, f"{target} = {self._constant(_Memo(unpack))}[n]")


class _Memo(dict[int, Any]):
    """What the bytes with a number mean, found once."""

    def __init__(self, find: Callable[[int], Any]) -> None:
        self._find = find

    def __missing__(self, number: int) -> Any:
        found = self[number] = self._find(number)
        return found


def _json_reader(interned: Interned) -> Callable[[bytes, int], tuple[Any, int]]:
    """Read a JSON value from a place in the bytes; return it with the place after it."""
    texts, text = interned.texts, interned.text

    def count(b: bytes, i: int) -> tuple[int, int]:
        n = b[i]
        return (n, i + 1) if n < 0x80 else _more(b, i + 1, n)

    def read(b: bytes, i: int) -> tuple[Any, int]:
        tag, i = count(b, i)
        if tag == value_codecs.TEXT:
            n, i = count(b, i)
            return (texts[n] if n in texts else text(n)), i
        if tag == value_codecs.INTEGER:
            n, i = count(b, i)
            return (-(n + 1 >> 1) if n & 1 else n >> 1), i
        if tag == value_codecs.OBJECT:
            return read_object(b, i)
        if tag in value_codecs.CONSTANTS:
            return value_codecs.CONSTANTS[tag], i
        if tag == value_codecs.LIST:
            n, i = count(b, i)
            found = []
            for _ in range(n):
                element, i = read(b, i)
                found.append(element)
            return found, i
        if tag == value_codecs.FLOAT:
            packed = Cursor(b[i : i + 8]).take(8)
            return struct.unpack("<d", packed)[0], i + 8
        raise ValueError(f"found tag {tag}, expected at most {value_codecs.OBJECT}")

    def read_object(b: bytes, i: int) -> tuple[Any, int]:
        length, i = count(b, i)
        found = {}
        for _ in range(length):
            n, i = count(b, i)
            key = texts[n] if n in texts else text(n)
            found[key], i = read(b, i)
        return found, i

    return read
