"""Reports of a set as a whole, written when it ends and again whenever they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tritonchaos.errors import StoreError
from tritonchaos.plugins import Reporter, ReportsSets, choose_reporters
from tritonchaos.running import judge_folder
from tritonchaos.running_sets.document import SCHEMA, SET_FILE
from tritonchaos.summary import FinishedEntry, FinishedSet

_DAMAGED = "copy the folder of the set again, whole, or report its runs one by one"


def write_set_reports(done: FinishedSet, folder: Path, reports: Sequence[str] = ()) -> list[Path]:
    """Let every chosen reporter that can do so write one file for the whole set.

    Raises:
        StoreError: One cannot be written.
    """
    return [path for reporter in choose_reporters(reports) for path in _render(reporter, done, folder)]


def _render(reporter: Reporter, done: FinishedSet, folder: Path) -> list[Path]:
    if not isinstance(reporter, ReportsSets):
        return []
    try:
        return reporter.render_set(done, folder)
    except OSError as error:
        raise StoreError(f"cannot write the report {reporter.name} into {folder}: {error.strerror or error}") from error


def is_set(folder: Path) -> bool:
    """Say whether a folder is that of a set."""
    return (folder / SET_FILE).is_file()


def report_set(folder: Path, reports: Sequence[str] = ()) -> list[Path]:
    """Write the reports of a set and of each of its runs again; needs nothing but the folder.

    Raises:
        StoreError: It is not the folder of a set, or a run of it cannot be read.
        UsageError: There is no such reporter.
    """
    choose_reporters(reports)
    document = read_set(folder)
    written: list[Path] = []
    entries = []
    for entry in document["runs"]:
        run = None
        if entry["folder"] and entry["verdict"] is not None:
            done = judge_folder(folder / entry["folder"], reports, within_set=True)
            run = done.finished
            written += done.written
        exit_code = entry["exit_code"] if run is None else run.exit_code
        name, cell, inside = entry["scenario"], entry["cell"] or "", entry["folder"] or ""
        entries.append(FinishedEntry(name, cell, inside, run, exit_code, entry["error"] or ""))
    done_set = FinishedSet(document["set_id"], tuple(entries), document["exit_code"])
    return [*written, *write_set_reports(done_set, folder, reports)]


def read_set(folder: Path) -> dict[str, Any]:
    """Read set.json.

    Raises:
        StoreError: It is missing, damaged, of a newer format, or names a folder outside of its own.
    """
    path = folder / SET_FILE
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        schema = document["schema"]
        problems = list(_problems(document)) if schema == SCHEMA else []
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", hint="give the folder of a set") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is damaged: {type(error).__name__}: {error}", hint=_DAMAGED) from error
    if schema != SCHEMA:
        raise StoreError(
            f"{path} was written by another tritonchaos; found {schema!r:.60}, this one reads {SCHEMA!r}",
            hint="read it with the version that wrote it, or a later one",
        )
    if problems:
        raise StoreError(f"{path} is damaged: {problems[0]}", hint=_DAMAGED)
    return document


def _problems(document: dict[str, Any]) -> Iterator[str]:
    if not isinstance(document["set_id"], str) or not isinstance(document["exit_code"], int):
        yield "found no set_id or exit_code"
    for run in document["runs"]:
        missing = {"scenario", "cell", "folder", "exit_code", "verdict", "error"} - run.keys()
        if missing:
            yield f"found a run without {', '.join(sorted(missing))}"
        elif run["folder"] and (Path(run["folder"]).name != run["folder"] or run["folder"] == ".."):
            yield f"found the run folder {run['folder']!r:.80}, expected the name of one within the set"
