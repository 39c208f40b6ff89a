"""`tritonchaos judge`: judge a run directory again, or a series recorded elsewhere, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tritonchaos.cli.options import Plugins

_RUN = typer.Argument(help="Run directory, such as tritonchaos-runs/latest.", metavar="[RUN]", show_default=False)
_SERIES = typer.Option(
    help="Judge this series instead: JSON lines, CSV, or a log of nvidia-smi; - is standard input.",
    metavar="FILE",
    envvar="TRITONCHAOS_SERIES",
)
_COLUMN = typer.Option(help="Column of a CSV, by name or number.", envvar="TRITONCHAOS_COLUMN")
_CHANNEL = typer.Option(help="What a series is of: device, host or count.", envvar="TRITONCHAOS_CHANNEL")
_QUANTUM = typer.Option(help='Granularity of a series, such as "2MiB".', envvar="TRITONCHAOS_QUANTUM")
_BUDGET = typer.Option(
    help="Values of a series after which it is left undecided; 0: judge all, beyond the verdict too.",
    min=0,
    envvar="TRITONCHAOS_SERIES_BUDGET",
)
_CHECKS = typer.Option(
    "--checks",
    help="Judge by these checks instead, as memory_growth,hang or a YAML list; the run directory stays as it is.",
    metavar="NAMES",
    envvar="TRITONCHAOS_CHECKS",
)
_OUT = typer.Option(
    help="With --checks: folder for the reports; must be empty or absent.", envvar="TRITONCHAOS_JUDGE_OUT"
)
_JSON = typer.Option("--json", help="Print results.json, or one line per series.", envvar="TRITONCHAOS_JSON")


def judge_command(
    run: Annotated[Path | None, _RUN] = None,
    checks: Annotated[str | None, _CHECKS] = None,
    out: Annotated[Path | None, _OUT] = None,
    series: Annotated[str | None, _SERIES] = None,
    column: Annotated[str | None, _COLUMN] = None,
    channel: Annotated[str | None, _CHANNEL] = None,
    quantum: Annotated[str | None, _QUANTUM] = None,
    budget: Annotated[int | None, _BUDGET] = None,
    json: Annotated[bool, _JSON] = False,
    plugin: Plugins = None,
) -> None:
    """Judge a run directory again and write its reports, or judge a series recorded elsewhere; needs no server.

    Returns the same exit code as the run itself; for series 1 if one is LEAK, 3 if one is INCONCLUSIVE, else 0.
    """
    from tritonchaos.errors import UsageError

    if series is not None:
        if run is not None or checks is not None:
            raise UsageError("found a run directory or --checks beside --series, expected one of them")
        from tritonchaos.cli.judge_series import judge_file

        raise typer.Exit(judge_file(series, column, channel, quantum, budget, as_json=json))
    if run is None:
        raise UsageError("expected a run directory, or a series with --series FILE")
    if (column, channel, quantum, budget) != (None, None, None, None):
        raise UsageError("--column, --channel, --quantum and --budget are for --series; a run has its own")
    if out is not None and checks is None:
        raise UsageError("--out is for --checks; without it the reports are written into the run directory")
    _judge_run(run, checks, out, plugin or [], as_json=json)


def _judge_run(run: Path, checks: str | None, out: Path | None, plugins: list[Path], *, as_json: bool) -> None:
    from tritonchaos.cli.output import print_finished
    from tritonchaos.plugins import load_plugins
    from tritonchaos.running import judge_folder, judge_folder_with

    load_plugins(plugins)
    done = judge_folder(run) if checks is None else judge_folder_with(run, checks, out)
    print_finished(done.finished, as_json=as_json)
    raise typer.Exit(done.finished.exit_code)
