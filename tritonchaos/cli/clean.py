"""`tritonchaos clean`: remove what killed runs left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tritonchaos.cli.options import RunsFolder


def clean_command(
    runs: RunsFolder = Path("tritonchaos-runs"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List only; remove nothing.")] = False,
) -> None:
    """List, then remove what killed runs left: processes, shared memory, scratch folders. Records are kept."""
    from tritonchaos.cleaning import find_leftovers, remove

    leftovers = find_leftovers(runs)
    for leftover in leftovers:
        typer.echo(f"{leftover.kind} {leftover.what} (run {leftover.run})")
    if not leftovers:
        typer.echo("nothing was left behind")
    elif not dry_run:
        for leftover in leftovers:
            remove(leftover)
        typer.echo(f"removed {len(leftovers)}")
