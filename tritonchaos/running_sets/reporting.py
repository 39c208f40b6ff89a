"""Reports of a set as a whole, written when it ends and again whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tritonchaos.errors import StoreError
from tritonchaos.plugins import Reporter, ReportsSets, choose_reporters
from tritonchaos.running import report_folder
from tritonchaos.store import read_set
from tritonchaos.summary import FinishedEntry, FinishedSet


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


def report_set(folder: Path, reports: Sequence[str] = (), doing: Callable[[str], None] | None = None) -> list[Path]:
    """Write the reports of a set and of each of its runs again; needs nothing but the folder.

    Args:
        doing: Takes what is being done, for those who wait.

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
            done = report_folder(folder / entry["folder"], reports, within_set=True, doing=doing)
            run = done.finished
            written += done.written
        exit_code = entry["exit_code"] if run is None else run.exit_code
        name, cell, inside = entry["scenario"], entry["cell"] or "", entry["folder"] or ""
        entries.append(FinishedEntry(name, cell, inside, run, exit_code, entry["error"] or ""))
    done_set = FinishedSet(document["set_id"], tuple(entries), document["exit_code"])
    return [*written, *write_set_reports(done_set, folder, reports)]
