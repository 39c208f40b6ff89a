"""`tritonchaos judge`: judge a run directory again, without a server."""

from __future__ import annotations

import typer

from tritonchaos.cli.options import Json, Plugins, RunFolder


def judge_command(run: RunFolder, json: Json = False, plugin: Plugins = None) -> None:
    """Judge a run directory again and write its reports; needs no server.

    Returns the same exit code as the run itself.
    """
    from tritonchaos.cli.output import print_finished
    from tritonchaos.plugins import load_plugins
    from tritonchaos.running import judge_folder

    load_plugins(plugin or ())
    done = judge_folder(run)
    print_finished(done.finished, as_json=json)
    raise typer.Exit(done.finished.exit_code)
