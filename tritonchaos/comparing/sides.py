"""Reads one side of a comparison: a run, a set of runs, or a folder with runs in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.comparing.records import SideFacts
from tritonchaos.comparing.runs import ComparedRun, read_run
from tritonchaos.errors import StoreError
from tritonchaos.store import is_set, read_set

_DATABASE: Final = "run.db"


@dataclass(frozen=True, slots=True)
class Side:
    """The runs of one side.

    Attributes:
        runs: Title of the scenario (and cell) -> its runs.
        not_run: Title -> why there is no run of it.
    """

    name: str
    runs: dict[str, list[ComparedRun]]
    not_run: dict[str, str]

    def facts(self) -> SideFacts:
        """Collect what the runs were made with."""
        every = [run for runs in self.runs.values() for run in runs]
        facts: dict[str, dict[str, None]] = {}
        for run in every:
            shown = {"tritonchaos": run.facts.tritonchaos_version, **run.facts.target}
            for name, value in shown.items():
                if value:
                    facts.setdefault(name, {})[value] = None
        return SideFacts(self.name, len(every), {name: tuple(values) for name, values in facts.items()})


def read_side(path: Path) -> Side:
    """Read a run directory, the folder of a set, or a folder that holds either.

    Raises:
        StoreError: Nothing of that is there, or a run cannot be read.
    """
    side = Side(path.resolve().name, {}, {})
    if not path.is_dir():
        raise StoreError(f"there is no folder {path}", hint="give a run directory, a set, or a folder of runs")
    found = list(_runs(path, side))
    for folder, cell in found:
        run = read_run(folder, cell)
        side.runs.setdefault(run.title, []).append(run)
    if not side.runs and not side.not_run:
        raise StoreError(
            f"{path} holds no run; expected run.db in it, set.json, or folders with run.db",
            hint="give the folder that holds run.db",
        )
    return side


def _runs(path: Path, side: Side) -> Iterator[tuple[Path, str]]:
    """Yield run directories, each with its cell; what a set did not run is noted on the way."""
    if (path / _DATABASE).exists():
        yield path, ""
    elif is_set(path):
        yield from _runs_of_set(path, side)
    else:
        # `latest` is a link to one of the others.
        for folder in sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink()):
            if (folder / _DATABASE).exists() or is_set(folder):
                yield from _runs(folder, side)


def _runs_of_set(path: Path, side: Side) -> Iterator[tuple[Path, str]]:
    for entry in read_set(path)["runs"]:
        cell = entry["cell"] or ""
        if entry["folder"] and (path / entry["folder"] / _DATABASE).exists():
            yield path / entry["folder"], cell
        else:
            title = f"{entry['scenario']} [{cell}]" if cell else entry["scenario"]
            side.not_run[title] = str(entry["error"] or "its folder is missing").splitlines()[0]
