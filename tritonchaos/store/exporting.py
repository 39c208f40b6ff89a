"""The tables of a run in formats that other programs read: CSV, JSON lines, Parquet."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from tritonchaos.errors import StoreError, UsageError
from tritonchaos.expectation import error_text, mismatch
from tritonchaos.observations import Answer, Event, History, NoAnswer, Position, Reading, SettleWindow, StepFinished
from tritonchaos.post_unload import cycle_readings
from tritonchaos.store.folders import prepare_folder
from tritonchaos.store.plain import to_plain

FORMATS: Final = ("csv", "jsonl", "parquet")
_ROWS_AT_ONCE: Final = 20_000

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a run.

    Attributes:
        columns: Name -> type: "int", "text" or "truth"; any cell may be missing (None).
    """

    name: str
    columns: dict[str, str]
    rows: Callable[[History], Iterator[Row]]


class _Writer(Protocol):
    def write(self, rows: list[Row]) -> None: ...


def export(history: History, to: str, out: Path) -> list[Path]:
    """Write `series`, `samples`, `readings`, `steps` and `events` into a folder, one file each, row by row.

    Args:
        to: "csv", "jsonl" or "parquet".
        out: Must be empty or absent.

    Raises:
        UsageError: No such format, or the library for it is missing.
        StoreError: The folder has something in it, or cannot be written.
    """
    if to not in FORMATS:
        raise UsageError(f"--to: found the unknown format {to[:80]!r}, expected {', '.join(FORMATS)}")
    opened = {"csv": _csv, "jsonl": _json_lines, "parquet": _parquet}[to]
    if to == "parquet":
        _import_pyarrow()
    prepare_folder(out)
    written = []
    for table in TABLES:
        path = out / f"{table.name}.{to}"
        try:
            with opened(path, table) as writer:
                rows = table.rows(history)
                while some := list(islice(rows, _ROWS_AT_ONCE)):
                    writer.write(some)
        except OSError as error:
            hint = "free disk space, or name another folder with --out"
            raise StoreError(f"cannot write {path}: {error.strerror}", hint=hint) from error
        written.append(path)
    return written


# --- the tables ----------------------------------------------------------------------------------


def _series(history: History) -> Iterator[Row]:
    for one in cycle_readings(history):
        for metric, value in one.values.items():
            head = (one.phase, one.arm.value, one.cycle, one.start_number, one.is_warm_up, one.is_judged)
            yield (*head, metric, value, metric not in one.unsettled)


def _samples(history: History) -> Iterator[Row]:
    for metric in history.samples:
        yield from ((metric, t_ns, value) for t_ns, value in history.samples[metric])


def _readings(history: History) -> Iterator[Row]:
    for event in history.events:
        if isinstance(event, Reading):
            where = _where(event.position)
            yield from ((event.t_ns, event.name, *where, metric, value) for metric, value in event.values.items())
        elif isinstance(event, SettleWindow):
            yield from _window(event)


def _window(window: SettleWindow) -> Iterator[Row]:
    where = (window.phase, window.arm.value if window.arm else None, window.cycle, "main", None)
    for metric, values in window.values.items():
        for t_ns, value in zip(window.times_ns, values, strict=True):
            if value is not None:
                yield (t_ns, "settle", *where, metric, value)


def _steps(history: History) -> Iterator[Row]:
    for step in history.of(StepFinished):
        reply = step.reply
        status = reply.status if isinstance(reply, Answer) else None
        no_answer = reply.reason if isinstance(reply, NoAnswer) else None
        error = error_text(reply) if isinstance(reply, Answer) and reply.status >= 400 else None
        yield (
            *(step.started_ns, step.t_ns, *_where(step.position), step.spec.name, step.spec.model, step.spec.via),
            *(status, no_answer, None if reply is None else reply.elapsed_ns, error, mismatch(step)),
            *(step.log_start, step.log_end),
        )


def _events(history: History) -> Iterator[Row]:
    for number, event in enumerate(history.events):
        yield (
            number,
            _time_of(event),
            type(event).__name__,
            json.dumps(to_plain(event), ensure_ascii=False, default=_text),
        )


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
        _series,
    ),
    Table("samples", {"metric": "text", "t_ns": "int", "value": "int"}, _samples),
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


# --- the formats ---------------------------------------------------------------------------------


class _RowWriter:
    def __init__(self, write: Callable[[list[Row]], None]) -> None:
        self.write = write


@contextlib.contextmanager
def _csv(path: Path, table: Table) -> Iterator[_Writer]:
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        yield _RowWriter(writer.writerows)


@contextlib.contextmanager
def _json_lines(path: Path, table: Table) -> Iterator[_Writer]:
    with path.open("w", encoding="utf-8", errors="replace") as file:

        def write(rows: list[Row]) -> None:
            objects = (dict(zip(table.columns, row, strict=True)) for row in rows)
            file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in objects)

        yield _RowWriter(write)


@contextlib.contextmanager
def _parquet(path: Path, table: Table) -> Iterator[_Writer]:
    pyarrow, parquet = _import_pyarrow()
    types = {"int": pyarrow.int64(), "text": pyarrow.string(), "truth": pyarrow.bool_()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in table.columns.items()])
    with parquet.ParquetWriter(path, schema) as file:

        def write(rows: list[Row]) -> None:
            columns = [_encodable(column) for column in zip(*rows, strict=True)]
            file.write_table(pyarrow.table(columns, schema=schema))

        yield _RowWriter(write)


def _encodable(column: Iterable[Any]) -> list[Any]:
    """A lone surrogate (an undecodable file name in a log) cannot be written as UTF-8."""
    return [cell.encode("utf-8", "replace").decode() if isinstance(cell, str) else cell for cell in column]


def _import_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise UsageError(
            f"writing Parquet needs pyarrow, which cannot be imported: {error}",
            hint="pip install 'tritonchaos[parquet]', or choose --to csv or jsonl",
        ) from None
    return pyarrow, parquet
