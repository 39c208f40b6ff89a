"""Series in JSON lines: one object per line with `id`, `values`, and what else is known of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tritonchaos.errors import UsageError
from tritonchaos.post_unload import Channel
from tritonchaos.series.guessing import find_channel
from tritonchaos.series.records import Expected, Series, SeriesFlaw, shown, stopped_by, whole

# A line longer than this has its values read piece by piece: as Python numbers they would take six times its size.
_LONG_LINE: Final = 4_000_000  # characters
_PIECE: Final = 65_536
_VALUES: Final = re.compile(r'"values"\s*:\s*\[')


def read(numbered: Iterator[tuple[int, str]], name: str, expected: Expected) -> Iterator[Series]:
    """Yield one series per line. A line that is wrong is a series of its own, whose values say what is wrong.

    Raises:
        UsageError: The first line is no JSON object: it is no such file.
    """
    if expected.column is not None:
        raise UsageError(f"{name} holds JSON lines, which have no columns", hint="leave --column away")
    is_first = True
    for number, line in numbered:
        if not line.strip():
            continue
        series = _series(line, f"line {number}", expected)
        if isinstance(series, str):
            if is_first:
                raise UsageError(f"{name}: {series}", hint='each line is an object such as {"id": "a", "values": [1]}')
            series = Series(f"line {number}", stopped_by(SeriesFlaw(series)))
        is_first = False
        yield series


def _series(line: str, where: str, expected: Expected) -> Series | str:
    """Return the series of a line, or why it holds none."""
    span = _values_span(line) if len(line) > _LONG_LINE else None
    try:
        fields = json.loads(line if span is None else f"{line[: span[0]]}{line[span[1] :]}")
    except (ValueError, RecursionError) as error:
        return f"{where}: {error if isinstance(error, ValueError) else 'nested too deeply'}, expected a JSON object"
    if not isinstance(fields, dict):
        return f"{where}: found {shown(fields)}, expected a JSON object"
    name = where if fields.get("id") is None else fields["id"]
    try:
        values = _values(fields, where) if span is None else _long_values(line, span, fields.get("arms"), where)
        return _complete(str(name), values, fields, expected, where)
    except SeriesFlaw as flaw:
        return Series(str(name), stopped_by(flaw))


def _complete(name: str, values: Iterator[int], fields: dict[str, Any], expected: Expected, where: str) -> Series:
    channel, quantum = fields.get("channel"), fields.get("quantum")
    if channel is not None and channel not in {known.value for known in Channel}:
        raise SeriesFlaw(f"{where}, channel: found {shown(channel)}, expected device, host or count")
    quantum = None if quantum is None else whole(quantum, f"{where}, quantum")
    if quantum == 0:
        raise SeriesFlaw(f"{where}, quantum: found {shown(quantum)}, expected at least 1 byte")
    arms = fields.get("arms") or ""
    footprint = whole(fields.get("footprint") or 0, f"{where}, footprint")
    known = None if channel is None else Channel(channel)
    values, channel = find_channel(values, name, expected, known)
    return Series(name, values, arms, channel, expected.quantum or quantum, footprint)


def _values(fields: dict[str, Any], where: str) -> Iterator[int]:
    values, arms = fields.get("values"), fields.get("arms")
    if not isinstance(values, list):
        raise SeriesFlaw(f"{where}, values: found {shown(values)}, expected a list of numbers of bytes")
    _check_arms(arms, where)
    if arms and len(arms) != len(values):
        raise SeriesFlaw(_unlike(len(arms), len(values), where))
    return (whole(value, f"{where}, value {number}") for number, value in enumerate(values, start=1))


def _check_arms(arms: object, where: str) -> None:
    if arms is not None and not isinstance(arms, str):
        raise SeriesFlaw(f"{where}, arms: found {shown(arms)}, expected one letter per value, C or T")
    for number, letter in enumerate(arms or "", start=1):
        if letter not in "CT":
            raise SeriesFlaw(
                f"{where}, arms: letter {number} is {shown(letter)}, expected C (control) or T (treatment)"
            )


def _unlike(arms: int, values: int, where: str) -> str:
    return f"{where}: found {arms} arms for {values} values, expected one letter for each value"


# --- long lines ----------------------------------------------------------------------------------


def _values_span(line: str) -> tuple[int, int] | None:
    """Return where the numbers within the brackets of `values` begin and end."""
    match = _VALUES.search(line)
    if match is None:
        return None
    end = line.find("]", match.end())
    return (match.end(), end) if end >= 0 and line.find("[", match.end(), end) < 0 else None


def _long_values(line: str, span: tuple[int, int], arms: object, where: str) -> Iterator[int]:
    _check_arms(arms, where)
    number = 0
    for piece in _pieces(line, *span):
        for value in _numbers(piece, f"{where}, near value {number + 1}"):
            number += 1
            yield whole(value, f"{where}, value {number}")
    if isinstance(arms, str) and arms and len(arms) != number:
        raise SeriesFlaw(_unlike(len(arms), number, where))


def _pieces(line: str, begin: int, end: int) -> Iterator[str]:
    while begin < end:
        comma = line.find(",", min(begin + _PIECE, end), end)
        stop = end if comma < 0 else comma
        yield line[begin:stop]
        begin = stop + 1


def _numbers(piece: str, where: str) -> list[Any]:
    try:
        numbers: list[Any] = json.loads(f"[{piece}]")
    except ValueError as error:
        raise SeriesFlaw(f"{where}: {error}") from None
    return numbers
