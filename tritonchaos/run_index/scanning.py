"""Finds the run directories of a folder, and reads of each what the index keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tritonchaos.errors import StoreError
from tritonchaos.observations import RunFacts
from tritonchaos.run_index.records import NOT_JUDGED, RUNNING, UNREADABLE, IndexedRun
from tritonchaos.store import is_set, read_facts, read_set, running_pid

_DATABASE: Final = "run.db"
_RESULTS: Final = "results.json"


@dataclass(frozen=True, slots=True)
class Found:
    """A run directory.

    Attributes:
        name: Relative to the folder that was searched.
        cell: As its set names it; "" without one.
    """

    path: Path
    name: str
    cell: str = ""

    def stamp(self) -> str:
        """Tell whether it changed since it was read."""
        files = (self.path / _DATABASE, self.path / f"{_DATABASE}-wal", self.path / _RESULTS)
        stats = [file.stat() if file.is_file() else None for file in files]
        return " ".join("-" if stat is None else f"{stat.st_size}:{stat.st_mtime_ns}" for stat in stats)


def find_runs(folder: Path) -> Iterator[Found]:
    """Yield the run directories below a folder, also those of the sets in it; links are passed over."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_dir():
            continue
        if (path / _DATABASE).is_file():
            yield Found(path, path.name, _cells(folder).get(path.name, ""))
        elif is_set(path):
            cells = _cells(path)
            inside = sorted(one for one in path.iterdir() if (one / _DATABASE).is_file() and not one.is_symlink())
            yield from (Found(one, f"{path.name}/{one.name}", cells.get(one.name, "")) for one in inside)


def _cells(folder: Path) -> dict[str, str]:
    """Return the cell of each run of a set; none where its set.json is damaged."""
    if not is_set(folder):
        return {}
    try:
        runs = read_set(folder)["runs"]
    except StoreError:
        return {}
    return {run["folder"]: run["cell"] or "" for run in runs if run["folder"]}


def read_found(found: Found) -> IndexedRun:
    """Read a run; whatever is wrong with it is told by the record."""
    blank = IndexedRun(found.name, found.stamp(), found.name, found.cell)
    if running_pid(found.path) is not None:
        return replace(blank, verdict=RUNNING)
    try:
        known = _with_facts(blank, read_facts(found.path))
    except StoreError as error:
        return replace(blank, verdict=UNREADABLE, problem=error.message)
    try:
        results = json.loads((found.path / _RESULTS).read_bytes())
        return _with_results(known, results)
    except FileNotFoundError:
        return replace(known, verdict=NOT_JUDGED)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        problem = f"results.json is damaged: {type(error).__name__}: {error}"
        return replace(known, verdict=UNREADABLE, problem=problem)


def _with_facts(run: IndexedRun, facts: RunFacts) -> IndexedRun:
    target = facts.target
    return replace(
        run,
        scenario=facts.scenario,
        started_utc=facts.started_utc,
        version=target.get("image") or target.get("triton_version", ""),
        target=target.get("target", ""),
        tritonchaos_version=facts.tritonchaos_version,
        seed=facts.seed,
    )


def _with_results(run: IndexedRun, results: Mapping[str, Any]) -> IndexedRun:
    counted = [finding for finding in results["findings"] if finding["counts"]]
    said = [one for one in results["assessments"] if one["checker"] == "memory_growth" and one["metric"]]
    worst = next((one for one in said if one["verdict"] == "LEAK"), said[0] if said else None)
    grown = run
    if worst is not None:
        leak = [finding for finding in counted if finding["metric"] == worst["metric"]]
        amount = leak[0]["bytes_per_cycle"] if leak else worst["excluded_bytes_per_cycle"]
        grown = replace(run, metric=worst["metric"], growth=worst["verdict"], bytes_per_cycle=amount)
    return replace(
        grown,
        verdict=str(results["verdict"]),
        exit_code=int(results["exit_code"]),
        interrupted=bool(results["interrupted"]),
        cycles=sum(phase["cycles"] for phase in results["phases"]),
        kinds=",".join(sorted({finding["kind"] for finding in counted})),
    )
