"""Keeps the index: one SQLite file in the folder of the runs, made anew wherever it cannot be used."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import Final

from tritonchaos.errors import StoreError
from tritonchaos.run_index.records import RUNNING, IndexedRun
from tritonchaos.run_index.scanning import find_runs, read_found

INDEX_FILE: Final = ".history.db"
# Raised with every change of what is kept; an index of another version is made anew.
_VERSION: Final = 1
# Of SQLite's messages those that speak of a file which another process holds, or which cannot be written.
_NOT_TO_BE_HAD: Final = ("locked", "readonly", "unable to open", "disk is full", "disk I/O")
_COLUMNS: Final = tuple(field.name for field in fields(IndexedRun))


def index_runs(folder: Path, *, rebuild: bool = False, timeout_s: float = 10) -> list[IndexedRun]:
    """Bring the index of a folder up to date and return its runs, the oldest first.

    Only runs that are new or changed are read. Where the index cannot be written (a folder that is read only) all are
    read, and nothing is kept.

    Args:
        rebuild: Read every run again.
        timeout_s: How long to wait for another process that holds the index, before it is done without.

    Raises:
        StoreError: There is no such folder, or it cannot be read.
    """
    if not folder.is_dir():
        raise StoreError(f"there is no folder {folder}", hint="give the folder that holds the runs")
    try:
        with _opened(folder / INDEX_FILE, rebuild, timeout_s) as database:
            return _refreshed(database, folder)
    except OSError as error:
        hint = "check the permissions of the folder"
        raise StoreError(f"cannot read {folder}: {error.strerror}", hint=hint) from error


@contextlib.contextmanager
def _opened(path: Path, rebuild: bool, timeout_s: float) -> Iterator[sqlite3.Connection]:
    database = _usable(path, rebuild, timeout_s)
    try:
        yield database
        with contextlib.suppress(sqlite3.Error):
            database.commit()
    finally:
        database.close()


def _usable(path: Path, rebuild: bool, timeout_s: float) -> sqlite3.Connection:
    """Open the index: one that is damaged or of another version is made anew, one that cannot be had done without."""
    if rebuild:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    for attempt in (path, path):
        database = None
        try:
            database = sqlite3.connect(attempt, timeout=timeout_s)
            _lay_out(database)
            return database
        except sqlite3.Error as error:
            if database is not None:
                database.close()
            if any(sign in str(error) for sign in _NOT_TO_BE_HAD):
                break
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    database = sqlite3.connect(":memory:")
    _lay_out(database)
    return database


def _lay_out(database: sqlite3.Connection) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version != _VERSION:
        database.execute("DROP TABLE IF EXISTS runs")
        database.execute(f"CREATE TABLE runs ({', '.join(_COLUMNS)}, PRIMARY KEY (folder))")
        database.execute(f"PRAGMA user_version = {_VERSION}")
        database.commit()
    # A database that is locked or read only shows it here, before anything was read for it.
    database.execute("BEGIN IMMEDIATE")
    database.execute(f"SELECT {', '.join(_COLUMNS)} FROM runs LIMIT 1").fetchone()


def _refreshed(database: sqlite3.Connection, folder: Path) -> list[IndexedRun]:
    stored = {run.folder: run for run in _stored(database)}
    runs: list[IndexedRun] = []
    for found in find_runs(folder):
        known = stored.pop(found.name, None)
        if known is None or known.stamp != found.stamp() or known.cell != found.cell or known.verdict == RUNNING:
            known = read_found(found)
            marks = ", ".join("?" * len(_COLUMNS))
            database.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", astuple(known))
        runs.append(known)
    database.executemany("DELETE FROM runs WHERE folder = ?", [(gone,) for gone in stored])
    return sorted(runs, key=lambda run: (run.started_utc, run.folder))


def _stored(database: sqlite3.Connection) -> Iterator[IndexedRun]:
    for row in database.execute(f"SELECT {', '.join(_COLUMNS)} FROM runs"):
        values = dict(zip(_COLUMNS, row, strict=True))
        yield IndexedRun(**{**values, "interrupted": bool(values["interrupted"])})
