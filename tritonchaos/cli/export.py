"""`tritonchaos export`: series and events of a run for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tritonchaos.cli.options import RunFolder

_TO = typer.Option("--to", help="Format: csv, jsonl, or parquet (extra `parquet`).", envvar="TRITONCHAOS_TO")
_OUT = typer.Option(
    "--out",
    "-o",
    help="Folder to write into; must be empty or absent. [default: RUN-FORMAT]",
    show_default=False,
    envvar="TRITONCHAOS_EXPORT_OUT",
)


_TABLES = typer.Option(
    "--tables", help="Only these, as series,steps.", metavar="NAMES", envvar="TRITONCHAOS_TABLES", show_default=False
)


def export_command(
    run: RunFolder,
    to: Annotated[str, _TO] = "csv",
    tables: Annotated[str | None, _TABLES] = None,
    out: Annotated[Path | None, _OUT] = None,
) -> None:
    """Write series, samples, readings, steps and events of a run as tables, and say where they are.

    `series` has the post-unload reading of each cycle and metric; `samples` those of the sampling thread; `readings`
    every single reading with its name; `steps` what was asked and answered; `events` everything, its fields as JSON.
    Times are ns since the run's start; memory is in bytes.
    """
    from tritonchaos.cli.waiting import Waiting
    from tritonchaos.store import export, open_history

    chosen = [name.strip() for name in tables.split(",")] if tables else []
    with Waiting(sys.stderr) as waiting:
        waiting.now("opening the run")
        history = open_history(run, most_kept=0)  # each event is wanted once
        written = export(history, to, out or Path(f"{run.resolve().name}-{to}"), chosen, waiting.now)
    for path in written:
        typer.echo(path)
