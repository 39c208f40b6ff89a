"""Reads all scenarios of a set before anything starts, and names a folder for each run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tritonchaos.errors import TritonChaosError
from tritonchaos.finding_scenarios import Given, find_scenarios, is_text, open_scenario
from tritonchaos.overriding import Overrides
from tritonchaos.repository import model_names
from tritonchaos.running_sets.records import Planned


def plan(
    given: Sequence[Given], overrides: Overrides | None = None, model_repository: Path | None = None
) -> list[Planned]:
    """Read all scenarios before anything starts; one that is wrong is kept with its error.

    Raises:
        UsageError: A name leads to nothing.
        TritonChaosError: The only scenario is wrong.
    """
    extra = model_names(model_repository) if model_repository is not None else ()
    sources = find_scenarios(given)
    planned: list[Planned] = []
    for source in sources:
        name = Path(source).stem if isinstance(source, str | Path) and not is_text(source) else "scenario"
        try:
            scenario = open_scenario(source, overrides, extra)
        except TritonChaosError as error:
            if len(sources) == 1:
                raise
            planned.append(Planned(name, error=error))
            continue
        planned += [Planned(name, cell, one) for cell, one in scenario.cells()]
    return planned


def folder_names(planned: Sequence[Planned]) -> Iterator[str]:
    """Name a folder for each run: the scenario's name, the number of the cell, and what keeps them apart."""
    taken: set[str] = set()
    cells: dict[str, int] = {}
    for one in planned:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", one.name)
        if one.cell:
            cells[name] = cells.get(name, 0) + 1
            name = f"{name}.cell-{cells[name]}"
        number, free = 2, name
        while free in taken:
            number, free = number + 1, f"{name}-{number}"
        taken.add(free)
        yield free
