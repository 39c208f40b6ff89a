"""Writes run.db while a run goes on; what was committed survives a kill at any moment."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from tritonchaos.errors import StoreError, TritonChaosBug
from tritonchaos.observations import Event, JsonValue, RunFacts, StepSpec
from tritonchaos.store import layout as run_layout
from tritonchaos.store.codecs import layout_of
from tritonchaos.store.cycle_blocks import Block, CycleBlocks
from tritonchaos.store.folders import prepare_folder
from tritonchaos.store.interning import Interner
from tritonchaos.store.locking import mark_written_here, unmark_written_here
from tritonchaos.store.packing import Cursor, squeeze
from tritonchaos.store.plain import to_plain
from tritonchaos.store.samples import SampleBlocks

# A cycle with more events than this (a fast `infer` track) is written into the open transaction piece by piece.
_MOST_HELD: Final = 2000
_MOST_UNPACKED: Final = 100


class RunStore:
    """The run directory of a run that goes on; methods may be called from any thread.

    Attributes:
        folder: The run directory.
    """

    def __init__(self, folder: Path, database: sqlite3.Connection, sample_count: int) -> None:
        self.folder = folder
        self._path = folder / run_layout.DATABASE
        self._database = database
        self._lock = threading.RLock()
        self._codec = run_layout.event_codec(layout_of(Event))
        self._step_codec = run_layout.step_codec(layout_of(Event))
        self._interner = Interner()
        self._samples = SampleBlocks()
        self._cycles = CycleBlocks(sample_count, self._interner, self._step_number)
        self._blocks: list[Block] = []
        self._unpacked: list[Event] = []
        self._held: list[tuple[int, bytes]] = []
        self._event_count = 0
        self._is_open = True
        self._failure: StoreError | None = None

    @classmethod
    def create(cls, folder: Path, facts: RunFacts, scenario_text: str) -> RunStore:
        """Create the run directory with run.db and scenario.yaml.

        Args:
            folder: Must be empty or absent.
            scenario_text: The scenario as run.

        Raises:
            StoreError: The folder has something in it, or cannot be written.
        """
        prepare_folder(folder)
        with _as_store_error(folder / run_layout.DATABASE):
            (folder / run_layout.SCENARIO).write_text(scenario_text, encoding="utf-8")
            database = _create_database(folder / run_layout.DATABASE, facts)
        mark_written_here(folder)
        return cls(folder, database, facts.sample_count)

    @property
    def log_file(self) -> Path:
        """Where the server's output goes."""
        return self.folder / run_layout.LOG

    def record(self, event: Event) -> None:
        """Take an event; it is safe on disk after the next `commit`.

        Raises:
            StoreError: The disk is full or cannot be written.
        """
        with self._lock:
            self._unpacked.append(event)
            if len(self._unpacked) >= _MOST_UNPACKED:
                self.pack()

    def pack(self) -> None:
        """Pack what was recorded, which `commit` does as well; a good use of time in which nothing else is to be done.

        Raises:
            StoreError: The disk is full or cannot be written.
        """
        with self._lock:
            unpacked, self._unpacked = self._unpacked, []
            for event in unpacked:
                packed = bytearray()
                self._codec.write(event, packed, self._interner)
                row = squeeze(bytes(packed))
                self._held.append((self._event_count, row))
                self._event_count += 1
                self._keep_block(self._cycles.see(event, row))
            if len(self._held) >= _MOST_HELD:
                with self._writing():
                    self._write_held()

    def _step_number(self, spec: StepSpec) -> int:
        """Number each different step, as in the packed events."""
        packed = bytearray()
        self._step_codec.write(spec, packed, self._interner)
        return Cursor(bytes(packed)).count()

    def _keep_block(self, block: Block | None) -> None:
        """Let a block be written with the events that it is made of, or after them; never before."""
        if block is not None:
            self._blocks.append(block)

    def add_samples(self, blocks: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Take samples of the sampling thread: metric -> (t_ns, value) pairs."""
        with self._lock:
            self._samples.add(blocks)

    def commit(self) -> None:
        """Make everything so far safe against a kill; called at the end of each cycle.

        Raises:
            StoreError: The disk is full or cannot be written.
        """
        with self._lock, self._writing():
            self._write_held()
            self._database.execute("COMMIT")

    def update_facts(self, facts: RunFacts) -> None:
        """Replace the run's facts by more complete ones; safe on disk after the next `commit`.

        Raises:
            StoreError: The disk is full or cannot be written.
        """
        with self._lock:
            self._put(run_layout.KEY_FACTS, to_plain(facts))

    def remember(self, key: str, value: JsonValue) -> None:
        """Keep a fact for `tritonchaos clean`, safe against a kill at once (and with it everything so far).

        Raises:
            StoreError: The disk is full or cannot be written.
        """
        with self._lock:
            self._put(run_layout.REMEMBERED + key, value)
            self.commit()

    def finish(self, interrupted: bool) -> None:
        """Write the end mark and leave one file that no journal belongs to. The store is closed.

        Args:
            interrupted: The user ended the run before its end.

        Raises:
            StoreError: The disk is full or cannot be written.
        """
        with self._lock:
            self._put(run_layout.KEY_END, {"interrupted": interrupted})
            self.pack()
            self._keep_block(self._cycles.finish())
            self.commit()
            with self._writing(begin=False):
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                # A finished run may be read in a folder where no file can be made, which WAL does not allow.
                self._database.execute("PRAGMA journal_mode=DELETE")
            self._close_database()

    def close(self) -> None:
        """Commit and close without an end mark, unless already closed; such a run counts as interrupted.

        Raises:
            StoreError: The disk is full or cannot be written; the store is closed all the same.
        """
        with self._lock:
            if not self._is_open:
                return
            try:
                self.commit()
            finally:
                self._close_database()

    def _close_database(self) -> None:
        self._is_open = False
        unmark_written_here(self.folder)
        with _as_store_error(self._path):
            self._database.close()

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # What ended the run matters more than what then happens while closing.
        with contextlib.suppress(StoreError) if error is not None else contextlib.nullcontext():
            self.close()

    def _put(self, key: str, value: JsonValue) -> None:
        with self._writing():
            self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def _write_held(self) -> None:
        if self._unpacked:
            self.pack()
        samples = self._samples.take_changed(self._interner)
        interned = [(number, squeeze(body)) for number, body in self._interner.take_new()]
        held, self._held = self._held, []
        blocks, self._blocks = [(b.number, b.first_event, b.crc, b.packed) for b in self._blocks], []
        self._database.executemany("INSERT INTO interned VALUES (?, ?)", interned)
        self._database.executemany("INSERT INTO events VALUES (?, ?)", held)
        self._database.executemany("INSERT OR REPLACE INTO samples VALUES (?, ?)", samples)
        self._database.executemany("INSERT INTO cycles VALUES (?, ?, ?, ?)", blocks)

    @contextlib.contextmanager
    def _writing(self, begin: bool = True) -> Iterator[None]:
        if not self._is_open:
            raise TritonChaosBug(f"the store of {self.folder} is closed and can take nothing more")
        if self._failure is not None:
            # SQLite has rolled back; what comes later would refer to texts that are not there.
            raise self._failure
        try:
            with _as_store_error(self._path):
                if begin and not self._database.in_transaction:
                    self._database.execute("BEGIN IMMEDIATE")
                yield
        except StoreError as error:
            self._failure = error
            raise


@contextlib.contextmanager
def _as_store_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"cannot write {path}: {error}", hint="free disk space, or choose another folder with --out"
        ) from error


def _create_database(path: Path, facts: RunFacts) -> sqlite3.Connection:
    """Make run.db, opened so that nobody else writes or checkpoints it.

    With exclusive locking WAL needs no shared index file, and the lock tells others that the run goes on
    (https://www.sqlite.org/wal.html, "Use of WAL Without Shared-Memory"; https://www.sqlite.org/pragma.html).
    """
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    try:
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        # 512 KiB: a run only appends; 2 MiB of pages (the default) fill over thousands of cycles like a leak of ours.
        database.execute("PRAGMA cache_size=-512")
        database.execute("BEGIN IMMEDIATE")
        for statement in run_layout.TABLES.strip().splitlines():
            database.execute(statement)
        meta = {
            run_layout.KEY_FORMAT_VERSION: run_layout.FORMAT_VERSION,
            run_layout.KEY_LAYOUT: layout_of(Event),
            run_layout.KEY_FACTS: to_plain(facts),
        }
        rows = [(key, json.dumps(value)) for key, value in meta.items()]
        database.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        database.execute("COMMIT")
    except BaseException:
        database.close()
        raise
    return database
