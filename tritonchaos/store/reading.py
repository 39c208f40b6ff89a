"""Reads a run directory back, whoever wrote it, wherever it was copied, without changing anything in it."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tritonchaos.errors import StoreError
from tritonchaos.observations import Event, History, JsonValue, RunFacts
from tritonchaos.store import layout as run_layout
from tritonchaos.store.compiled import EventReader
from tritonchaos.store.interning import Interned
from tritonchaos.store.lazy_events import LazyEvents
from tritonchaos.store.locking import running_pid
from tritonchaos.store.log_file import open_log
from tritonchaos.store.packing import unsqueeze
from tritonchaos.store.plain import from_plain
from tritonchaos.store.samples import StoredSamples
from tritonchaos.store.stored_stretches import StoredStretches

# Committed changes that are not in run.db itself yet lie in these files beside it.
_JOURNALS: Final = ("run.db-wal", "run.db-journal")
_HEADER_BYTES: Final = 100
_MOST_KEPT: Final = 500_000  # at about 1 kB each
_MOST_AT_ONCE: Final = 20_000  # of more, only those are looked at that somebody needs
_DAMAGED: Final = "copy the run directory again, whole, with run.db-wal if there is one"


def open_history(folder: Path, *, most_kept: int = _MOST_KEPT) -> History:
    """Read a run, finished or killed; samples are unpacked when asked for, and so are the events of a long run.

    Args:
        most_kept: Of how many events a record is kept in memory; of more none is.

    Raises:
        StoreError: No run is there, it still goes on, it is damaged, or a newer tritonchaos wrote it. Of a long run a
            damaged event is found when it is reached.
    """
    _check_not_running(folder)
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(_opened(folder))
        meta = _read_meta(database, folder)
        interned = Interned(
            {number: unsqueeze(body) for number, body in database.execute("SELECT number, body FROM interned")}
        )
        events = _read_events(database, meta, interned, folder, most_kept)
        blocks = [block for (block,) in database.execute("SELECT packed FROM samples ORDER BY number")]
        facts: RunFacts = from_plain(RunFacts, meta[run_layout.KEY_FACTS])
        if isinstance(events, LazyEvents):
            # The database is closed, and a copy of it removed, when nobody uses the events any more.
            weakref.finalize(events, stack.pop_all().close)
    return History(
        facts=facts,
        events=events,
        samples=StoredSamples(blocks, interned),
        log=open_log(folder / run_layout.LOG),
        interrupted=bool(meta.get(run_layout.KEY_END, {"interrupted": True})["interrupted"]),
        scenario_text=_read_file(folder / run_layout.SCENARIO).decode("utf-8", "replace"),
    )


def read_remembered(folder: Path) -> Mapping[str, JsonValue]:
    """Return what `RunStore.remember` kept.

    Raises:
        StoreError: As `open_history`; while the run goes on, `running_pid` says whose it is.
    """
    _check_not_running(folder)
    with _opened(folder) as database:
        meta = _read_meta(database, folder)
    prefix = run_layout.REMEMBERED
    return {key[len(prefix) :]: value for key, value in meta.items() if key.startswith(prefix)}


def read_facts(folder: Path) -> RunFacts:
    """Return what was fixed before the first step; nothing else of the run is read.

    Raises:
        StoreError: As `open_history`.
    """
    _check_not_running(folder)
    with _opened(folder) as database:
        facts: RunFacts = from_plain(RunFacts, _read_meta(database, folder)[run_layout.KEY_FACTS])
    return facts


def _check_not_running(folder: Path) -> None:
    pid = running_pid(folder)
    if pid is not None:
        raise StoreError(
            f"the run in {folder} is still going on as process {pid}",
            hint="wait for it to end, or end it with Ctrl-C; then judge it",
        )


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open a run's database, or a copy of it where SQLite would have to write beside it to read it."""
    _check_is_run(folder)
    with _as_store_error(folder), contextlib.ExitStack() as stack:
        path, how = folder / run_layout.DATABASE, "mode=ro&immutable=1"
        if _has_journal(folder):
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tritonchaos-")))
            path, how = _copy(folder, copy), "mode=rw"
        database = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, check_same_thread=False)
        yield stack.enter_context(contextlib.closing(database))


@contextlib.contextmanager
def _as_store_error(folder: Path) -> Iterator[None]:
    """Say of a run that cannot be read what is wrong with it."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreError(f"cannot read {folder / run_layout.DATABASE}: {error}", hint=_DAMAGED) from error
    except (sqlite3.Error, ValueError, LookupError, TypeError) as error:
        raise StoreError(
            f"{folder / run_layout.DATABASE} is damaged or cut short: {type(error).__name__}: {error}", hint=_DAMAGED
        ) from error
    except OSError as error:
        raise StoreError(f"cannot read {folder}: {error}", hint="check the permissions of the folder") from error


def _check_is_run(folder: Path) -> None:
    if not folder.is_dir():
        raise StoreError(f"there is no folder {folder}", hint="give the run directory, such as tritonchaos-runs/latest")
    path = folder / run_layout.DATABASE
    if not path.is_file():
        raise StoreError(f"{folder} is not a run directory; expected {path.name} in it", hint=_which_run(folder))
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    # A run that was killed before its first checkpoint has everything in run.db-wal.
    if header and not header.startswith(b"SQLite format 3\0"):
        raise StoreError(f"{path} is not a database that tritonchaos wrote", hint=_DAMAGED)
    expected = _bytes_by_header(header)
    if path.stat().st_size < expected and not _has_journal(folder):
        raise StoreError(
            f"{path} is damaged or cut short; found {path.stat().st_size} bytes, expected {expected}", hint=_DAMAGED
        )


def _bytes_by_header(header: bytes) -> int:
    """Size of the database by its own header: page size at byte 16, page count at byte 28 (sqlite.org/fileformat2)."""
    if len(header) < _HEADER_BYTES:
        return len(header) and _HEADER_BYTES
    page_bytes = int.from_bytes(header[16:18], "big")
    return (65536 if page_bytes == 1 else page_bytes) * int.from_bytes(header[28:32], "big")


def _has_journal(folder: Path) -> bool:
    return any((folder / name).is_file() and (folder / name).stat().st_size > 0 for name in _JOURNALS)


def _which_run(folder: Path) -> str:
    runs = sorted(path.parent.name for path in folder.glob(f"*/{run_layout.DATABASE}"))
    return f"it holds runs; did you mean {folder / runs[-1]}?" if runs else "give the folder that holds run.db"


def _copy(folder: Path, copy: Path) -> Path:
    for name in (run_layout.DATABASE, *_JOURNALS):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, copy / name)
    return copy / run_layout.DATABASE


def _read_meta(database: sqlite3.Connection, folder: Path) -> dict[str, Any]:
    path = folder / run_layout.DATABASE
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "meta" not in tables:
        raise StoreError(f"{path} is a database without a run in it", hint=_DAMAGED)
    meta = {key: json.loads(value) for key, value in database.execute("SELECT key, value FROM meta")}
    version = meta[run_layout.KEY_FORMAT_VERSION]
    if version > run_layout.FORMAT_VERSION:
        raise StoreError(
            f"{path} was written by a newer tritonchaos; found format {version}, "
            f"this one reads up to {run_layout.FORMAT_VERSION}",
            hint="read it with the version that wrote it, or a later one",
        )
    return meta


def _read_events(
    database: sqlite3.Connection, meta: Mapping[str, Any], interned: Interned, folder: Path, most_kept: int
) -> Sequence[Event]:
    layout = {name: tuple(names) for name, names in meta[run_layout.KEY_LAYOUT].items()}
    reader = EventReader(run_layout.event_codec(layout), interned)
    count, last = database.execute("SELECT count(*), max(number) FROM events").fetchone()
    if count and last != count - 1:
        raise LookupError(f"{count} events are there, expected {last + 1}")
    if count > min(most_kept, _MOST_AT_ONCE):
        guard = functools.partial(_as_store_error, folder)
        has_cycles = meta[run_layout.KEY_FORMAT_VERSION] >= run_layout.FIRST_WITH_CYCLES
        stretches = StoredStretches(database, reader, interned, count, guard) if has_cycles else None
        if count > most_kept or (stretches is not None and stretches.are_mostly_alike):
            return LazyEvents(database, reader, count, guard, stretches, is_kept=count <= most_kept)
    rows = database.execute("SELECT packed FROM events ORDER BY number")
    return tuple(reader.read(stored) for (stored,) in rows)


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", hint="check its permissions") from error
