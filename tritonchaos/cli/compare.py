"""`tritonchaos compare`: two runs, or two sets of runs, of the same scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tritonchaos.cli.options import Plugins

if TYPE_CHECKING:
    from tritonchaos.comparing import Comparison

_BASE = typer.Argument(help="Run directory, set, or folder of runs to compare with.", metavar="BASE")
_CANDIDATE = typer.Argument(help="The same of what is to be judged.", metavar="CANDIDATE")
_JSON = typer.Option("--json", help="Print the comparison as JSON.", envvar="TRITONCHAOS_JSON")
_REPORT = typer.Option(
    "--report", help="Files to write: html,junit.", metavar="NAMES", envvar="TRITONCHAOS_COMPARE_REPORT"
)
_OUT = typer.Option("--out", "-o", help="Where they are written; none may be there.", envvar="TRITONCHAOS_COMPARE_OUT")
_UNLIKE = typer.Option(
    "--different-scenarios",
    help="Compare although the scenarios differ in more than their target.",
    envvar="TRITONCHAOS_DIFFERENT_SCENARIOS",
)
_ALL = typer.Option("--all", help="Show the times and peaks that are the same, too.", envvar="TRITONCHAOS_ALL")


def compare_command(
    base: Annotated[Path, _BASE],
    candidate: Annotated[Path, _CANDIDATE],
    report: Annotated[list[str] | None, _REPORT] = None,
    out: Annotated[Path, _OUT] = Path(),
    different_scenarios: Annotated[bool, _UNLIKE] = False,
    all_rows: Annotated[bool, _ALL] = False,
    json: Annotated[bool, _JSON] = False,
    plugin: Plugins = None,
) -> None:
    """Compare two runs, or two sets of runs, of the same scenarios: better, same, worse, new, fixed, cannot tell.

    Exit codes: 1 if something is worse or new, 3 if something that decides cannot be told, else 0.
    """
    from tritonchaos.comparing import compare, write_reports
    from tritonchaos.comparing.writing import check_reports
    from tritonchaos.plugins import load_plugins

    load_plugins(plugin or ())
    check_reports(report or (), out)
    comparison = compare(base, candidate, different_scenarios=different_scenarios)
    written = write_reports(comparison, report or (), out)
    _print(comparison, as_json=json, all_rows=all_rows)
    for path in written:
        typer.echo(f"written: {path}", err=True)
    raise typer.Exit(comparison.exit_code)


def _print(comparison: Comparison, *, as_json: bool, all_rows: bool) -> None:
    import json
    import shutil

    from tritonchaos.cli.compare_table import compare_table
    from tritonchaos.cli.output import wants_color, write
    from tritonchaos.comparing import document

    if as_json:
        write(json.dumps(document(comparison), indent=2, ensure_ascii=False) + "\n")
    else:
        write(compare_table(comparison, shutil.get_terminal_size((100, 40)).columns, wants_color(), all_rows=all_rows))
