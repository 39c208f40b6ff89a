"""`tritonchaos history`: the runs of a folder, and how each scenario developed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tritonchaos.run_index import IndexedRun, VersionRuns

_FOLDER = typer.Argument(help="Folder that holds the runs.", metavar="[DIR]", envvar="TRITONCHAOS_RUNS")
_SCENARIO = typer.Option(help="Only runs of this scenario.", envvar="TRITONCHAOS_SCENARIO")
_LAST = typer.Option(help="How many of the last runs are listed; 0: all.", min=0, envvar="TRITONCHAOS_LAST")
_REBUILD = typer.Option("--rebuild", help="Read every run again.", envvar="TRITONCHAOS_REBUILD")
_JSON = typer.Option("--json", help="Print runs and trends as JSON.", envvar="TRITONCHAOS_JSON")


def history_command(
    folder: Annotated[Path, _FOLDER] = Path("tritonchaos-runs"),
    scenario: Annotated[str | None, _SCENARIO] = None,
    last: Annotated[int, _LAST] = 20,
    rebuild: Annotated[bool, _REBUILD] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """List the runs of a folder with their verdicts, and the trend of each scenario from version to version.

    An index in the folder (.history.db) keeps what was read; it is made again from the folders at will.
    """
    from tritonchaos.cli.output import write
    from tritonchaos.run_index import index_runs

    runs = [run for run in index_runs(folder, rebuild=rebuild) if scenario in (None, run.scenario)]
    write(_as_json(runs) if as_json else "".join(f"{line}\n" for line in _lines(folder, runs, last)))


def _as_json(runs: Sequence[IndexedRun]) -> str:
    import json
    from dataclasses import asdict

    from tritonchaos.run_index import trends
    from tritonchaos.summary import portable

    document = {
        "schema": "tritonchaos.history/1",
        "runs": [{name: value for name, value in asdict(run).items() if name != "stamp"} for run in runs],
        "trends": [
            {
                "scenario": trend.title,
                "versions": [
                    {"version": one.version, "marks": one.marks, "verdicts": one.verdicts, "kinds": list(one.kinds)}
                    for one in trend.versions
                ],
                "change": trend.change or None,
            }
            for trend in trends(runs)
        ],
    }
    return json.dumps(portable(document), indent=2, ensure_ascii=False) + "\n"


def _lines(folder: Path, runs: Sequence[IndexedRun], last: int) -> Iterator[str]:
    from tritonchaos.run_index import trends

    found = trends(runs)
    yield f"{folder}: {_number(len(runs), 'run')}, {_number(len(found), 'scenario')}"
    if not runs:
        return
    yield "(. pass, F findings, ? inconclusive, - neither; the oldest first)"
    for trend in found:
        yield ""
        yield _clean(trend.title)
        yield from (f"  {line}" for line in _version_lines(trend.versions))
        if trend.change:
            yield f"  {_clean(trend.change)}"
    shown = runs if last == 0 else runs[-last:]
    yield ""
    yield f"the last {len(shown)}" if len(shown) < len(runs) else "all runs"
    yield from (f"  {_run_line(run)}" for run in shown)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _version_lines(versions: Sequence[VersionRuns]) -> Iterator[str]:
    width = max(len(_clean(one.version)) for one in versions)
    for one in versions:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in one.verdicts.items())
        kinds = f" ({', '.join(one.kinds)})" if one.kinds else ""
        yield f"{_clean(one.version):<{width}}  {one.marks[-60:]}  {counts}{kinds}{_growth(one)}"


def _growth(one: VersionRuns) -> str:
    from tritonchaos.summary import amount_text

    if one.bytes_per_cycle is None:
        return ""
    metric = next(run.metric for run in one.runs if run.growth == "LEAK")
    return f", {metric} {amount_text(metric, one.bytes_per_cycle)} per cycle"


def _run_line(run: IndexedRun) -> str:
    when = run.started_utc[:16] or "?" * 16
    told = f"{run.verdict}{f' ({run.kinds})' if run.kinds else ''}{', interrupted' if run.interrupted else ''}"
    problem = f": {run.problem}" if run.problem else ""
    parts = (when, run.title, run.version or "unknown version", f"{told}{problem}", run.folder)
    return "  ".join(_clean(part) for part in parts)


def _clean(text: str) -> str:
    from tritonchaos.summary import printable, without_folders

    return " ".join(printable(without_folders(text)).split())
