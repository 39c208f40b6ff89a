"""`tritonchaos repro`: make a bundle that shows a finding again without tritonchaos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tritonchaos.cli.options import Plugins, RunFolder

_OUT = typer.Option(
    "--out",
    "-o",
    help="Folder of the bundle, new; DIR.tar.gz is written beside it.",
    metavar="DIR",
    envvar="TRITONCHAOS_OUT",
)
_FINDING = typer.Option("--finding", help="Id of the finding (default: the worst).", envvar="TRITONCHAOS_FINDING")
_WEIGHTS = typer.Option("--include-weights", help="Put model files in too.", envvar="TRITONCHAOS_INCLUDE_WEIGHTS")
_STAND_IN = typer.Option(
    "--stand-in",
    help="Serve a template with the same inputs and outputs for own models.",
    envvar="TRITONCHAOS_STAND_IN",
)


def repro_command(
    run: RunFolder,
    out: Annotated[Path, _OUT],
    finding: Annotated[str | None, _FINDING] = None,
    include_weights: Annotated[bool, _WEIGHTS] = False,
    stand_in: Annotated[bool, _STAND_IN] = False,
    plugin: Plugins = None,
) -> None:
    """Make a bundle of one finding: one Python program, the models, and an issue that is ready to paste.

    Names, addresses, paths and secrets are taken out; the bundle's REDACTED.md lists what was.
    """
    from tritonchaos.plugins import load_plugins
    from tritonchaos.reproducing import BundleOptions, write_bundle

    load_plugins(plugin or ())
    written = write_bundle(run, out, BundleOptions(finding, include_weights, stand_in))
    found = written.finding
    typer.echo(f"{found.kind} {found.id}: {found.title}")
    typer.echo(written.folder)
    typer.echo(written.archive)
    for line in written.taken:
        typer.echo(f"taken out: {line}", err=True)
