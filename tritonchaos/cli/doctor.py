"""`tritonchaos doctor`: what this machine has for tritonchaos, and what to do about what it lacks."""

from __future__ import annotations

from typing import Annotated

import typer

from tritonchaos.cli.options import Plugins

_NO_CONTAINER = typer.Option(
    "--no-container", help="Start no container, not even for an instant.", envvar="TRITONCHAOS_NO_CONTAINER"
)


def doctor_command(plugin: Plugins = None, no_container: Annotated[bool, _NO_CONTAINER] = False) -> None:
    """Check tritonserver, compiler, GPU, TensorRT, Docker, disk and shared memory; say what to do.

    Where there is a Docker engine with a tritonserver image, a container is run for an instant.
    """
    from tritonchaos.cli.output import wants_color
    from tritonchaos.doctor import examine
    from tritonchaos.plugins import load_plugins

    load_plugins(plugin or ())
    marks = {True: ("ok", "green"), False: ("missing", "red"), None: ("note", "yellow")}
    for check in examine(try_container=not no_container):
        mark, color = marks[check.ok]
        shown = typer.style(f"{mark:<8}", fg=color) if wants_color() else f"{mark:<8}"
        typer.echo(f"{shown}{check.name}: {check.found}")
        if check.what_to_do and check.ok is not True:
            typer.echo(f"        -> {check.what_to_do}")
