"""Several runs under one exit code, as reports of a whole set show them."""

from __future__ import annotations

from dataclasses import dataclass

from tritonchaos.summary.cases import Case, Outcome, run_cases
from tritonchaos.summary.finished import FinishedRun
from tritonchaos.summary.texts import without_folders


@dataclass(frozen=True, slots=True)
class FinishedEntry:
    """One run of a set.

    Attributes:
        name: Its scenario.
        cell: Which combination of `vary` it is; "" without one.
        folder: Name of its folder within the set's; "" if there is none.
        run: None if it did not come to an end.
        exit_code: None if it was not begun.
        error: Why it came to no end, or was not begun; "" otherwise.
    """

    name: str
    cell: str
    folder: str
    run: FinishedRun | None
    exit_code: int | None
    error: str = ""

    @property
    def title(self) -> str:
        """The scenario, and the cell if it is one."""
        return f"{self.name} [{self.cell}]" if self.cell else self.name

    def cases(self) -> tuple[Case, ...]:
        """Return the cases of its run, or the one that says why there is none."""
        if self.run is not None:
            return run_cases(self.run)
        message, *lines = without_folders(self.error).splitlines() or ["it came to no end"]
        outcome = Outcome.SKIPPED if self.exit_code is None else Outcome.ERROR
        return (Case("run", outcome, message, "not run", tuple(lines)),)


@dataclass(frozen=True, slots=True)
class FinishedSet:
    """What reporters of whole sets are given.

    Attributes:
        entries: In the order in which they were asked for.
    """

    set_id: str
    entries: tuple[FinishedEntry, ...]
    exit_code: int


def set_of_one(run: FinishedRun) -> FinishedSet:
    """Show a single run as a set, for formats in which both look alike."""
    facts = run.history.facts
    entry = FinishedEntry(facts.scenario, "", "", run, run.exit_code)
    return FinishedSet(facts.run_id, (entry,), run.exit_code)
