"""`tritonchaos run`: run a scenario, judge it, report it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tritonchaos.cli.options import Json, Plugins, RunsFolder

if TYPE_CHECKING:
    from tritonchaos.scenario import Scenario
    from tritonchaos.scenario_engine import Interrupt

_SEED = typer.Option(help="Seed of all random choices; overrides the scenario's.", envvar="TRITONCHAOS_SEED")
_OUT = typer.Option(help="Run directory; must be empty or absent.", envvar="TRITONCHAOS_OUT")
_SERVER = typer.Option(help="tritonserver to use; no other target is tried.", envvar="TRITONCHAOS_SERVER_PATH")
_MODELS = typer.Option(
    help="Model repository to copy into the run; never touched.", envvar="TRITONCHAOS_MODEL_REPOSITORY"
)
_VARIANT = typer.Option(help="Variant of every template model.", envvar="TRITONCHAOS_VARIANT")
_TEMPLATES = typer.Option(
    "--templates", help="Folder with model templates of your own.", envvar="TRITONCHAOS_TEMPLATES"
)
_KNOWN = typer.Option(help="Known findings do not change the exit code.", envvar="TRITONCHAOS_ACCEPT_KNOWN")
_DRY = typer.Option("--dry-run", help="Print the schedule and stop; nothing is started.", envvar="TRITONCHAOS_DRY_RUN")


def run_command(
    scenario: Annotated[str, typer.Argument(help="Scenario file, or the name of a shipped scenario.")],
    seed: Annotated[int | None, _SEED] = None,
    out: Annotated[Path | None, _OUT] = None,
    runs: RunsFolder = Path("tritonchaos-runs"),
    server_path: Annotated[Path | None, _SERVER] = None,
    model_repository: Annotated[Path | None, _MODELS] = None,
    variant: Annotated[str | None, _VARIANT] = None,
    templates: Annotated[list[Path] | None, _TEMPLATES] = None,
    accept_known: Annotated[bool, _KNOWN] = False,
    dry_run: Annotated[bool, _DRY] = False,
    json: Json = False,
    plugin: Plugins = None,
) -> None:
    """Run a scenario against a real tritonserver, judge it, and write its reports.

    Exit codes: 0 pass, 1 findings, 2 wrong usage or scenario, 3 inconclusive, 4 no target could be used,
    70 own fault, 130 interrupted.
    """
    from tritonchaos.plugins import load_plugins

    load_plugins(plugin or ())
    parsed = _load(scenario, model_repository, seed, variant, server_path)
    if dry_run:
        _print_schedule(parsed)
        return
    from tritonchaos.cli.output import print_finished
    from tritonchaos.cli.progress import Progress
    from tritonchaos.running import RunOptions
    from tritonchaos.running import run as run_scenario
    from tritonchaos.scenario_engine import Interrupt

    interrupt = Interrupt()
    with Progress(sys.stderr) as progress, _signals(interrupt):
        options = RunOptions(
            out=out,
            runs_folder=runs,
            model_repository=model_repository,
            template_folders=tuple(templates or ()),
            accept_known=accept_known,
            observers=(progress.see,),
            announce=progress.announce,
        )
        done = run_scenario(parsed, options, interrupt)
    print_finished(done.finished, as_json=json)
    print(f"run directory: {done.folder}", file=sys.stderr)
    raise typer.Exit(done.finished.exit_code)


def _load(
    name: str, model_repository: Path | None, seed: int | None, variant: str | None, server_path: Path | None
) -> Scenario:
    from tritonchaos.finding_scenarios import find_scenario
    from tritonchaos.repository import model_names
    from tritonchaos.scenario import load_scenario

    extra = model_names(model_repository) if model_repository is not None else ()
    scenario = load_scenario(find_scenario(name), extra_models=extra)
    scenario = scenario.with_overrides(seed=seed, variant=variant)
    return scenario if server_path is None else scenario.with_target("local", {"server_path": str(server_path)})


def _print_schedule(scenario: Scenario) -> None:
    from tritonchaos.schedule import describe, expand

    for line in describe(expand(scenario)):
        print(line)


@contextmanager
def _signals(interrupt: Interrupt) -> Iterator[None]:
    """Ctrl-C once finishes the cycle, twice stops at once; SIGTERM and SIGHUP stop at once."""

    def on_interrupt(number: int, frame: object) -> None:
        if interrupt.is_asked:
            # The clean-up that follows must not be broken by a third one.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        interrupt.ask()
        print("finishing the cycle; Ctrl-C again stops at once", file=sys.stderr)

    def on_end(number: int, frame: object) -> None:
        for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    handlers = {signal.SIGINT: on_interrupt, signal.SIGTERM: on_end, signal.SIGHUP: on_end}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
