"""Runs one scenario from choosing a target to written reports: what `tritonchaos run` does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from tritonchaos import __version__, calibrated
from tritonchaos.choosing import Chosen, choose, usable_target
from tritonchaos.errors import RunBrokeOff, StoreError, TritonChaosError, UsageError
from tritonchaos.judging import build_checkers, find_watch, judge_with
from tritonchaos.kept_verdict import judge_again, judge_again_unless_kept
from tritonchaos.machine_facts import machine_facts
from tritonchaos.observations import Event, PhaseFacts, RunFacts, ServerStarted
from tritonchaos.plugins import Reporter, Target, Watch, choose_reporters
from tritonchaos.preflight import check_edits, check_shared_memory
from tritonchaos.recording import Order, record
from tritonchaos.scenario import Scenario, TargetEntry
from tritonchaos.scenario_engine import Interrupt
from tritonchaos.schedule import Schedule, expand
from tritonchaos.store import RunStore, new_run_folder, open_history, point_latest, prepare_folder
from tritonchaos.summary import FinishedRun
from tritonchaos.units import parse_seconds

RUNS_FOLDER: Final = Path("tritonchaos-runs")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a scenario is to be run, apart from what its file says.

    Attributes:
        out: Run directory; must be empty or absent. None: a new folder below `runs_folder`.
        model_repository: A user's model repository; copied, never touched.
        template_folders: Searched for model templates before the shipped ones.
        accept_known: Known findings do not change the exit code.
        max_time_s: Longest time of the run; the cycle in progress is finished, then it is judged. None: no limit.
        run_id: Name of the run in its reports; "": the name of its folder.
        reports: Names of the reporters that write; none: those that do so by default.
        within_set: It is one run of a set, which has reports of its own.
        usable: Makes a target and checks it.
        observers: Called with each event, such as a progress display.
        announce: Called once everything is chosen and the run directory exists, before the server starts.
    """

    out: Path | None = None
    runs_folder: Path = RUNS_FOLDER
    model_repository: Path | None = None
    template_folders: tuple[Path, ...] = ()
    accept_known: bool = False
    max_time_s: float | None = None
    run_id: str = ""
    reports: tuple[str, ...] = ()
    within_set: bool = False
    usable: Callable[[TargetEntry], Target] = usable_target
    observers: tuple[Callable[[Event], None], ...] = ()
    announce: Callable[[Announcement], None] | None = None


@dataclass(frozen=True, slots=True)
class Announcement:
    """What was chosen, for the user to see before it happens.

    Attributes:
        watch: The stopping rule, to be looked at while the run goes on; None where no check offers one.
    """

    scenario: Scenario
    schedule: Schedule
    chosen: Chosen
    folder: Path
    facts: RunFacts
    watch: Watch | None


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
    interrupt = interrupt or Interrupt()
    choose_reporters(options.reports)  # an unknown name is told before anything starts
    chosen = choose(scenario, options.template_folders, options.usable)
    schedule = expand(scenario)
    check_edits(schedule, chosen.models, options.model_repository)
    check_shared_memory(chosen)
    folder = _run_folder(scenario, options)
    facts = _facts(scenario, schedule, chosen, folder, options)
    watch = _watch(facts)
    with RunStore.create(folder, facts, scenario.text) as store:
        if options.out is None:
            point_latest(folder)
        if options.announce is not None:
            options.announce(Announcement(scenario, schedule, chosen, folder, facts, watch))
        begun = _Begun()
        observers: tuple[Callable[[Event], None], ...] = (begun, *options.observers)
        order = Order(scenario, schedule, chosen, facts, options.model_repository, watch, observers)
        with _time_limit(interrupt, options.max_time_s), _broke_off(begun, folder):
            record(order, store, interrupt)
    with _broke_off(begun, folder):
        return judge_folder(folder, options.reports, within_set=options.within_set)


class _Begun:
    """Sees whether the server of a run has started."""

    def __init__(self) -> None:
        self.is_so = False

    def __call__(self, event: Event) -> None:
        self.is_so = self.is_so or isinstance(event, ServerStarted)


@contextmanager
def _broke_off(begun: _Begun, folder: Path) -> Iterator[None]:
    """Tell an error before the server started, which is the user's to mend, from a run that cannot go on."""
    try:
        yield
    except TritonChaosError as error:
        if not begun.is_so:
            raise
        hint = f"{error.hint}; " if error.hint else ""
        raise RunBrokeOff(
            f"the run broke off: {error.message}",
            hint=f"{hint}`tritonchaos judge {folder}` judges what was recorded until then",
        ) from error


def longest_time_s(asked: str | float | None) -> float | None:
    """Read the longest time of a run, such as "10min" or a number of seconds; None: no limit.

    Raises:
        UsageError: It is no time.
    """
    try:
        return None if asked is None else parse_seconds(asked)
    except ValueError as error:
        raise UsageError(f"--max-time: {error}") from None


def _watch(facts: RunFacts) -> Watch | None:
    watches = find_watch(build_checkers(facts.checks))
    return watches.watch(facts.uses_gpu, facts.metrics, facts.amplified) if watches else None


@contextmanager
def _time_limit(interrupt: Interrupt, at_most_s: float | None) -> Iterator[None]:
    """Ask for an end when the time is over; nothing is asked for any more once the block is left."""
    interrupt.begin_run()
    timer = None if at_most_s is None else threading.Timer(at_most_s, interrupt.time_is_up)
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


def judge_folder(folder: Path, reports: Sequence[str] = (), *, within_set: bool = False) -> Run:
    """Judge a run directory and write its reports; needs nothing but the folder. The verdict is kept beside the run.

    Args:
        reports: Names of reporters; none: those that write by default.
        within_set: It is one run of a set: what is written once for all of them is left out.

    Raises:
        StoreError: It is not a run directory, or cannot be read.
        UsageError: There is no such reporter.
    """
    reporters = choose_reporters(reports, within_set=within_set)
    return _report(folder, judge_again(folder), reporters)


def report_folder(
    folder: Path,
    reports: Sequence[str] = (),
    *,
    within_set: bool = False,
    say: Callable[[str], None] | None = None,
    doing: Callable[[str], None] | None = None,
) -> Run:
    """Write the reports of a run directory, by its kept verdict if that counts; else as `judge_folder`.

    Args:
        say: Takes why the kept verdict does not count.
        doing: Takes what is being done, for those who wait.
    """
    reporters = choose_reporters(reports, within_set=within_set)
    if doing is not None:
        doing(f"reading {folder}")
    return _report(folder, judge_again_unless_kept(folder, say), reporters, doing)


def _report(
    folder: Path,
    finished: FinishedRun,
    reporters: Sequence[Reporter],
    doing: Callable[[str], None] | None = None,
) -> Run:
    written: list[Path] = []
    for reporter in reporters:
        if doing is not None:
            doing(f"writing the report {reporter.name} of {folder}")
        written += _render(reporter, finished, folder)
    return Run(folder, finished, tuple(written))


def judge_folder_with(folder: Path, checks: str, out: Path | None = None, reports: Sequence[str] = ()) -> Run:
    """Judge a run directory by other checks than its own, which leaves the directory as it is.

    Args:
        checks: Names parted by commas, or a YAML list as in the scenario's `check`.
        out: Where reports are written; must be empty or absent. None: nowhere.

    Raises:
        StoreError: It is not a run directory, cannot be read, or `out` has something in it.
        UsageError, ScenarioError: There is no such check or reporter, or fields do not fit.
    """
    reporters = choose_reporters(reports)
    finished = judge_with(open_history(folder), checks)
    if out is None:
        return Run(folder, finished)
    prepare_folder(out)
    written = [path for reporter in reporters for path in _render(reporter, finished, out)]
    return Run(folder, finished, tuple(written))


def _render(reporter: Reporter, finished: FinishedRun, folder: Path) -> list[Path]:
    try:
        return reporter.render(finished, folder)
    except OSError as error:
        raise StoreError(
            f"cannot write the report {reporter.name} into {folder}: {error.strerror or error}",
            hint="free disk space or mend the permissions; `tritonchaos report` writes it again",
        ) from error


def _run_folder(scenario: Scenario, options: RunOptions) -> Path:
    if options.out is not None:
        _refuse_inside(options.out, options.model_repository)
        return options.out
    _refuse_inside(options.runs_folder, options.model_repository)
    return new_run_folder(options.runs_folder, scenario.scenario, datetime.now(timezone.utc))


def _refuse_inside(folder: Path, model_repository: Path | None) -> None:
    """A run that writes into the user's model repository would change what it tests, and copy itself."""
    if model_repository is not None and folder.resolve().is_relative_to(model_repository.resolve()):
        raise UsageError(
            f"the run directory {folder} lies inside the model repository {model_repository}",
            hint="name a folder outside of it with --out or --runs",
        )


def _facts(scenario: Scenario, schedule: Schedule, chosen: Chosen, folder: Path, options: RunOptions) -> RunFacts:
    target, uses_gpu = chosen.target.describe(), any(model.needs_gpu for model in chosen.models.values())
    return RunFacts(
        run_id=options.run_id or folder.name,
        tritonchaos_version=__version__,
        scenario=scenario.scenario,
        seed=scenario.seed,
        started_utc=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        target={**target, **machine_facts(target)},
        target_skipped=chosen.skipped,
        variants=chosen.variants,
        uses_gpu=uses_gpu,
        unavailable={},
        sample_count=scenario.sample.count,
        phases=tuple(PhaseFacts(p.name, p.arm, p.kind, p.at_most, p.amplify) for p in schedule.phases),
        checks=tuple((check.name, dict(check.fields)) for check in scenario.check),
        known=tuple(dict(entry) for entry in scenario.known_entries()),
        metrics=tuple(scenario.sample.metrics),
        accept_known=options.accept_known,
        calibration=calibrated.statement(target, uses_gpu),
    )
