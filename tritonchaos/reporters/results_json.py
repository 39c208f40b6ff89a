"""Writes results.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from tritonchaos.observations import JsonValue
from tritonchaos.plugins import REPORTERS
from tritonchaos.summary import FinishedRun

_INDENT: Final = 2
_AT_ONCE: Final = 10_000  # numbers


def dump(results: Mapping[str, JsonValue]) -> str:
    """Print the results document; `run --json` prints the same."""
    # A lone surrogate (an undecodable file name in a log) cannot be written as UTF-8.
    return "".join(pieces(results)).encode("utf-8", "replace").decode() + "\n"


def pieces(value: JsonValue, depth: int = 0) -> Iterator[str]:
    """Print a JSON value as `json.dumps` does with an indent of 2, piece by piece.

    A run of a million cycles has as many numbers in a list; with an indent `json` makes a text of each of them.
    """
    if isinstance(value, Mapping) and value:
        for number, (key, element) in enumerate(value.items()):
            yield f"{',' if number else '{'}{_line(depth + 1)}{_plain(key)}: "
            yield from pieces(element, depth + 1)
        yield f"{_line(depth)}}}"
    elif isinstance(value, list | tuple) and value:
        yield f"[{_line(depth + 1)}"
        yield from _elements(value, depth + 1)
        yield f"{_line(depth)}]"
    else:
        yield _plain(value)


def _elements(values: Sequence[JsonValue], depth: int) -> Iterator[str]:
    between = f",{_line(depth)}"
    if set(map(type, values)) <= {int, type(None)}:
        for start in range(0, len(values), _AT_ONCE):
            yield between if start else ""
            yield json.dumps(values[start : start + _AT_ONCE], separators=(between, ": "))[1:-1]
        return
    for number, element in enumerate(values):
        if number:
            yield between
        yield from pieces(element, depth)


def _line(depth: int) -> str:
    return "\n" + " " * (_INDENT * depth)


def _plain(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class ResultsJson:
    """results.json: everything that was found, for programs."""

    name: ClassVar[str] = "results_json"

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        path = out / "results.json"
        beside = out / ".results.json.part"  # a program that reads it never meets half of it, also after a kill
        try:
            with beside.open("w", encoding="utf-8", errors="replace") as file:
                file.writelines(pieces(run.results))
                file.write("\n")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        return [path]
