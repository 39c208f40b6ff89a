"""What a reader of the results must know that is neither a reading nor a finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tritonchaos.observations import (
    CycleTable,
    History,
    MetricLost,
    Note,
    PhaseSkipped,
    PhaseStopped,
)
from tritonchaos.summary.note_followers import TRACKS, TrackRequests, short_windows
from tritonchaos.summary.table import phase_counts
from tritonchaos.units import format_seconds

# Variants that behave like a TensorRT model without being one.
_STAND_INS: Final = frozenset({"planted", "python"})
# The beginning of the NVML sampler's note on another process, without the GPU.
_NEIGHBOUR: Final = " is not idle: pid "


def variant_sentences(variants: Mapping[str, str]) -> list[str]:
    """Say what served each model; a stand-in must never read as TensorRT."""
    return [f"model {model} was served by variant {variant}{_aside(variant)}" for model, variant in variants.items()]


def _aside(variant: str) -> str:
    return " (a stand-in, not TensorRT)" if variant in _STAND_INS else ""


def notes(history: History, table: CycleTable) -> list[str]:
    """Collect all notes, each once, in a fixed order."""
    facts = history.facts
    found = [
        *variant_sentences(facts.variants),
        *(f"skipped {name}: {why}" for name, why in facts.target_skipped),
        *_unavailable(facts.unavailable),
        *(f"metric {lost.metric} was lost at {_at(lost.t_ns)}: {lost.reason}" for lost in history.of(MetricLost)),
        *_phases(history, table),
        *_tracks(history),
        *_unsettled(table),
        *_too_short(table),
        *_repeated(_last_of_neighbours([note.text for note in history.of(Note)])),
    ]
    if facts.calibration:
        found.append(facts.calibration)
    if history.interrupted:
        found.append("the run was interrupted, or it was killed; what it had finished until then was judged")
    return list(dict.fromkeys(found))


def _at(t_ns: int) -> str:
    return format_seconds(t_ns / 1e9)


def _unavailable(unavailable: Mapping[str, str]) -> Iterator[str]:
    metrics: dict[str, list[str]] = {}
    for metric, why in unavailable.items():
        metrics.setdefault(why, []).append(metric)
    for why, names in metrics.items():
        yield f"not read: {', '.join(sorted(names))} ({why})"


def _phases(history: History, table: CycleTable) -> Iterator[str]:
    for skipped in history.of(PhaseSkipped):
        yield f"phase {skipped.phase} was not run: {skipped.reason}"
    for stopped in history.of(PhaseStopped):
        yield f"phase {stopped.phase} ended after {stopped.cycles} cycles: {stopped.reason}"
    for count in phase_counts(table):
        if count.warm_up:
            yield f"phase {count.phase}, {count.arm.value} arm: {count.warm_up} warm-up cycles are not judged"


def _tracks(history: History) -> Iterator[str]:
    """Say for each step of each track beside the main one how often it ran, and how slow it was at worst."""
    for (phase, track, label), requests in history.followed(TRACKS, TrackRequests).found.items():
        late = f", {requests.late} late" if requests.late else ""
        worst = format_seconds(requests.slowest_ns / 1e9)
        slow = f", 99 % within {worst} in every second" if requests.slowest_ns else ""
        yield f"phase {phase}, track {track}: {label} {requests.count} times{late}{slow}"


def _unsettled(table: CycleTable) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for number, cycles in Counter(table.kinds).items():
        counts.update(dict.fromkeys(table.kind_list[number].unsettled, cycles))
    for metric, count in sorted(counts.items()):
        yield f"{metric} had not settled at the end of {count} of {len(table)} settle windows"


def _too_short(table: CycleTable) -> Iterator[str]:
    """Name metrics that still fell between the settle window and the next cycle, by a quantum or more."""
    for metric, count in sorted(short_windows(table).items()):
        yield f"the settle window was too short for {metric} in {count} cycles: it fell further before the next cycle"


def _last_of_neighbours(texts: Sequence[str]) -> list[str]:
    """Keep of each process that shares a GPU the last note, which names the most memory that was seen of it."""
    last = {text.rpartition(", ")[0]: text for text in texts if _NEIGHBOUR in text}
    return [text for text in texts if _NEIGHBOUR not in text or text in last.values()]


def _repeated(texts: Iterable[str]) -> Iterator[str]:
    for text, count in Counter(texts).items():
        yield text if count == 1 else f"{text} ({count} times)"
