"""What `import tritonchaos` offers to Python: the same runs as on the command line, which calls this too."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tritonchaos.errors import UsageError
from tritonchaos.finding_scenarios import Given
from tritonchaos.observations import Event, JsonValue
from tritonchaos.overriding import Overrides
from tritonchaos.plugins import load_plugins
from tritonchaos.running import RUNS_FOLDER, Run, RunOptions, longest_time_s
from tritonchaos.running_sets import Entry, SetRun, plan
from tritonchaos.running_sets import run_set as run_planned
from tritonchaos.scenario_engine import Interrupt


def run(
    scenario: Given,
    *,
    set: Mapping[str, JsonValue] | None = None,
    seed: int | None = None,
    variant: str | None = None,
    cycles: int | None = None,
    server_path: str | Path | None = None,
    image: str | None = None,
    url: str | None = None,
    gpus: str | None = None,
    target: str | None = None,
    pull: str | None = None,
    max_time: str | float | None = None,
    out: Path | None = None,
    runs: Path = RUNS_FOLDER,
    model_repository: Path | None = None,
    templates: Sequence[Path] = (),
    plugins: Sequence[Path] = (),
    accept_known: bool = False,
    reports: Sequence[str] = (),
    observers: Sequence[Callable[[Event], None]] = (),
) -> Run:
    """Run a scenario against a real tritonserver, judge it and write its reports, as `tritonchaos run` does.

    Must be called from the main thread: a local server is tied to the life of the thread that starts it.

    Args:
        scenario: A file, the name of a shipped scenario, the YAML text itself, or its plain values.
        set: Path of a field -> value in place of the scenario's, such as {"phases.baseline.cycles": 3}.
        max_time: Longest time of the run, such as "10min" or a number of seconds.
        out: Run directory, empty or absent; None: a new one below `runs`.
        reports: Names of the reporters that write; none: those that do so by default.
        observers: Called with each event.

    The other arguments are those of the command line.

    Returns:
        Its folder, and `finished` with verdict, exit code and results.

    Raises:
        TritonChaosError: tritonchaos could not do its work; nothing is left running.
    """
    overrides = Overrides(
        settings=tuple(f"{path}={json.dumps(value)}" for path, value in (set or {}).items()),
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
        template_folders=tuple(templates),
        accept_known=accept_known,
        max_time_s=longest_time_s(max_time),
        reports=tuple(reports),
        observers=tuple(observers),
    )
    load_plugins(plugins)
    planned = plan([scenario], overrides, model_repository)
    if len(planned) > 1 or planned[0].cell:
        raise UsageError("this is more than one run", hint="call tritonchaos.run_set")
    done = run_planned(planned, options).only
    assert done is not None
    return done


def run_set(
    scenarios: Sequence[Given],
    overrides: Overrides | None = None,
    options: RunOptions | None = None,
    interrupt: Interrupt | None = None,
    *,
    plugins: Sequence[Path] = (),
    fail_fast: bool = False,
    finished: Callable[[Entry], None] | None = None,
) -> SetRun:
    """Run scenarios, folders of them, and the cells of those that vary, as one set with one exit code.

    Arguments and errors as of `running_sets.plan` and `running_sets.run_set`.
    """
    load_plugins(plugins)
    planned = plan(scenarios, overrides, options.model_repository if options else None)
    return run_planned(planned, options, interrupt, fail_fast=fail_fast, finished=finished)
