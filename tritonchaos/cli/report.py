"""`tritonchaos report`: write the reports of a run directory again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tritonchaos.cli.options import Plugins, Reports, RunFolder


class PictureFormat(str, Enum):
    """What `--format` takes; each is the name of a reporter."""

    PNG = "png"
    SVG = "svg"


Picture = Annotated[
    PictureFormat | None,
    typer.Option(
        "--format",
        help="Draw post_unload.png or .svg, for a chat or an issue (extra `plots`).",
        envvar="TRITONCHAOS_FORMAT",
    ),
]


def report_command(run: RunFolder, report: Reports = None, picture: Picture = None, plugin: Plugins = None) -> None:
    """Write the reports of a run directory, or of a set, again and say where they are; needs no server."""
    from tritonchaos.cli.waiting import Waiting
    from tritonchaos.plugins import load_plugins
    from tritonchaos.running import report_folder
    from tritonchaos.running_sets import report_set
    from tritonchaos.store import is_set

    load_plugins(plugin or ())
    reports = tuple(report or ())
    if picture is not None:
        from tritonchaos.plotting import require_matplotlib

        require_matplotlib()
        reports = (*reports, picture.value)
    say = partial(typer.echo, err=True)
    with Waiting(sys.stderr) as waiting:
        written: Sequence[Path]
        if is_set(run):
            written = report_set(run, reports, waiting.now)
        else:
            written = report_folder(run, reports, say=say, doing=waiting.now).written
    for path in written:
        typer.echo(path)
