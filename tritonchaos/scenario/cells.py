"""The cells of `vary`: one scenario for each combination of values, the first of which is the control."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tritonchaos.errors import UsageError
from tritonchaos.observations import JsonValue
from tritonchaos.scenario.problems import Problem, shown
from tritonchaos.scenario.yaml_source import Document
from tritonchaos.scenario.yaml_text import yaml_text

_MOST_CELLS: Final = 256
# How `vary` says that an environment variable is not set.
_NOT_SET: Final = "none"


def vary_problems(raw: Mapping[str, JsonValue]) -> list[Problem]:
    """Say what is wrong with `vary`: path -> list of values, and not too many cells."""
    if "vary" not in raw:
        return []
    vary = raw["vary"]
    if not isinstance(vary, Mapping) or not vary:
        expected = "a mapping such as {server.env.LD_PRELOAD: [none, libjemalloc.so.2]}"
        return [Problem(("vary",), shown(vary), expected)]
    problems = [problem for path, values in vary.items() for problem in _entry_problems(raw, path, values)]
    cells = math.prod(len(values) for values in vary.values() if isinstance(values, list))
    if cells > _MOST_CELLS:
        problems.append(Problem(("vary",), f"{cells} combinations", f"at most {_MOST_CELLS}"))
    return problems


def _entry_problems(raw: Mapping[str, JsonValue], path: str, values: JsonValue) -> Iterator[Problem]:
    if not isinstance(values, list) or not values:
        yield Problem(("vary", path), shown(values), "a list of values, the first for the control")
        return
    if len({json.dumps(value, sort_keys=True) for value in values}) < len(values):
        yield Problem(("vary", path), "a value a second time", "values that differ")
    if path.partition(".")[0] in ("vary", "scenario"):
        yield Problem(("vary", path), f"the path {shown(path)}", "the path of another field", at_key=True)
        return
    try:
        _laid(raw, path, values[0])
    except UsageError as error:
        told = error.message.removeprefix("--set").partition(": ")[2]
        expected = "the path of a field, such as server.env.LD_PRELOAD"
        yield Problem(("vary", path), f"a path that leads nowhere ({told})", expected, error.hint, at_key=True)


def cell_documents(document: Document) -> Iterator[tuple[str, Document]]:
    """Yield the label of each cell and the document with its values laid in.

    Args:
        document: In its `vary` nothing was found wrong.
    """
    vary: Mapping[str, list[JsonValue]] = document.value["vary"]
    rest = {key: value for key, value in document.value.items() if key != "vary"}
    for values in itertools.product(*vary.values()):
        cell: Mapping[str, JsonValue] = rest
        for path, value in zip(vary, values, strict=True):
            cell = _laid(cell, path, value)
        label = ", ".join(f"{path}={_text(value)}" for path, value in zip(vary, values, strict=True))
        yield label, replace(document, value=cell, text=f"# cell {label}\n{yaml_text(cell)}")


def _laid(raw: Mapping[str, JsonValue], path: str, value: JsonValue) -> dict[str, Any]:
    # Which keys may stand where is known above this module.
    from tritonchaos.scenario.field_paths import set_value

    changed = copy.deepcopy(dict(raw))
    laid = None if value == _NOT_SET and ".env." in f".{path}" else value
    for one in _paths(changed, path):
        set_value(changed, one, laid)
    return changed


def _paths(raw: Mapping[str, JsonValue], path: str) -> list[str]:
    """Write target.gpus, which names no target, as the gpus of each target."""
    head, _, rest = path.partition(".")
    targets = raw.get("target")
    if head != "target" or not rest or not isinstance(targets, list):
        return [path]
    names = [entry if isinstance(entry, str) else next(iter(entry), "") for entry in targets if entry]
    if rest.partition(".")[0] in names:
        return [path]
    return [f"target[{number}].{rest}" for number in range(len(targets))]


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)
