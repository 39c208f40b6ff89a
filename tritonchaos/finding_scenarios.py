"""Finds a scenario by file or by the name of a shipped one."""

from __future__ import annotations

import difflib
from pathlib import Path

from tritonchaos.errors import UsageError
from tritonchaos.shipped import shipped_folder


def shipped_scenarios() -> dict[str, Path]:
    """Shipped scenarios by name, in alphabetical order."""
    return {path.stem: path for path in sorted(shipped_folder("scenarios").glob("*.yaml"))}


def find_scenario(name: str) -> Path:
    """Return the file of that name if one exists, else the shipped scenario, with or without .yaml.

    Raises:
        UsageError: Neither exists.
    """
    if Path(name).is_file():
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
