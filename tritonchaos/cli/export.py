"""`tritonchaos export`: series and events of a run for other programs."""

from __future__ import annotations

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


def export_command(
    run: RunFolder,
    to: Annotated[str, _TO] = "csv",
    out: Annotated[Path | None, _OUT] = None,
) -> None:
    """Write series, samples, readings, steps and events of a run as tables, and say where they are.

    `series` has the post-unload reading of each cycle and metric; `samples` those of the sampling thread; `readings`
    every single reading with its name; `steps` what was asked and answered; `events` everything, its fields as JSON.
    Times are ns since the run's start; memory is in bytes.
    """
    from tritonchaos.store import export, open_history

    history = open_history(run)
    for path in export(history, to, out or Path(f"{run.resolve().name}-{to}")):
        typer.echo(path)
