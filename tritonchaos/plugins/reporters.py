"""Reporters, which of them write, and who takes events."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from tritonchaos.errors import UsageError
from tritonchaos.observations import Event

if TYPE_CHECKING:
    from tritonchaos.summary import FinishedRun, FinishedSet

from tritonchaos.plugins.naming import Named
from tritonchaos.plugins.registry import MISSING, REPORTERS

# Other commands read it, so it is written whatever is asked for.
_ALWAYS: Final = "results_json"


class Reporter(Named, Protocol):
    """Prints what `summary` computed, computes nothing.

    Class attributes that one may have: `by_default = False` (it writes only where it is asked for by name),
    `once_per_set = True` (it writes for a whole set only, not for each run of it), `comes_last = True` (it names files
    that other reporters write).
    """

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        """Write into the run directory and return what was written."""


@runtime_checkable
class ReportsSets(Protocol):
    """A reporter that can also write one file for a whole set."""

    def render_set(self, done: FinishedSet, out: Path) -> list[Path]:
        """Write into the folder of the set and return what was written."""


def choose_reporters(names: Sequence[str] = (), *, within_set: bool = False) -> list[Reporter]:
    """Make the reporters that were asked for; with no name, all that write by default.

    results.json comes first, always.

    Args:
        names: As in `tritonchaos list`; several in one text are parted by commas.
        within_set: For one run of a set: leave out those that write once for all.

    Raises:
        UsageError: There is no such reporter.
    """
    wanted = [name.strip() for text in names for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in REPORTERS:
            raise _unknown(name)
    chosen = wanted or [name for name in REPORTERS.names() if getattr(REPORTERS[name], "by_default", True)]
    first = [_ALWAYS] if _ALWAYS in REPORTERS else []
    kept = [name for name in dict.fromkeys([*first, *chosen]) if not (within_set and _says(name, "once_per_set"))]
    return [REPORTERS[name]() for name in sorted(kept, key=lambda name: _says(name, "comes_last"))]


def _says(name: str, attribute: str) -> bool:
    return bool(getattr(REPORTERS[name], attribute, False))


def _unknown(name: str) -> UsageError:
    known = REPORTERS.names()
    reason = next((missing.reason for missing in MISSING if missing.name == f"reporters/{name}"), "")
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"it cannot be imported: {reason}" if reason else f"did you mean {near[0]}?" if near else ""
    return UsageError(f"--report: found the unknown report {name[:80]!r}, expected {', '.join(known)}", hint=hint)


class Recorder(Protocol):
    """Takes events in order; the store behind it decides when they are safe on disk."""

    def record(self, event: Event) -> None: ...
