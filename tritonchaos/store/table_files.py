"""Tables as files that other programs read, written some rows at a time: CSV, JSON lines, Parquet."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from tritonchaos.errors import UsageError

FORMATS: Final = ("csv", "jsonl", "parquet")

Row: TypeAlias = tuple[Any, ...]
# Name -> type: "int", "text" or "truth".
Columns: TypeAlias = Mapping[str, str]


class TableWriter(Protocol):
    """Takes the rows of an open table; in Parquet those that are handed over together are a row group."""

    def write(self, rows: list[Row]) -> None: ...


def writer_of(to: str) -> Callable[[Path, Columns], AbstractContextManager[TableWriter]]:
    """Return what opens a table of a format.

    Raises:
        UsageError: The library for it is missing.
    """
    if to == "parquet":
        _import_pyarrow()
    return {"csv": _csv, "jsonl": _json_lines, "parquet": _parquet}[to]


class _RowWriter:
    def __init__(self, write: Callable[[list[Row]], None]) -> None:
        self.write = write


@contextlib.contextmanager
def _csv(path: Path, columns: Columns) -> Iterator[TableWriter]:
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        yield _RowWriter(writer.writerows)


@contextlib.contextmanager
def _json_lines(path: Path, columns: Columns) -> Iterator[TableWriter]:
    with path.open("w", encoding="utf-8", errors="replace") as file:

        def write(rows: list[Row]) -> None:
            objects = (dict(zip(columns, row, strict=True)) for row in rows)
            file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in objects)

        yield _RowWriter(write)


@contextlib.contextmanager
def _parquet(path: Path, columns: Columns) -> Iterator[TableWriter]:
    pyarrow, parquet = _import_pyarrow()
    types = {"int": pyarrow.int64(), "text": pyarrow.string(), "truth": pyarrow.bool_()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    with parquet.ParquetWriter(path, schema) as file:

        def write(rows: list[Row]) -> None:
            cells = [_encodable(column) for column in zip(*rows, strict=True)]
            file.write_table(pyarrow.table(cells, schema=schema))

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
