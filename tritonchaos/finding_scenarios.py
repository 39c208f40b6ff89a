"""Finds scenarios by file, folder, or the name of a shipped one, and reads them as they are to be run."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from tritonchaos.errors import ScenarioError, UsageError
from tritonchaos.observations import JsonValue
from tritonchaos.overriding import Overrides, explain, override
from tritonchaos.scenario import Scenario
from tritonchaos.scenario.parsing import load_document, parse_document
from tritonchaos.scenario.yaml_source import Document, read_yaml
from tritonchaos.scenario.yaml_text import yaml_text
from tritonchaos.shipped import shipped_folder

# A file, a name, the YAML text itself (it has a line break), or its plain values.
Given: TypeAlias = str | Path | Mapping[str, JsonValue]

_SUFFIXES: Final = (".yaml", ".yml")


def shipped_scenarios() -> dict[str, Path]:
    """Shipped scenarios by name, in alphabetical order."""
    return {path.stem: path for path in sorted(shipped_folder("scenarios").glob("*.yaml"))}


def find_scenario(name: str) -> Path:
    """Return the file of that name if one exists, else the shipped scenario, with or without .yaml.

    Raises:
        UsageError: Neither exists.
    """
    if _is_file(name):
        return Path(name)
    shipped = shipped_scenarios()
    stem = name.removesuffix(".yaml")
    if stem in shipped:
        return shipped[stem]
    near = difflib.get_close_matches(stem, shipped, n=3)
    meant = f"did you mean {', '.join(near)}? " if near else ""
    raise UsageError(
        f"found neither a file nor a shipped scenario called {name!r}",
        hint=f"{meant}shipped scenarios: {', '.join(shipped)}",
    )


def find_scenarios(given: Iterable[Given]) -> list[Given]:
    """Put the scenario files of a folder in the place of each folder, in alphabetical order; each file once.

    Raises:
        UsageError: A name leads to nothing, or a folder holds no scenario file.
    """
    found: dict[object, Given] = {}
    for number, one in enumerate(given):
        if is_text(one) or isinstance(one, Mapping):
            found[number] = one
        else:
            found |= {path.resolve(): path for path in _files(str(one))}
    return list(found.values())


def _files(name: str) -> list[Path]:
    if not _is_folder(name):
        return [find_scenario(name)]
    files = sorted(path for path in Path(name).iterdir() if path.suffix in _SUFFIXES and path.is_file())
    if not files:
        raise UsageError(f"found no scenario file in the folder {name}", hint="scenario files end in .yaml or .yml")
    return files


def is_text(given: Given) -> bool:
    """Say whether it is the YAML text itself."""
    return isinstance(given, str) and "\n" in given


def open_scenario(given: Given, overrides: Overrides | None = None, extra_models: Collection[str] = ()) -> Scenario:
    """Read a scenario with the overrides in it.

    Args:
        extra_models: Names of further models that steps may use (of a user's own model repository).

    Raises:
        UsageError: It is not found, or an override does not fit it.
        ScenarioError: All that is wrong with it, each with file, line, column and YAML path.
    """
    overrides = overrides or Overrides()
    document = _read(given)
    try:
        return parse_document(override(document, overrides), extra_models)
    except ScenarioError as error:
        raise explain(error, overrides) from None


def _read(given: Given) -> Document:
    if isinstance(given, Mapping):
        return read_yaml(yaml_text(dict(given)), "(given mapping)")
    if is_text(given):
        return read_yaml(str(given), "(given text)")
    return load_document(find_scenario(str(given)))


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long, or with a NUL in it
        return False


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):
        return False
