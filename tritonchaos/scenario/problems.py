"""What is wrong in a file: found, expected, the nearest name, and the place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tritonchaos.errors import ScenarioError
from tritonchaos.observations import JsonValue

# Keys and list indices from the top of the document: ("phases", 0, "each").
YamlPath: TypeAlias = tuple[str | int, ...]

MAX_PROBLEMS: Final = 20
_SHOWN_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, from 1, of a value and of the key (or list dash's content) in front of it."""

    line: int
    column: int
    key_line: int
    key_column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a document.

    Attributes:
        path: Where; the nearest existing ancestor gives line and column.
        hint: What to do, or the nearest name.
        at_key: The key is wrong, not its value.
        line_and_column: Where, if a path cannot say it.
    """

    path: YamlPath
    found: str
    expected: str
    hint: str = ""
    at_key: bool = False
    line_and_column: tuple[int, int] | None = None


def scenario_error(source: str, places: Mapping[YamlPath, Place], problems: Iterable[Problem]) -> ScenarioError:
    """Put all problems of a file into one error, in the order of their lines, each once, at most 20."""
    placed = sorted({(*_position(problem, places), _line(problem)) for problem in problems})
    lines = [f"{source}:{line}:{column}: {text}" for line, column, text in placed[:MAX_PROBLEMS]]
    if len(placed) > MAX_PROBLEMS:
        lines.append(f"{source}: and {len(placed) - MAX_PROBLEMS} more")
    return ScenarioError("\n".join(lines), hint="`tritonchaos schema` prints all that a scenario file may contain")


def _position(problem: Problem, places: Mapping[YamlPath, Place]) -> tuple[int, int]:
    if problem.line_and_column is not None:
        return problem.line_and_column
    for length in range(len(problem.path), -1, -1):
        place = places.get(problem.path[:length])
        if place is None:
            continue
        is_key = length < len(problem.path) or problem.at_key
        return (place.key_line, place.key_column) if is_key else (place.line, place.column)
    return 1, 1


def _line(problem: Problem) -> str:
    return f"{path_text(problem.path) or '(whole file)'}: {told(problem)}"


def told(problem: Problem) -> str:
    """Print a problem without its place."""
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"found {problem.found}, expected {problem.expected}{hint}"


def path_text(path: YamlPath) -> str:
    """Print a path as people write it: phases[0].each[1].load."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[\w-]+", part) else f'"{shortened(part)}"'
            text += f".{name}" if text else name
    return text


def shortened(text: str) -> str:
    """Print at most 80 characters of a text, control characters escaped."""
    printable = text if text.isprintable() else text.encode("unicode_escape").decode()
    return printable if len(printable) <= _SHOWN_CHARACTERS else printable[: _SHOWN_CHARACTERS - 1] + "…"


def shown(value: JsonValue) -> str:
    """Print a value for a message: what it is, or its text."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping with " + shortened(", ".join(map(str, value))) if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    return f"'{shortened(value)}'" if isinstance(value, str) else shortened(str(value))


def nearest(name: str, names: Iterable[str]) -> str:
    """Say which known name is near to a wrong one: "did you mean 'load'?", or ""."""
    near = difflib.get_close_matches(name[:200], list(names), n=2, cutoff=0.6)
    return f"did you mean {' or '.join(repr(match) for match in near)}?" if near else ""


def one_of(names: Iterable[str]) -> str:
    """Print the names that are allowed."""
    listed = list(names)
    return f"one of {', '.join(listed)}" if listed else "none (there are no names to choose from)"
