"""Single cuts and insertions in a text in protobuf text format; every other byte stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tritonchaos.pbtxt.spans import Field, Value

# Given the indentation of the line it goes into, print what is to be inserted.
Render = Callable[[str], str]

_JOINABLE: Final = frozenset("\"'_.+-")


def line_end_of(text: str) -> str:
    """The line end that the text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def replace(text: str, start: int, end: int, new: str) -> str:
    """Put other text between two offsets."""
    return text[:start] + new + text[end:]


def insert_field(text: str, message: Value, render: Render) -> str:
    """Add a field at the end of a message: a line of its own where the message has lines, else within the line."""
    newline = line_end_of(text)
    if message.end == message.inner_end:
        return text + ("" if text.endswith("\n") or not text else newline) + _last_line(render, text, newline)
    closing_indent = _indent_before(text, message.inner_end)
    if closing_indent is not None:
        indent = _indent_of_fields(text, message)
        indent = closing_indent + "  " if indent is None else indent
        at = message.inner_end - len(closing_indent)
        return replace(text, at, at, f"{indent}{render(indent)}{newline}")
    indent = _indent_of_line(text, message.start)
    if message.fields:
        at = message.fields[-1].stop
        return replace(text, at, at, f" {render(indent)}")
    # "{}" becomes "{a: 1}" and "{ }" becomes "{ a: 1 }", so that deleting the field gives back what was.
    blank = " " if message.inner_end > message.inner_start else ""
    return replace(text, message.inner_start, message.inner_start, blank + render(indent))


def insert_after(text: str, field: Field, render: Render) -> str:
    """Add another occurrence of a repeated field behind one that is there."""
    indent = _indent_before(text, field.start)
    if indent is None or _rest_of_line(text, field.stop).strip():
        return replace(text, field.stop, field.stop, f" {render(_indent_of_line(text, field.start))}")
    return replace(text, field.stop, field.stop, f"{line_end_of(text)}{indent}{render(indent)}")


def append_element(text: str, values: Value, render: Render) -> str:
    """Add an element at the end of a list `[a, b]`, with the separator that is in use there."""
    if not values.elements:
        return _first_element(text, values, render)
    last = values.elements[-1]
    indent = _indent_before(text, last.start)
    separator = ", " if indent is None else f",{line_end_of(text)}{indent}"
    if len(values.elements) > 1:
        between = text[values.elements[-2].end : last.start]
        separator = between if not between.replace(",", "", 1).strip() else separator
    return replace(text, last.end, last.end, separator + render(_indent_of_line(text, last.start)))


def delete_element(text: str, values: Value, index: int) -> str:
    """Take an element out of a list, with one comma; comments stay."""
    element = values.elements[index]
    if not values.commas:
        return replace(text, element.start, element.end, "")
    if index < len(values.commas):
        comma_end, following = values.commas[index] + 1, values.elements[index + 1]
        end = following.start if not text[comma_end : following.start].strip() else comma_end
        return _cut(text, element.start, element.end, values.commas[index], end)
    comma, previous = values.commas[index - 1], values.elements[index - 1]
    start = previous.end if not text[previous.end : comma].strip() else comma
    return _cut(text, start, comma + 1, element.start, element.end)


def delete_field(text: str, field: Field) -> str:
    """Take a field out: with its lines where it has them for itself, else with the blanks around it."""
    line_start = text.rfind("\n", 0, field.start) + 1
    before = text[line_start : field.start]
    after = _rest_of_line(text, field.stop)
    if not before.strip() and not after.strip():
        return _delete_lines(text, line_start, field.stop + len(after))
    start, stop = field.start, field.stop
    if before.strip():
        start -= len(before) - len(before.rstrip(" \t"))
    else:
        stop += len(after) - len(after.lstrip(" \t"))
    glue = " " if _would_join(text[start - 1 : start], text[stop : stop + 1]) else ""
    return replace(text, start, stop, glue)


def _last_line(render: Render, text: str, newline: str) -> str:
    ends_open = bool(text) and not text.endswith("\n")
    return render("") + ("" if ends_open else newline)


def _first_element(text: str, values: Value, render: Render) -> str:
    inner = text[values.inner_start : values.inner_end]
    at = values.inner_start + len(inner) // 2 if not inner.strip(" ") else values.inner_end
    return replace(text, at, at, render(_indent_of_line(text, values.start)))


def _cut(text: str, start: int, middle_start: int, middle_end: int, end: int) -> str:
    """Cut two pieces, and what lies between them too if it is blank."""
    kept = text[middle_start:middle_end]
    return text[:start] + (kept if kept.strip() else "") + text[end:]


def _delete_lines(text: str, start: int, line_end: int) -> str:
    if line_end < len(text):
        return replace(text, start, line_end + 1, "")
    # The last line, without a line end: the one before it goes instead.
    return text[:start].removesuffix("\n").removesuffix("\r")


def _rest_of_line(text: str, offset: int) -> str:
    end = text.find("\n", offset)
    return text[offset:] if end < 0 else text[offset:end]


def _indent_before(text: str, offset: int) -> str | None:
    """What stands before an offset in its line, if it is blank."""
    before = text[text.rfind("\n", 0, offset) + 1 : offset]
    return None if before.strip() else before


def _indent_of_line(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_of_fields(text: str, message: Value) -> str | None:
    indents = (_indent_before(text, field.start) for field in reversed(message.fields))
    return next((indent for indent in indents if indent is not None), None)


def _would_join(left: str, right: str) -> bool:
    return all(end.isalnum() or end in _JOINABLE for end in (left, right) if end) and bool(left and right)
