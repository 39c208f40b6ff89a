"""`tritonchaos report`: write the reports of a run directory again."""

from __future__ import annotations

import typer

from tritonchaos.cli.options import Plugins, Reports, RunFolder


def report_command(run: RunFolder, report: Reports = None, plugin: Plugins = None) -> None:
    """Write the reports of a run directory, or of a set, again and say where they are; needs no server."""
    from tritonchaos.plugins import load_plugins
    from tritonchaos.running import judge_folder
    from tritonchaos.running_sets import report_set
    from tritonchaos.store import is_set

    load_plugins(plugin or ())
    reports = tuple(report or ())
    for path in report_set(run, reports) if is_set(run) else judge_folder(run, reports).written:
        typer.echo(path)
