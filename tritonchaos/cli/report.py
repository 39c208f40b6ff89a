"""`tritonchaos report`: write the reports of a run directory again."""

from __future__ import annotations

import typer

from tritonchaos.cli.options import Plugins, RunFolder


def report_command(run: RunFolder, plugin: Plugins = None) -> None:
    """Write the reports of a run directory again and say where they are; needs no server."""
    from tritonchaos.plugins import load_plugins
    from tritonchaos.running import judge_folder

    load_plugins(plugin or ())
    for path in judge_folder(run).written:
        typer.echo(path)
