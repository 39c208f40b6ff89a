"""The tables of a run in formats that other programs read: CSV, JSON lines, Parquet."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.errors import StoreError, UsageError
from tritonchaos.expectation import error_text, mismatch
from tritonchaos.observations import (
    Answer,
    CycleReading,
    Event,
    History,
    NoAnswer,
    Position,
    Reading,
    SettleWindow,
    StepFinished,
)
from tritonchaos.observations.sample_series import as_series
from tritonchaos.post_unload import cycle_readings
from tritonchaos.store.folders import prepare_folder
from tritonchaos.store.plain import to_plain
from tritonchaos.store.table_files import FORMATS, Row, TableWriter, writer_of

_ROWS_AT_ONCE: Final = 20_000


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a run.

    Attributes:
        columns: Name -> type: "int", "text" or "truth"; any cell may be missing (None).
        of_event: Makes the rows of an event, out of its number and the event; None: the table is not made of events.
    """

    name: str
    columns: dict[str, str]
    of_event: Callable[[int, Event], Iterable[Row]] | None = None


def _quiet(doing: str) -> None:
    """Say nothing."""


def export(
    history: History, to: str, out: Path, tables: Sequence[str] = (), say: Callable[[str], None] = _quiet
) -> list[Path]:
    """Write tables of a run into a folder, one file each, row by row: memory does not grow with the run.

    Args:
        to: "csv", "jsonl" or "parquet".
        out: Must be empty or absent.
        tables: Names of `TABLES`; none: all of them.
        say: Takes what is being done, again and again.

    Raises:
        UsageError: No such format or table, or the library for it is missing.
        StoreError: The folder has something in it, or cannot be written.
    """
    chosen = _chosen(to, tables)
    opened = writer_of(to)
    prepare_folder(out)
    paths = {table.name: out / f"{table.name}.{to}" for table in chosen}
    try:
        with contextlib.ExitStack() as stack:
            open_tables = {
                table.name: _OpenTable(stack.enter_context(opened(paths[table.name], table.columns)), table)
                for table in chosen
            }
            _write_all(history, open_tables, say)
            for table in open_tables.values():
                table.flush()
    except OSError as error:
        hint = "free disk space, or name another folder with --out"
        raise StoreError(f"cannot write into {out}: {error.strerror}", hint=hint) from error
    return list(paths.values())


def _chosen(to: str, tables: Sequence[str]) -> list[Table]:
    if to not in FORMATS:
        raise UsageError(f"--to: found the unknown format {to[:80]!r}, expected {', '.join(FORMATS)}")
    names = [table.name for table in TABLES]
    unknown = [name for name in tables if name not in names]
    if unknown:
        raise UsageError(f"--tables: found the unknown table {unknown[0][:80]!r}, expected {', '.join(names)}")
    return [table for table in TABLES if table.name in (tables or names)]


class _OpenTable:
    """Hands rows on to its file, many at a time."""

    def __init__(self, writer: TableWriter, table: Table) -> None:
        self.of_event = table.of_event
        self._writer = writer
        self._held: list[Row] = []

    def add(self, rows: Iterable[Row]) -> None:
        self._held.extend(rows)
        if len(self._held) >= _ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        if self._held:
            self._writer.write(self._held)
            self._held = []


def _write_all(history: History, tables: Mapping[str, _OpenTable], say: Callable[[str], None]) -> None:
    if "series" in tables:
        say("writing series")
        for cycle in cycle_readings(history):
            tables["series"].add(_cycle(cycle))
    if "samples" in tables:
        for metric in history.samples:
            say(f"writing samples of {metric}")
            series = as_series(history.samples[metric])
            for at in range(0, len(series), _ROWS_AT_ONCE):
                tables["samples"].add((metric, t_ns, value) for t_ns, value in series[at : at + _ROWS_AT_ONCE])
    # An event is made of its row once for all tables that are made of events.
    of_events = [(table.of_event, table.add) for table in tables.values() if table.of_event is not None]
    for number, event in enumerate(history.events if of_events else ()):
        if number % _ROWS_AT_ONCE == 0:
            say(f"writing events: {number:,} of {len(history.events):,}")
        for rows_of, add in of_events:
            add(rows_of(number, event))


# --- the tables ----------------------------------------------------------------------------------


def _cycle(one: CycleReading) -> Iterator[Row]:
    head = (one.phase, one.arm.value, one.cycle, one.start_number, one.is_warm_up, one.is_judged)
    for metric, value in one.values.items():
        yield (*head, metric, value, metric not in one.unsettled)


def _readings(number: int, event: Event) -> Iterable[Row]:
    if isinstance(event, Reading):
        where = _where(event.position)
        return [(event.t_ns, event.name, *where, metric, value) for metric, value in event.values.items()]
    return _window(event) if isinstance(event, SettleWindow) else ()


def _window(window: SettleWindow) -> Iterator[Row]:
    where = (window.phase, window.arm.value if window.arm else None, window.cycle, "main", None)
    for metric, values in window.values.items():
        for t_ns, value in zip(window.times_ns, values, strict=True):
            if value is not None:
                yield (t_ns, "settle", *where, metric, value)


def _steps(number: int, step: Event) -> Iterable[Row]:
    if not isinstance(step, StepFinished):
        return ()
    reply = step.reply
    status = reply.status if isinstance(reply, Answer) else None
    no_answer = reply.reason if isinstance(reply, NoAnswer) else None
    error = error_text(reply) if isinstance(reply, Answer) and reply.status >= 400 else None
    row = (
        *(step.started_ns, step.t_ns, *_where(step.position), step.spec.name, step.spec.model, step.spec.via),
        *(status, no_answer, None if reply is None else reply.elapsed_ns, error, mismatch(step)),
        *(step.log_start, step.log_end),
    )
    return (row,)


def _events(number: int, event: Event) -> Iterable[Row]:
    fields = json.dumps(to_plain(event), ensure_ascii=False, default=_text)
    return ((number, _time_of(event), type(event).__name__, fields),)


def _text(value: object) -> str:
    """Bodies of answers are bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _time_of(event: Event) -> int | None:
    if isinstance(event, SettleWindow):
        return event.times_ns[-1] if event.times_ns else None
    return event.t_ns


def _where(position: Position | None) -> Row:
    if position is None:
        return (None, None, None, None, None)
    arm = position.arm.value if position.arm else None
    return (position.phase, arm, position.cycle, position.track, position.step_number)


_WHERE: Final = {"phase": "text", "arm": "text", "cycle": "int", "track": "text", "step_number": "int"}
TABLES: Final = (
    Table(
        "series",
        {
            "phase": "text",
            "arm": "text",
            "cycle": "int",
            "start_number": "int",
            "is_warm_up": "truth",
            "is_judged": "truth",
            "metric": "text",
            "value": "int",
            "has_settled": "truth",
        },
    ),
    Table("samples", {"metric": "text", "t_ns": "int", "value": "int"}),
    Table("readings", {"t_ns": "int", "name": "text", **_WHERE, "metric": "text", "value": "int"}, _readings),
    Table(
        "steps",
        {
            "started_ns": "int",
            "t_ns": "int",
            **_WHERE,
            "step": "text",
            "model": "text",
            "via": "text",
            "status": "int",
            "no_answer": "text",
            "elapsed_ns": "int",
            "error": "text",
            "not_as_expected": "text",
            "log_start": "int",
            "log_end": "int",
        },
        _steps,
    ),
    Table("events", {"number": "int", "t_ns": "int", "event": "text", "fields": "text"}, _events),
)
