"""Findings, assessments and the verdict of a run; the worst assessment wins."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from tritonchaos.errors import ExitCode
from tritonchaos.observations import History, Position


class Status(str, Enum):
    """The three values of an assessment."""

    PASS = "pass"
    UNKNOWN = "unknown"
    FAIL = "fail"


KINDS: Final = frozenset(
    {
        "leak",
        "hang",
        "crash",
        "wrong_error",
        "misleading_error",
        "wrong_state",
        "stale_content",
        "wrong_output",
        "collateral",
        "leftover",
        "will_not_stop",
        "retention",
        "slowdown",
        "over_budget",
        "not_recovered",
        "refused_start",
    }
)

# With its unit: 900 KiB in one run may be 1.02 MiB in the next, and 58 s may be 1 min 02 s.
_AMOUNT: Final = re.compile(r"\d+(?:\.\d+)?(?: (?:[KMG]iB|B|ms|s|min|h)\b)?")


@dataclass(frozen=True, slots=True)
class Rung:
    """One attempt to get memory back: what was done, what was in use afterwards, and what had come back, in bytes."""

    done: str
    bytes: int
    returned_bytes: int


@dataclass(frozen=True, slots=True)
class Ladder:
    """Attempts to get back what had grown, in order, and who held it by what returned it."""

    grown_bytes: int
    rungs: tuple[Rung, ...]
    held_by: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect of the server, with where it was seen and what shows it.

    Attributes:
        title: One line; two sightings of one defect have the same title but for its numbers.
        step: Label of the step it is about, such as "load ident"; part of the identity.
        bytes_per_cycle: Growth per judged cycle, in bytes (per object for count metrics); None where not a growth.
        interval_bytes_per_cycle: 95 % interval of the same.
        position: Where it was first seen.
        evidence: Lines that show it: log lines, readings, states.
        details: Further lines for whoever wants to look closer, such as what each thread was doing.
        known: Address of the report that already describes it, from the scenario's `known` list.
        undocumented: A step outside Triton's documented rules led here.
        per: What `bytes_per_cycle` is stated per: "cycle", or "load" where cycles repeated their loads.
        footprint_bytes: What a loaded model takes of the metric; None where not known.
        ladder: Who holds what has grown; None where that was not tried.
        counts: False: it is shown but does not change the exit code.
        occurrences: How often it was seen.
    """

    kind: str
    checker: str
    title: str
    metric: str | None = None
    step: str | None = None
    bytes_per_cycle: float | None = None
    interval_bytes_per_cycle: tuple[float, float] | None = None
    position: Position | None = None
    evidence: tuple[str, ...] = ()
    known: str | None = None
    undocumented: bool = False
    counts: bool = True
    occurrences: int = 1
    details: tuple[str, ...] = ()
    per: str = "cycle"
    footprint_bytes: int | None = None
    ladder: Ladder | None = None

    @property
    def footprints(self) -> float | None:
        """The growth in loaded models; None where either is not known."""
        if not self.footprint_bytes or self.bytes_per_cycle is None:
            return None
        return self.bytes_per_cycle / self.footprint_bytes

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"found finding kind {self.kind!r}, expected one of {', '.join(sorted(KINDS))}")

    @property
    def id(self) -> str:
        """Identity of the defect: a hash of kind, checker, metric, step and title without its amounts."""
        title = re.sub(r"#(?: #)+", "#", _AMOUNT.sub("#", self.title))
        parts = (self.kind, self.checker, self.metric or "", self.step or "", title)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Assessment:
    """What one checker says of one metric (or of the run).

    Attributes:
        verdict: The checker's own word: LEAK, STABLE, INCONCLUSIVE for growth; "" elsewhere.
        rule: The rule that decided.
        excluded_bytes_per_cycle: For STABLE, the smallest leak that this run would have found.
        reason: One sentence for the report; for UNKNOWN, what is missing.
        counts: False: shown, but does not change the verdict (a secondary metric that stayed unknown).
        per: What `excluded_bytes_per_cycle` is stated per: "cycle", or "load" where cycles repeated their loads.
        plain_words: A paragraph with the numbers that decided, for those who distrust statistics; "" where none is.
    """

    checker: str
    status: Status
    reason: str
    metric: str | None = None
    verdict: str = ""
    rule: str = ""
    cycles_used: int | None = None
    excluded_bytes_per_cycle: float | None = None
    findings: tuple[Finding, ...] = ()
    counts: bool = True
    per: str = "cycle"
    plain_words: str = ""

    def __post_init__(self) -> None:
        if self.status is Status.FAIL and not self.findings:
            raise ValueError(f"checker {self.checker}: a failed assessment needs a finding that says what failed")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The worst of all assessments that count, and every finding once."""

    status: Status
    assessments: tuple[Assessment, ...]
    findings: tuple[Finding, ...]

    def exit_code(self, *, accept_known: bool = False) -> ExitCode:
        """Translate to the exit code; with `accept_known`, findings that are known do not count."""
        if any(f.counts and not (accept_known and f.known) for f in self.findings):
            return ExitCode.FINDINGS
        counted = [a.status for a in self.assessments if a.counts]
        if not counted or Status.UNKNOWN in counted:
            return ExitCode.INCONCLUSIVE
        return ExitCode.PASS


Check = Callable[[History], Sequence[Assessment]]

# How the reason of an assessment begins whose checker raised.
CHECKER_FAILED: Final = "the checker failed: "

_ORDER: Final = {Status.PASS: 0, Status.UNKNOWN: 1, Status.FAIL: 2}


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Keep each defect once, with its first sighting and the number of sightings."""
    merged: dict[str, Finding] = {}
    for finding in findings:
        seen = merged.get(finding.id)
        merged[finding.id] = (
            finding if seen is None else replace(seen, occurrences=seen.occurrences + finding.occurrences)
        )
    return tuple(merged.values())


def judge(history: History, checks: Sequence[tuple[str, Check]]) -> Verdict:
    """Run the checks over a history; one that raises becomes unknown, and the worst assessment wins.

    Args:
        checks: (checker name, check) pairs, in the scenario's order.
    """
    assessments: list[Assessment] = []
    for name, check in checks:
        try:
            assessments.extend(check(history))
        except Exception as error:  # a broken checker must not hide what the others found
            reason = f"{CHECKER_FAILED}{type(error).__name__}: {error}"
            assessments.append(Assessment(checker=name, status=Status.UNKNOWN, reason=reason))
    counted = [a.status for a in assessments if a.counts]
    status = max(counted, key=_ORDER.__getitem__, default=Status.UNKNOWN)
    return Verdict(
        status=status,
        assessments=tuple(assessments),
        findings=merge_findings(f for a in assessments for f in a.findings),
    )
