"""What the index keeps of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RUNNING: Final = "running"
NOT_JUDGED: Final = "not judged"
UNREADABLE: Final = "unreadable"


@dataclass(frozen=True, slots=True)
class IndexedRun:
    """One run directory.

    Attributes:
        folder: Relative to the folder of the index, such as "20261201T…-failed-load-5982" or "set-1/failed-load".
        stamp: Sizes and times of its files; while it stays the same the run is not read again.
        cell: Which combination of `vary` it is; "" without one.
        version: Image, or version of Triton where there is none.
        verdict: "pass", "findings", "inconclusive", "running", "not judged" or "unreadable".
        exit_code: None where it has none.
        kinds: Kinds of the findings that count, each once, parted by commas.
        metric: The metric that decided on growth; "" without one.
        growth: "LEAK", "STABLE" or "INCONCLUSIVE" of that metric; "" without one.
        bytes_per_cycle: Growth of a LEAK, in bytes; of a STABLE the smallest leak that would have been found.
        problem: Why it is unreadable.
    """

    folder: str
    stamp: str
    scenario: str
    cell: str = ""
    started_utc: str = ""
    version: str = ""
    target: str = ""
    tritonchaos_version: str = ""
    seed: int | None = None
    verdict: str = NOT_JUDGED
    exit_code: int | None = None
    interrupted: bool = False
    cycles: int = 0
    kinds: str = ""
    metric: str = ""
    growth: str = ""
    bytes_per_cycle: float | None = None
    problem: str = ""

    @property
    def title(self) -> str:
        """The scenario, and the cell if it is one."""
        return f"{self.scenario} [{self.cell}]" if self.cell else self.scenario

    @property
    def mark(self) -> str:
        """One letter: "." pass, "F" findings, "?" inconclusive, "-" neither."""
        if self.interrupted and self.verdict != "findings":
            return "-"
        return {"pass": ".", "findings": "F", "inconclusive": "?"}.get(self.verdict, "-")
