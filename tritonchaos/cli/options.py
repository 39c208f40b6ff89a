"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[
    Path,
    typer.Argument(help="Run directory, such as tritonchaos-runs/latest.", metavar="RUN", show_default=False),
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="Python file with plug-ins; may be given again.", envvar="TRITONCHAOS_PLUGIN"),
]
RunsFolder = Annotated[
    Path,
    typer.Option("--runs", help="Where run directories are kept.", envvar="TRITONCHAOS_RUNS"),
]
Reports = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        help="Reports to write, by name (`tritonchaos list`): html,junit. results.json is always written.",
        metavar="NAMES",
        envvar="TRITONCHAOS_REPORT",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print results.json on standard output.", envvar="TRITONCHAOS_JSON")]
