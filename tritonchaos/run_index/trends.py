"""How each scenario developed from version to version."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tritonchaos.run_index.records import IndexedRun


@dataclass(frozen=True, slots=True)
class VersionRuns:
    """The runs of one scenario on one version of the server.

    Attributes:
        runs: The oldest first.
    """

    version: str
    runs: tuple[IndexedRun, ...]

    @property
    def marks(self) -> str:
        """One letter per run, the oldest first."""
        return "".join(run.mark for run in self.runs)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of finding that any of the runs has."""
        return tuple(sorted({kind for run in self.runs for kind in run.kinds.split(",") if kind}))

    @property
    def verdicts(self) -> dict[str, int]:
        """How often each verdict came."""
        return dict(Counter(run.verdict for run in self.runs))

    @property
    def is_judged(self) -> bool:
        """One of its runs passed or has findings."""
        return any(run.mark in ".F" for run in self.runs)

    @property
    def bytes_per_cycle(self) -> float | None:
        """Median growth of the runs with a leak, in bytes; None without one."""
        grown = [run.bytes_per_cycle for run in self.runs if run.growth == "LEAK" and run.bytes_per_cycle is not None]
        return statistics.median(grown) if grown else None


@dataclass(frozen=True, slots=True)
class ScenarioTrend:
    """One scenario (and cell) over the versions that it was run on.

    Attributes:
        versions: In the order in which they were first run.
    """

    title: str
    versions: tuple[VersionRuns, ...]

    @property
    def change(self) -> str:
        """What the last version that was judged has that the one before it had not, and the other way round."""
        judged = [version for version in self.versions if version.is_judged]
        if len(judged) < 2:
            return ""
        before, after = judged[-2], judged[-1]
        new = [kind for kind in after.kinds if kind not in before.kinds]
        gone = [kind for kind in before.kinds if kind not in after.kinds]
        parts = [f"new: {', '.join(new)}"] * bool(new) + [f"gone: {', '.join(gone)}"] * bool(gone)
        return f"{after.version} against {before.version}: {'; '.join(parts) or 'as before'}"


def trends(runs: Sequence[IndexedRun]) -> list[ScenarioTrend]:
    """Group runs by scenario and version.

    Args:
        runs: The oldest first.
    """
    grouped: dict[str, dict[str, list[IndexedRun]]] = {}
    for run in runs:
        grouped.setdefault(run.title, {}).setdefault(run.version or "unknown version", []).append(run)
    return [
        ScenarioTrend(title, tuple(VersionRuns(version, tuple(found)) for version, found in versions.items()))
        for title, versions in sorted(grouped.items())
    ]
