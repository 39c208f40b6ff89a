"""Runs the planned runs of a set one after the other; targets are checked once for all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Final

from tritonchaos.choosing import usable_target
from tritonchaos.errors import ExitCode, TargetUnavailable, TritonChaosError, UsageError
from tritonchaos.plugins import Target, choose_reporters
from tritonchaos.running import RunOptions, run
from tritonchaos.running_sets.document import set_document
from tritonchaos.running_sets.planning import folder_names
from tritonchaos.running_sets.records import Entry, Planned, SetRun
from tritonchaos.running_sets.reporting import write_set_reports
from tritonchaos.scenario import TargetEntry
from tritonchaos.scenario_engine import Interrupt
from tritonchaos.store import SET_FILE, new_run_folder, point_latest, prepare_folder
from tritonchaos.summary import FinishedSet

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
    choose_reporters(options.reports)  # an unknown name is told before anything starts
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
        document = self._write(exit_code)
        finished = FinishedSet(self._folder.name, tuple(entry.finished() for entry in self._entries), int(exit_code))
        written = write_set_reports(finished, self._folder, self._options.reports)
        return SetRun(self._folder, tuple(self._entries), exit_code, document, tuple(written))

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
        run_id = f"{self._folder.name}-{folder}"
        options = replace(self._options, out=self._folder / folder, run_id=run_id, within_set=True)
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
