"""What a set is made of: what is to be run, what became of it, and the whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonchaos.errors import TritonChaosError
from tritonchaos.running import Run
from tritonchaos.scenario import Scenario
from tritonchaos.summary import FinishedEntry


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

    def finished(self) -> FinishedEntry:
        """Return what reporters are given of it."""
        run = self.run.finished if self.run is not None else None
        return FinishedEntry(self.planned.name, self.planned.cell, self.folder, run, self.exit_code, self.error)


@dataclass(frozen=True, slots=True)
class SetRun:
    """A set that was run.

    Attributes:
        folder: Of the set; None for a single run, which has its folder to itself.
        entries: One per scenario and cell, in the order in which they were asked for.
        document: What set.json holds.
        written: Reports of the set as a whole.
    """

    folder: Path | None
    entries: tuple[Entry, ...]
    exit_code: int
    document: dict[str, Any] = field(default_factory=dict)
    written: tuple[Path, ...] = ()

    @property
    def only(self) -> Run | None:
        """The run, if there was one and no set."""
        return self.entries[0].run if self.folder is None else None
