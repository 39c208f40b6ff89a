"""Runs one scenario from choosing a target to written reports: what `tritonchaos run` does."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Final

from tritonchaos import __version__
from tritonchaos.choosing import Chosen, choose
from tritonchaos.judging import judge_history
from tritonchaos.observations import Event, PhaseFacts, RunFacts
from tritonchaos.pbtxt import edit
from tritonchaos.plugins import REPORTERS, Reporter
from tritonchaos.recording import Order, record
from tritonchaos.scenario import Scenario
from tritonchaos.scenario_engine import Interrupt
from tritonchaos.schedule import Schedule, ScheduledStep, expand
from tritonchaos.store import RunStore, new_run_folder, open_history, point_latest
from tritonchaos.summary import FinishedRun

RUNS_FOLDER: Final = Path("tritonchaos-runs")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a scenario is to be run, apart from what its file says.

    Attributes:
        out: Run directory; must be empty or absent. None: a new folder below `runs_folder`.
        model_repository: A user's model repository; copied, never touched.
        template_folders: Searched for model templates before the shipped ones.
        accept_known: Known findings do not change the exit code.
        observers: Called with each event, such as a progress display.
        announce: Called once everything is chosen and the run directory exists, before the server starts.
    """

    out: Path | None = None
    runs_folder: Path = RUNS_FOLDER
    model_repository: Path | None = None
    template_folders: tuple[Path, ...] = ()
    accept_known: bool = False
    observers: tuple[Callable[[Event], None], ...] = ()
    announce: Callable[[Announcement], None] | None = None


@dataclass(frozen=True, slots=True)
class Announcement:
    """What was chosen, for the user to see before it happens."""

    scenario: Scenario
    schedule: Schedule
    chosen: Chosen
    folder: Path


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was judged and reported.

    Attributes:
        folder: Run directory.
        finished: History, verdict and results.
        written: Reports that were written.
    """

    folder: Path
    finished: FinishedRun
    written: tuple[Path, ...] = field(default=())


def run(scenario: Scenario, options: RunOptions | None = None, interrupt: Interrupt | None = None) -> Run:
    """Run a scenario, judge it and write its reports.

    Must be called from the main thread: the local server is tied to the life of the thread that starts it.

    Raises:
        ScenarioError, TemplateError, TargetError, StoreError: tritonchaos could not do its work; nothing is left
            running. What was recorded until then can be judged with `judge_folder`.
        KeyboardInterrupt: The user asked twice to stop.
    """
    options = options or RunOptions()
    chosen = choose(scenario, options.template_folders)
    schedule = expand(scenario)
    _check_edits(schedule, chosen)
    folder = _run_folder(scenario, options)
    facts = _facts(scenario, schedule, chosen, folder, options)
    with RunStore.create(folder, facts, scenario.text) as store:
        if options.out is None:
            point_latest(folder)
        if options.announce is not None:
            options.announce(Announcement(scenario, schedule, chosen, folder))
        order = Order(scenario, schedule, chosen, facts, options.model_repository, options.observers)
        record(order, store, interrupt or Interrupt())
    return judge_folder(folder)


def judge_folder(folder: Path) -> Run:
    """Judge a run directory and write its reports; needs nothing but the folder.

    Raises:
        StoreError: It is not a run directory, or cannot be read.
    """
    finished = judge_history(open_history(folder))
    return Run(folder, finished, tuple(write_reports(finished, folder)))


def write_reports(finished: FinishedRun, folder: Path) -> list[Path]:
    """Let every reporter write into the run directory."""
    reporters: list[Reporter] = [REPORTERS[name]() for name in REPORTERS.names()]
    return [path for reporter in reporters for path in reporter.render(finished, folder)]


def _run_folder(scenario: Scenario, options: RunOptions) -> Path:
    if options.out is not None:
        return options.out
    return new_run_folder(options.runs_folder, scenario.scenario, datetime.now(timezone.utc))


def _facts(scenario: Scenario, schedule: Schedule, chosen: Chosen, folder: Path, options: RunOptions) -> RunFacts:
    return RunFacts(
        run_id=folder.name,
        tritonchaos_version=__version__,
        scenario=scenario.scenario,
        seed=scenario.seed,
        started_utc=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        target={**chosen.target.describe(), "machine": platform.machine(), "kernel": platform.release()},
        target_skipped=chosen.skipped,
        variants=chosen.variants,
        uses_gpu=any(model.needs_gpu for model in chosen.models.values()),
        unavailable={},
        sample_count=scenario.sample.count,
        phases=tuple(PhaseFacts(p.name, p.arm, p.kind, p.at_most) for p in schedule.phases),
        checks=tuple((check.name, dict(check.fields)) for check in scenario.check),
        known=tuple(dict(entry) for entry in scenario.known_entries()),
        metrics=tuple(scenario.sample.metrics),
        accept_known=options.accept_known,
    )


def _check_edits(schedule: Schedule, chosen: Chosen) -> None:
    """Try every edit of config.pbtxt on its text, so that a wrong field path is refused before anything starts."""
    first = {name: _config_text(model.files) for name, model in chosen.models.items()}
    texts = dict(first)
    for step in _edits(schedule):
        model = step.spec.model
        if step.spec.name == "edit_config" and model in texts:
            texts[model] = edit(texts[model], step.spec.fields["set"])
        elif step.spec.name == "restore":
            texts.update(first if model is None else {model: first[model]} if model in first else {})


def _edits(schedule: Schedule) -> Iterator[ScheduledStep]:
    """Steps in the order in which they run, with the first cycle of each arm standing for all."""
    for phase in schedule.phases:
        yield from phase.before()
        for cycle in islice(phase.cycles(), phase.warm_up_cycles + 2):
            yield from cycle.steps
        yield from phase.steps()
        yield from phase.after()


def _config_text(files: Mapping[str, bytes | Path]) -> str:
    content = files.get("config.pbtxt", b"")
    return (content.read_bytes() if isinstance(content, Path) else content).decode("utf-8", "replace")
