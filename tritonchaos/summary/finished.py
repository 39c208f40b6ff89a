"""A run that was judged, with everything that reports show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tritonchaos.observations import Follower, History, JsonValue
from tritonchaos.post_unload import BASELINES, CYCLES, Baselines, cycle_table, follow_cycles
from tritonchaos.summary.document import NAMED_READINGS, NamedReadings, results_document
from tritonchaos.summary.faults import FAULTS, FaultFollower
from tritonchaos.summary.headline import headline
from tritonchaos.summary.note_followers import TRACKS, TrackRequests
from tritonchaos.summary.notes import notes
from tritonchaos.summary.table import (
    PhaseCount,
    TableBlock,
    TableRow,
    TableRows,
    phase_counts,
    shown_metrics,
    table_blocks,
)
from tritonchaos.summary.texts import without_folders
from tritonchaos.verdict import Verdict


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What reporters are given; they print it and compute nothing.

    Attributes:
        results: The results.json document, in the order in which it is written.
        headline: The verdict and what it rests on, in one sentence.
        metrics: The metrics of the post-unload table, the deciding one first.
        rows: One row per finished cycle, in the order in which they ran.
        blocks: The same, shortened to what can be read.
        counts: Matching cycles for each arm of each phase.
    """

    history: History
    verdict: Verdict
    exit_code: int
    results: Mapping[str, JsonValue]
    headline: str
    metrics: tuple[str, ...]
    rows: Sequence[TableRow]
    blocks: tuple[TableBlock, ...]
    counts: tuple[PhaseCount, ...]


def followers(history: History) -> Mapping[str, Callable[[], Follower]]:
    """What `finish` has to see of a run; in one walk with what the checks want to see."""
    return {
        CYCLES: lambda: follow_cycles(history),
        BASELINES: Baselines,
        TRACKS: TrackRequests,
        NAMED_READINGS: NamedReadings,
        FAULTS: FaultFollower,
    }


def finish(history: History, verdict: Verdict, exit_code: int) -> FinishedRun:
    """Compute what reports show; the same history and verdict give the same, whenever and wherever."""
    table = cycle_table(history)
    rows = TableRows(history, table)
    return FinishedRun(
        history=history,
        verdict=verdict,
        exit_code=int(exit_code),
        results=results_document(history, verdict, exit_code, table, notes(history, table)),
        headline=without_folders(headline(verdict, len(table), history.interrupted)),
        metrics=shown_metrics(history, verdict, table),
        rows=rows if history.is_long else tuple(rows),
        blocks=table_blocks(rows),
        counts=phase_counts(table),
    )
