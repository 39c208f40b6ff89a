"""What a reader of the results must know that is neither a reading nor a finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tritonchaos.observations import (
    CycleFinished,
    CycleStarted,
    History,
    MetricLost,
    Note,
    PhaseSkipped,
    PhaseStopped,
    Reading,
    StepFinished,
    TrafficSummary,
)
from tritonchaos.post_unload import CycleReader, CycleReading, may_be_somebody_elses, settle_quantum
from tritonchaos.summary.table import phase_counts
from tritonchaos.units import format_seconds

# Variants that behave like a TensorRT model without being one.
_STAND_INS: Final = frozenset({"planted", "python"})
# Memory that a settle window waits for; resident memory and counts come and go for many other reasons.
_AWAITED: Final = ("nvml_", "host_private")
# The beginning of the NVML sampler's note on another process, without the GPU.
_NEIGHBOUR: Final = " is not idle: pid "
# Where `TrafficSummary.latency_ns` has the 99 % time.
_AT_99_PERCENT: Final = 2


def variant_sentences(variants: Mapping[str, str]) -> list[str]:
    """Say what served each model; a stand-in must never read as TensorRT."""
    return [f"model {model} was served by variant {variant}{_aside(variant)}" for model, variant in variants.items()]


def _aside(variant: str) -> str:
    return " (a stand-in, not TensorRT)" if variant in _STAND_INS else ""


def notes(history: History, readings: Sequence[CycleReading]) -> list[str]:
    """Collect all notes, each once, in a fixed order."""
    facts = history.facts
    found = [
        *variant_sentences(facts.variants),
        *(f"skipped {name}: {why}" for name, why in facts.target_skipped),
        *_unavailable(facts.unavailable),
        *(f"metric {lost.metric} was lost at {_at(lost.t_ns)}: {lost.reason}" for lost in history.of(MetricLost)),
        *_phases(history, readings),
        *_tracks(history),
        *_unsettled(readings),
        *_too_short(history),
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


def _phases(history: History, readings: Sequence[CycleReading]) -> Iterator[str]:
    for skipped in history.of(PhaseSkipped):
        yield f"phase {skipped.phase} was not run: {skipped.reason}"
    for stopped in history.of(PhaseStopped):
        yield f"phase {stopped.phase} ended after {stopped.cycles} cycles: {stopped.reason}"
    for count in phase_counts(readings):
        if count.warm_up:
            yield f"phase {count.phase}, {count.arm.value} arm: {count.warm_up} warm-up cycles are not judged"


@dataclass(slots=True)
class _Requests:
    """What one step of a track did in all.

    Attributes:
        slowest_ns: The longest 99 % time of a second.
    """

    count: int = 0
    late: int = 0
    slowest_ns: int = 0


def _tracks(history: History) -> Iterator[str]:
    """Say for each step of each track beside the main one how often it ran, and how slow it was at worst."""
    found: dict[tuple[str, str, str], _Requests] = {}
    for event in history.events:
        if isinstance(event, TrafficSummary):
            requests = found.setdefault((event.phase, event.track, event.spec.label()), _Requests())
            requests.count += event.count
            requests.late += event.late
            requests.slowest_ns = max(requests.slowest_ns, event.latency_ns[_AT_99_PERCENT])
        elif isinstance(event, StepFinished) and event.position.track != "main":
            key = (event.position.phase, event.position.track, event.spec.label())
            requests = found.setdefault(key, _Requests())
            requests.count += 1
            requests.late += "late_ns" in event.observed
    for (phase, track, label), requests in found.items():
        late = f", {requests.late} late" if requests.late else ""
        worst = format_seconds(requests.slowest_ns / 1e9)
        slow = f", 99 % within {worst} in every second" if requests.slowest_ns else ""
        yield f"phase {phase}, track {track}: {label} {requests.count} times{late}{slow}"


def _unsettled(readings: Sequence[CycleReading]) -> Iterator[str]:
    counts = Counter(metric for reading in readings for metric in reading.unsettled)
    for metric, count in sorted(counts.items()):
        yield f"{metric} had not settled at the end of {count} of {len(readings)} settle windows"


def _too_short(history: History) -> Iterator[str]:
    """Name metrics that still fell between the settle window and the next cycle, by a quantum or more."""
    counts = Counter(metric for reading, later in _followed(history) for metric in _fallen(reading, later))
    for metric, count in sorted(counts.items()):
        yield f"the settle window was too short for {metric} in {count} cycles: it fell further before the next cycle"


def _followed(history: History) -> Iterator[tuple[CycleReading, Reading]]:
    reader = CycleReader(history.facts.sample_count)
    last: CycleReading | None = None
    for event in history.events:
        # The reading before the next cycle belongs to the last one, but may come before its CycleFinished.
        reading = reader.see(event)
        if isinstance(event, CycleFinished):
            last = reading
        elif isinstance(event, CycleStarted):
            last = None
        elif isinstance(event, Reading) and event.name == "before_next" and last is not None:
            yield last, event


def _fallen(reading: CycleReading, later: Reading) -> list[str]:
    return [
        metric
        for metric, value in reading.values.items()
        if metric.startswith(_AWAITED)
        and metric in later.values
        and not may_be_somebody_elses(metric, later.values)
        and value - later.values[metric] >= settle_quantum(metric)
    ]


def _last_of_neighbours(texts: Sequence[str]) -> list[str]:
    """Keep of each process that shares a GPU the last note, which names the most memory that was seen of it."""
    last = {text.rpartition(", ")[0]: text for text in texts if _NEIGHBOUR in text}
    return [text for text in texts if _NEIGHBOUR not in text or text in last.values()]


def _repeated(texts: Iterable[str]) -> Iterator[str]:
    for text, count in Counter(texts).items():
        yield text if count == 1 else f"{text} ({count} times)"
