"""Runs several scenarios, and the cells of those that vary, as one set with one exit code and one summary."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from tritonchaos import __version__
from tritonchaos.choosing import usable_target
from tritonchaos.errors import ExitCode, TargetUnavailable, TritonChaosError, UsageError
from tritonchaos.finding_scenarios import Given, find_scenarios, is_text, open_scenario
from tritonchaos.overriding import Overrides
from tritonchaos.plugins import Target
from tritonchaos.repository import model_names
from tritonchaos.running import Run, RunOptions, run
from tritonchaos.scenario import Scenario, TargetEntry
from tritonchaos.scenario_engine import Interrupt
from tritonchaos.store import new_run_folder, point_latest, prepare_folder
from tritonchaos.summary import portable

SCHEMA: Final = "tritonchaos.set/1"
SET_FILE: Final = "set.json"
# Of several exit codes the first in this order is the set's.
_WORST_FIRST: Final = (
    ExitCode.OWN_FAULT,
    ExitCode.FINDINGS,
    ExitCode.INTERRUPTED,
    ExitCode.NO_TARGET,
    ExitCode.USAGE,
    ExitCode.INCONCLUSIVE,
    ExitCode.PASS,
)
_STOPS_A_FAST_SET: Final = frozenset({ExitCode.FINDINGS, ExitCode.USAGE, ExitCode.NO_TARGET, ExitCode.OWN_FAULT})


@dataclass(frozen=True, slots=True)
class Planned:
    """One run to come.

    Attributes:
        source: What it was asked for as: a file's name or a scenario's.
        cell: Which combination of `vary` it is; "" without one.
        scenario: None where it cannot be read.
        error: Why it cannot be read.
    """

    source: str
    cell: str = ""
    scenario: Scenario | None = None
    error: TritonChaosError | None = None

    @property
    def name(self) -> str:
        """The scenario's name, or what it was asked for as."""
        return self.scenario.scenario if self.scenario is not None else self.source


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one planned run.

    Attributes:
        folder: Name of its folder within the set's; "" if there is none.
        run: None if it did not come to an end.
        exit_code: None if it was not begun.
        error: Why it came to no end, or was not begun; "" otherwise.
    """

    planned: Planned
    folder: str
    run: Run | None
    exit_code: int | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class SetRun:
    """A set that was run.

    Attributes:
        folder: Of the set; None for a single run, which has its folder to itself.
        entries: One per scenario and cell, in the order in which they were asked for.
        document: What set.json holds.
    """

    folder: Path | None
    entries: tuple[Entry, ...]
    exit_code: int
    document: dict[str, Any] = field(default_factory=dict)

    @property
    def only(self) -> Run | None:
        """The run, if there was one and no set."""
        return self.entries[0].run if self.folder is None else None


def plan(
    given: Sequence[Given], overrides: Overrides | None = None, model_repository: Path | None = None
) -> list[Planned]:
    """Read all scenarios before anything starts; one that is wrong is kept with its error.

    Raises:
        UsageError: A name leads to nothing.
        TritonChaosError: The only scenario is wrong.
    """
    extra = model_names(model_repository) if model_repository is not None else ()
    sources = find_scenarios(given)
    planned: list[Planned] = []
    for source in sources:
        name = Path(source).stem if isinstance(source, str | Path) and not is_text(source) else "scenario"
        try:
            scenario = open_scenario(source, overrides, extra)
        except TritonChaosError as error:
            if len(sources) == 1:
                raise
            planned.append(Planned(name, error=error))
            continue
        planned += [Planned(name, cell, one) for cell, one in scenario.cells()]
    return planned


def run_set(
    planned: Sequence[Planned],
    options: RunOptions | None = None,
    interrupt: Interrupt | None = None,
    *,
    fail_fast: bool = False,
    finished: Callable[[Entry], None] | None = None,
) -> SetRun:
    """Run one scenario into its own folder, or several into the folder of a set, with one set.json.

    Targets are checked once for all. A scenario that cannot be run does not keep the others from being run.

    Args:
        options: For each run; `out` is the folder of the set, or of the only run.
        fail_fast: Begin no further run after one with findings, or one that could not be run.
        finished: Called after each entry.

    Raises:
        TritonChaosError: The only run could not do its work.
        KeyboardInterrupt: The user asked twice to stop; set.json says what was done until then.
    """
    if not planned:
        raise UsageError("found no scenario to run")
    options = replace(options or RunOptions(), usable=_CheckedOnce())
    interrupt = interrupt or Interrupt()
    if len(planned) == 1 and planned[0].scenario is not None and not planned[0].cell:
        only = run(planned[0].scenario, options, interrupt)
        entry = Entry(planned[0], "", only, only.finished.exit_code)
        return SetRun(None, (entry,), only.finished.exit_code)
    return _Set(planned, options, interrupt, fail_fast, finished).run()


def worst(exit_codes: Sequence[int]) -> ExitCode:
    """Return the exit code of a set; a set of which nothing was run is inconclusive."""
    return next((code for code in _WORST_FIRST if code in exit_codes), ExitCode.INCONCLUSIVE)


class _CheckedOnce:
    """Checks each target once, also when it cannot be used."""

    def __init__(self) -> None:
        self._checked: dict[str, Target | TargetUnavailable] = {}

    def __call__(self, entry: TargetEntry) -> Target:
        key = json.dumps([entry.name, entry.fields], sort_keys=True, default=str)
        if key not in self._checked:
            try:
                self._checked[key] = usable_target(entry)
            except TargetUnavailable as reason:
                self._checked[key] = reason
        checked = self._checked[key]
        if isinstance(checked, TargetUnavailable):
            raise TargetUnavailable(checked.message, hint=checked.hint)
        return checked


class _Set:
    def __init__(
        self,
        planned: Sequence[Planned],
        options: RunOptions,
        interrupt: Interrupt,
        fail_fast: bool,
        finished: Callable[[Entry], None] | None,
    ) -> None:
        self._planned = planned
        self._options = options
        self._interrupt = interrupt
        self._fail_fast = fail_fast
        self._finished = finished
        self._entries: list[Entry] = []
        self._folder = options.out or new_run_folder(options.runs_folder, "set", datetime.now(timezone.utc))

    def run(self) -> SetRun:
        prepare_folder(self._folder)
        if self._options.out is None:
            point_latest(self._folder)
        try:
            for planned, folder in zip(self._planned, folder_names(self._planned), strict=True):
                self._add(self._one(planned, folder))
        except BaseException as error:
            self._rest_not_run("interrupted" if isinstance(error, KeyboardInterrupt) else "the set broke off")
            self._write(ExitCode.INTERRUPTED if isinstance(error, KeyboardInterrupt) else ExitCode.OWN_FAULT)
            raise
        codes = [entry.exit_code for entry in self._entries if entry.exit_code is not None]
        exit_code = worst([*codes, ExitCode.INTERRUPTED] if self._interrupt.is_asked_by_user else codes)
        return SetRun(self._folder, tuple(self._entries), exit_code, self._write(exit_code))

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        if self._finished is not None:
            self._finished(entry)

    def _one(self, planned: Planned, folder: str) -> Entry:
        if why_not := self._why_not():
            return Entry(planned, "", None, None, f"not run: {why_not}")
        if planned.scenario is None:
            assert planned.error is not None
            return Entry(planned, "", None, planned.error.exit_code, str(planned.error))
        options = replace(self._options, out=self._folder / folder, run_id=f"{self._folder.name}-{folder}")
        try:
            done = run(planned.scenario, options, self._interrupt)
        except TritonChaosError as error:
            begun = folder if (self._folder / folder).is_dir() else ""
            return Entry(planned, begun, None, error.exit_code, str(error))
        return Entry(planned, folder, done, done.finished.exit_code)

    def _why_not(self) -> str:
        if self._interrupt.is_asked_by_user:
            return "interrupted"
        stopped = [entry for entry in self._entries if entry.exit_code in _STOPS_A_FAST_SET]
        return f"{stopped[0].planned.name} failed before" if self._fail_fast and stopped else ""

    def _rest_not_run(self, why: str) -> None:
        for planned in self._planned[len(self._entries) :]:
            self._entries.append(Entry(planned, "", None, None, f"not run: {why}"))

    def _write(self, exit_code: ExitCode) -> dict[str, Any]:
        document = set_document(self._folder.name, self._entries, exit_code)
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        (self._folder / SET_FILE).write_bytes(text.encode("utf-8", "replace") + b"\n")
        return document


def folder_names(planned: Sequence[Planned]) -> Iterator[str]:
    """Name a folder for each run: the scenario's name, the number of the cell, and what keeps them apart."""
    taken: set[str] = set()
    cells: dict[str, int] = {}
    for one in planned:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", one.name)
        if one.cell:
            cells[name] = cells.get(name, 0) + 1
            name = f"{name}.cell-{cells[name]}"
        number, free = 2, name
        while free in taken:
            number, free = number + 1, f"{name}-{number}"
        taken.add(free)
        yield free


# --- set.json ------------------------------------------------------------------------------------


def set_document(set_id: str, entries: Sequence[Entry], exit_code: ExitCode) -> dict[str, Any]:
    """Build what set.json holds; no absolute path and no time of judging is in it."""
    document = {
        "schema": SCHEMA,
        "set_id": set_id,
        "tritonchaos_version": __version__,
        "exit_code": int(exit_code),
        "interrupted": exit_code is ExitCode.INTERRUPTED or any("interrupted" in entry.error for entry in entries),
        "runs": [_entry_document(entry) for entry in entries],
    }
    result: dict[str, Any] = portable(document)
    return result


def _entry_document(entry: Entry) -> dict[str, Any]:
    results = entry.run.finished.results if entry.run is not None else {}
    return {
        "scenario": entry.planned.name,
        "source": entry.planned.source,
        "cell": entry.planned.cell or None,
        "folder": entry.folder or None,
        "exit_code": None if entry.exit_code is None else int(entry.exit_code),
        "verdict": results.get("verdict"),
        "headline": entry.run.finished.headline if entry.run is not None else None,
        "error": entry.error or None,
        "assessments": results.get("assessments", []),
        "findings": results.get("findings", []),
    }
