"""Where each field of a text in protobuf text format begins and ends, known to ModelConfig or not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tritonchaos.errors import ConfigTextError

# Source: protobuf.dev, "Text Format Language Specification": comments run from `#` to the end of the line, strings take
# either quote and do not span lines, `{}` and `<>` both enclose messages.
_TOKEN: Final = re.compile(
    r"""(?P<skip>[ \t\r\n\f\v]+|\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>\.?[0-9](?:[eE][+-]|[A-Za-z0-9_.])*)
      | (?P<mark>[-:{}<>\[\],;/.%])""",
    re.VERBOSE,
)
_CLOSING: Final = {"{": "}", "<": ">", "[": "]"}
# Deeper than any ModelConfig, and well below Python's own limit.
_DEEPEST: Final = 60


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text that is neither blank nor comment.

    Attributes:
        kind: "string", "name", "number", "mark" or "end".
        start, end: Offsets into the text.
    """

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a field, or an element of a list.

    Attributes:
        kind: "scalar", "message" or "list".
        start, end: Offsets, brackets included.
        inner_start, inner_end: Offsets between the brackets.
        fields: Of a message, in order.
        elements: Of a list, in order.
        commas: Offsets of the commas between the elements, shape [elements - 1].
    """

    kind: str
    start: int
    end: int
    inner_start: int
    inner_end: int
    fields: tuple[Field, ...] = ()
    elements: tuple[Value, ...] = ()
    commas: tuple[int, ...] = ()

    def named(self, name: str) -> list[Field]:
        """Occurrences of a field in this message, in order."""
        return [field for field in self.fields if field.name == name]


@dataclass(frozen=True, slots=True)
class Field:
    """One occurrence of a field.

    Attributes:
        end: Where the value ends.
        stop: Where the field ends: after its `,` or `;` if it has one, else `end`.
    """

    name: str
    start: int
    end: int
    stop: int
    value: Value


def tokens(text: str) -> Iterator[Token]:
    """Cut a text into tokens, an "end" token last.

    Raises:
        ConfigTextError: A character that text format does not know, or a string without its closing quote.
    """
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            what = "a string without its closing quote" if text[position] in "\"'" else repr(text[position])
            raise unexpected(text, position, what, "text format")
        kind = match.lastgroup or ""
        if kind != "skip":
            yield Token(kind, match[0], position, match.end())
        position = match.end()
    yield Token("end", "", position, position)


def read_spans(text: str) -> Value:
    """Read a whole text as the fields of one message.

    Raises:
        ConfigTextError: Not text format, with line, column, what was found and what was expected.
    """
    return _Reader(text).document()


def unexpected(text: str, offset: int, found: str, expected: str) -> ConfigTextError:
    """The error for something that does not belong at an offset of the text."""
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    return ConfigTextError(f"config.pbtxt line {line}, column {column}: found {found}, expected {expected}")


class _Reader:
    """Reads tokens from left to right; `ahead` is the next one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._ahead = next(self._tokens)
        self._depth = 0

    def document(self) -> Value:
        fields = self._fields(closing="")
        return Value("message", 0, len(self._text), 0, len(self._text), fields=fields)

    def _take(self) -> Token:
        token = self._ahead
        if token.kind != "end":
            self._ahead = next(self._tokens)
        return token

    def _is(self, mark: str) -> bool:
        return self._ahead.kind == "mark" and self._ahead.text == mark

    def _refuse(self, expected: str) -> ConfigTextError:
        found = "the end of the file" if self._ahead.kind == "end" else repr(self._ahead.text)
        return unexpected(self._text, self._ahead.start, found, expected)

    def _fields(self, closing: str) -> tuple[Field, ...]:
        fields = []
        while not (self._is(closing) if closing else self._ahead.kind == "end"):
            fields.append(self._field(closing))
        return tuple(fields)

    def _field(self, closing: str) -> Field:
        start = self._ahead.start
        name = self._name(closing)
        has_colon = self._is(":")
        if has_colon:
            self._take()
        elif not (self._is("{") or self._is("<") or self._is("[")):
            raise self._refuse(f"':' or a message after the field name {name}")
        value = self._value()
        stop = self._take().end if self._is(",") or self._is(";") else value.end
        return Field(name, start, value.end, stop, value)

    def _name(self, closing: str) -> str:
        if self._ahead.kind in ("name", "number"):
            return self._take().text
        if not self._is("["):
            raise self._refuse(f"a field name or {closing!r}" if closing else "a field name")
        # An extension or Any, `[type.url/name]`: unknown to ModelConfig, so only its extent matters.
        parts = [self._take().text]
        while not self._is("]"):
            if self._ahead.kind not in ("name", "number") and self._ahead.text not in ("-", ".", "/", "%"):
                raise self._refuse("']'")
            parts.append(self._take().text)
        return "".join([*parts, self._take().text])

    def _value(self) -> Value:
        if self._is("{") or self._is("<"):
            return self._message()
        return self._list() if self._is("[") else self._scalar()

    def _message(self) -> Value:
        opening = self._open()
        fields = self._fields(_CLOSING[opening.text])
        closing = self._close()
        return Value("message", opening.start, closing.end, opening.end, closing.start, fields=fields)

    def _list(self) -> Value:
        opening = self._open()
        elements: list[Value] = []
        commas: list[int] = []
        while not self._is("]"):
            if elements:
                if not self._is(","):
                    raise self._refuse("',' or ']'")
                commas.append(self._take().start)
            elements.append(self._value())
        closing = self._close()
        return Value(
            "list",
            opening.start,
            closing.end,
            opening.end,
            closing.start,
            elements=tuple(elements),
            commas=tuple(commas),
        )

    def _open(self) -> Token:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refuse(f"at most {_DEEPEST} levels of brackets")
        return self._take()

    def _close(self) -> Token:
        self._depth -= 1
        return self._take()

    def _scalar(self) -> Value:
        start = self._ahead.start
        if self._is("-"):
            self._take()
        elif self._ahead.kind == "string":
            return self._string()
        if self._ahead.kind not in ("name", "number"):
            raise self._refuse("a value")
        end = self._take().end
        return Value("scalar", start, end, start, end)

    def _string(self) -> Value:
        start = end = self._ahead.start
        # Strings that follow each other are one value.
        while self._ahead.kind == "string":
            end = self._take().end
        return Value("scalar", start, end, start, end)
