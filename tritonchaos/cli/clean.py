"""`tritonchaos clean`: remove what killed runs left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tritonchaos.cli.options import RunsFolder

_DRY = typer.Option("--dry-run", help="List only; remove nothing.", envvar="TRITONCHAOS_DRY_RUN")
_YES = typer.Option("--yes", "-y", help="Remove without asking.", envvar="TRITONCHAOS_YES")


def clean_command(
    runs: RunsFolder = Path("tritonchaos-runs"),
    dry_run: Annotated[bool, _DRY] = False,
    yes: Annotated[bool, _YES] = False,
) -> None:
    """List, then remove what killed runs left: processes, containers, shared memory, scratch folders. Records are kept.

    On a terminal it asks before it removes.
    """
    from tritonchaos.cleaning import find_leftovers, remove

    leftovers = find_leftovers(runs)
    for leftover in leftovers:
        typer.echo(f"{leftover.kind} {leftover.name or leftover.what} (run {leftover.run})")
    if not leftovers:
        typer.echo("nothing was left behind")
        return
    if dry_run:
        return
    if sys.stdin.isatty() and not yes and not typer.confirm(f"Remove these {len(leftovers)}?", default=False):
        typer.echo("nothing was removed")
        return
    for leftover in leftovers:
        remove(leftover)
    typer.echo(f"removed {len(leftovers)}")
