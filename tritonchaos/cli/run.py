"""`tritonchaos run`: run scenarios, judge them, report them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tritonchaos.cli.options import Json, Plugins, Reports, RunsFolder

if TYPE_CHECKING:
    from tritonchaos.overriding import Overrides
    from tritonchaos.running import Announcement, RunOptions
    from tritonchaos.running_sets import Entry, SetRun


def _complete_scenario(incomplete: str) -> list[str]:
    from tritonchaos.finding_scenarios import shipped_scenarios

    beside = Path(incomplete)
    folder = beside if incomplete.endswith("/") else beside.parent
    files = sorted(folder.glob("*")) if folder.is_dir() else []
    found = [f"{path}/" if path.is_dir() else str(path) for path in files if path.is_dir() or path.suffix == ".yaml"]
    return [name for name in [*shipped_scenarios(), *found] if name.startswith(incomplete)]


_SCENARIOS = typer.Argument(
    help="Scenario files, folders of them, or names of shipped scenarios.",
    metavar="SCENARIO",
    show_default=False,
    autocompletion=_complete_scenario,
)
_SET = typer.Option(
    "--set",
    help="PATH=VALUE for any field, such as phases.baseline.cycles=3; the value is YAML. May be given again.",
    metavar="PATH=VALUE",
    envvar="TRITONCHAOS_SET",
)
_SEED = typer.Option(help="Seed of all random choices; overrides the scenario's.", envvar="TRITONCHAOS_SEED")
_CYCLES = typer.Option(
    help="Cycles of every phase on trial; control phases keep theirs.", min=1, envvar="TRITONCHAOS_CYCLES"
)
_OUT = typer.Option(help="Run directory, or that of the set; must be empty or absent.", envvar="TRITONCHAOS_OUT")
_SERVER = typer.Option(help="tritonserver to use; no other target is tried.", envvar="TRITONCHAOS_SERVER_PATH")
_IMAGE = typer.Option(help="Docker image to use; no other target is tried.", envvar="TRITONCHAOS_IMAGE")
_URL = typer.Option(help="Address of a server that is up; no other target is tried.", envvar="TRITONCHAOS_URL")
_TARGET = typer.Option(help="Target to use; no other is tried.", envvar="TRITONCHAOS_TARGET")
_PULL = typer.Option(
    help="When the target docker fetches its image: missing, always or never.", envvar="TRITONCHAOS_PULL"
)
_GPUS = typer.Option(help='GPUs to use, by number or UUID: "0,1".', envvar="TRITONCHAOS_GPUS")
_MODELS = typer.Option(
    help="Model repository to copy into the run; never touched.", envvar="TRITONCHAOS_MODEL_REPOSITORY"
)
_VARIANT = typer.Option(help="Variant of every template model.", envvar="TRITONCHAOS_VARIANT")
_TEMPLATES = typer.Option(
    "--templates", help="Folder with model templates of your own.", envvar="TRITONCHAOS_TEMPLATES"
)
_MAX_TIME = typer.Option(
    help='Longest time of each run, such as "10min": it finishes its cycle and is judged, 3 if undecided.',
    envvar="TRITONCHAOS_MAX_TIME",
)
_FAIL_FAST = typer.Option(
    "--fail-fast", help="Begin no run after one that failed or could not be run.", envvar="TRITONCHAOS_FAIL_FAST"
)
_KNOWN = typer.Option(
    "--accept-known", help="Known findings do not change the exit code.", envvar="TRITONCHAOS_ACCEPT_KNOWN"
)
_VERBOSE = typer.Option(
    "--verbose",
    "-v",
    help="With --dry-run: also choose the target, and print the command that would start its server.",
    envvar="TRITONCHAOS_VERBOSE",
)
_DRY = typer.Option("--dry-run", help="Print the schedule and stop; nothing is started.", envvar="TRITONCHAOS_DRY_RUN")


def run_command(
    scenarios: Annotated[list[str], _SCENARIOS],
    settings: Annotated[list[str] | None, _SET] = None,
    seed: Annotated[int | None, _SEED] = None,
    cycles: Annotated[int | None, _CYCLES] = None,
    out: Annotated[Path | None, _OUT] = None,
    runs: RunsFolder = Path("tritonchaos-runs"),
    server_path: Annotated[Path | None, _SERVER] = None,
    image: Annotated[str | None, _IMAGE] = None,
    url: Annotated[str | None, _URL] = None,
    target: Annotated[str | None, _TARGET] = None,
    pull: Annotated[str | None, _PULL] = None,
    gpus: Annotated[str | None, _GPUS] = None,
    model_repository: Annotated[Path | None, _MODELS] = None,
    variant: Annotated[str | None, _VARIANT] = None,
    templates: Annotated[list[Path] | None, _TEMPLATES] = None,
    max_time: Annotated[str | None, _MAX_TIME] = None,
    fail_fast: Annotated[bool, _FAIL_FAST] = False,
    accept_known: Annotated[bool, _KNOWN] = False,
    dry_run: Annotated[bool, _DRY] = False,
    verbose: Annotated[bool, _VERBOSE] = False,
    report: Reports = None,
    json: Json = False,
    plugin: Plugins = None,
) -> None:
    """Run scenarios against a real tritonserver, judge them, and write their reports.

    One scenario: the run directory is its own. Several, or one with `vary`: a folder for the set, with one run
    directory each and set.json; the exit code is the worst of all.

    Exit codes: 0 pass, 1 findings, 2 wrong usage or scenario, 3 inconclusive, 4 no target could be used,
    70 own fault, 130 interrupted.
    """
    from tritonchaos.overriding import Overrides
    from tritonchaos.running import RunOptions, longest_time_s

    overrides = Overrides(
        settings=tuple(settings or ()),
        seed=seed,
        variant=variant,
        cycles=cycles,
        server_path=server_path,
        image=image,
        url=url,
        gpus=gpus,
        target=target,
        pull=pull,
    )
    options = RunOptions(
        out=out,
        runs_folder=runs,
        model_repository=model_repository,
        template_folders=tuple(templates or ()),
        accept_known=accept_known,
        max_time_s=longest_time_s(max_time),
        reports=tuple(report or ()),
    )
    if dry_run:
        _print_schedules(scenarios, overrides, options, plugin or (), tells_start=verbose)
        return
    done = _run(scenarios, overrides, options, plugins=plugin or (), fail_fast=fail_fast)
    _print(done, as_json=json)
    raise typer.Exit(done.exit_code)


def _run(scenarios: list[str], overrides: Overrides, options: RunOptions, **how: Any) -> SetRun:
    from dataclasses import replace

    import tritonchaos
    from tritonchaos.cli.progress import Progress
    from tritonchaos.cli.signals import obeyed
    from tritonchaos.scenario_engine import Interrupt

    interrupt = Interrupt()
    with Progress(sys.stderr, options.max_time_s) as progress, obeyed(interrupt, progress.line):
        begun: list[Path] = []

        def announce(told: Announcement) -> None:
            begun.append(told.folder)
            progress.announce(told)

        watched = replace(options, observers=(progress.see,), announce=announce)

        def finished(entry: Entry) -> None:
            told = entry.run.finished.headline if entry.run is not None else entry.error
            progress.line(f"{entry.planned.name} {entry.planned.cell}".strip() + f": {told}")

        try:
            return tritonchaos.run_set(scenarios, overrides, watched, interrupt, finished=finished, **how)
        except KeyboardInterrupt:
            for folder in begun[-1:]:
                progress.line(f"stopped at once; `tritonchaos judge {folder}` judges what was recorded until then")
            raise


def _print(done: SetRun, *, as_json: bool) -> None:
    from tritonchaos.cli.output import print_finished, print_set
    from tritonchaos.cli.progress import say

    if done.only is not None:
        print_finished(done.only.finished, as_json=as_json)
        say(f"run directory: {done.only.folder}")
    else:
        print_set(done, as_json=as_json)
        say(f"set directory: {done.folder}")


def _print_schedules(
    scenarios: list[str], overrides: Overrides, options: RunOptions, plugins: list[Path] | tuple[()], tells_start: bool
) -> None:
    from tritonchaos.cli.output import write
    from tritonchaos.plugins import load_plugins
    from tritonchaos.preflight import starting_lines
    from tritonchaos.running_sets import plan
    from tritonchaos.schedule import describe, expand

    load_plugins(plugins)
    planned = plan(scenarios, overrides, options.model_repository)
    for one in planned:
        if one.error is not None:
            raise one.error
        assert one.scenario is not None
        if len(planned) > 1:
            write(f"# {one.name} {one.cell}".rstrip() + "\n")
        write("".join(f"{line}\n" for line in describe(expand(one.scenario))))
        if tells_start:
            folder = options.out or options.runs_folder / "RUN"
            lines = starting_lines(one.scenario, folder, options.template_folders)
            write("".join(f"\n{line}" for line in lines) + "\n")
