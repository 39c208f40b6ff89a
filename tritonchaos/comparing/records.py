"""What a comparison says: rows, each with an outcome, and which of them decide the exit code."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tritonchaos.errors import ExitCode


class Outcome(str, Enum):
    """How the candidate stands against the base in one respect."""

    NEW = "new"
    WORSE = "worse"
    CANNOT_TELL = "cannot tell"
    SAME = "same"
    BETTER = "better"
    FIXED = "fixed"


class Kind(str, Enum):
    """What a row is about."""

    RUN = "run"
    FINDING = "finding"
    CHECK = "check"
    GROWTH = "growth"
    TIME = "time"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Row:
    """One respect in which the two sides are compared.

    Attributes:
        scenario: Which scenario (and cell) it is about.
        about: What is compared, such as "load ident in phase baseline" or a finding's title.
        base, candidate: What was found on each side, in words.
        difference: Candidate minus base in ns or bytes (per cycle); None where it is no number.
        interval: Interval of the same; None where there is none.
        why: Why it is this outcome, where that is not plain.
        decides: It changes the exit code: `NEW` and `WORSE` to 1, `CANNOT_TELL` to 3.
    """

    scenario: str
    kind: Kind
    about: str
    outcome: Outcome
    base: str
    candidate: str
    difference: float | None = None
    interval: tuple[float, float] | None = None
    why: str = ""
    decides: bool = True


@dataclass(frozen=True, slots=True)
class SideFacts:
    """One side of the comparison.

    Attributes:
        name: Last part of the path that was given.
        runs: How many runs it has.
        facts: What its runs were made with: fact -> values, each once.
    """

    name: str
    runs: int
    facts: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer.

    Attributes:
        rows: Those that decide most first.
        notes: What a reader should know: facts that differ.
        differences: Unified diff of the two scenarios, by scenario; only where they differ.
    """

    base: SideFacts
    candidate: SideFacts
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    differences: dict[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """1 only on worse or new, 3 if something that decides cannot be told, else 0."""
        decisive = {row.outcome for row in self.rows if row.decides}
        if decisive & {Outcome.NEW, Outcome.WORSE}:
            return ExitCode.FINDINGS
        return ExitCode.INCONCLUSIVE if Outcome.CANNOT_TELL in decisive else ExitCode.PASS

    @property
    def word(self) -> str:
        """The answer in one word: "worse", "cannot tell", "better" or "same"."""
        if self.exit_code is ExitCode.FINDINGS:
            return "worse"
        if self.exit_code is ExitCode.INCONCLUSIVE:
            return Outcome.CANNOT_TELL.value
        has_better = any(row.decides and row.outcome in (Outcome.BETTER, Outcome.FIXED) for row in self.rows)
        return "better" if has_better else "same"

    @property
    def headline(self) -> str:
        """The answer and the rows it rests on, in one sentence."""
        counts = {outcome: sum(row.outcome is outcome for row in self.rows) for outcome in Outcome}
        told = ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items() if count)
        return f"{self.word.upper()}: {self.candidate.name} against {self.base.name}: {told or 'nothing to compare'}"


_ORDER: Final = {outcome: number for number, outcome in enumerate(Outcome)}
_KINDS: Final = {kind: number for number, kind in enumerate(Kind)}


def in_order(rows: list[Row]) -> tuple[Row, ...]:
    """Put first what decides, then the worse outcomes."""
    return tuple(sorted(rows, key=lambda row: (not row.decides, _ORDER[row.outcome], row.scenario, _KINDS[row.kind])))
