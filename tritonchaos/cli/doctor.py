"""`tritonchaos doctor`: what this machine has for tritonchaos, and what to do about what it lacks."""

from __future__ import annotations

import typer

from tritonchaos.cli.options import Plugins


def doctor_command(plugin: Plugins = None) -> None:
    """Check tritonserver, compiler, GPU, TensorRT, Docker, disk and shared memory; say what to do."""
    from tritonchaos.cli.output import wants_color
    from tritonchaos.doctor import examine
    from tritonchaos.plugins import load_plugins

    load_plugins(plugin or ())
    marks = {True: ("ok", "green"), False: ("missing", "red"), None: ("note", "yellow")}
    for check in examine():
        mark, color = marks[check.ok]
        shown = typer.style(f"{mark:<8}", fg=color) if wants_color() else f"{mark:<8}"
        typer.echo(f"{shown}{check.name}: {check.found}")
        if check.what_to_do and check.ok is not True:
            typer.echo(f"        -> {check.what_to_do}")
