"""A run that was judged, with everything that reports show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tritonchaos.observations import Follower, History, JsonValue
from tritonchaos.post_unload import BASELINES, CYCLES, Baselines, CycleFollower, cycle_readings
from tritonchaos.summary.document import NAMED_READINGS, NamedReadings, results_document
from tritonchaos.summary.headline import headline
from tritonchaos.summary.note_followers import SHORT_WINDOWS, TRACKS, ShortWindows, TrackRequests
from tritonchaos.summary.notes import notes
from tritonchaos.summary.table import (
    REPLIES,
    PhaseCount,
    ReplyTexts,
    TableBlock,
    TableRow,
    phase_counts,
    shown_metrics,
    table_blocks,
    table_rows,
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
        CYCLES: lambda: CycleFollower(history),
        BASELINES: Baselines,
        REPLIES: ReplyTexts,
        TRACKS: TrackRequests,
        SHORT_WINDOWS: lambda: ShortWindows(history),
        NAMED_READINGS: NamedReadings,
    }


def finish(history: History, verdict: Verdict, exit_code: int) -> FinishedRun:
    """Compute what reports show; the same history and verdict give the same, whenever and wherever."""
    readings = cycle_readings(history)
    rows = table_rows(history, readings)
    return FinishedRun(
        history=history,
        verdict=verdict,
        exit_code=int(exit_code),
        results=results_document(history, verdict, exit_code, readings, notes(history, readings)),
        headline=without_folders(headline(verdict, readings, history.interrupted)),
        metrics=shown_metrics(history, verdict, readings),
        rows=rows,
        blocks=table_blocks(rows),
        counts=phase_counts(readings),
    )
