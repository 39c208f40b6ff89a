"""What is kept of a run to compare it: its judgement, and per cycle how long things took and how much they needed."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tritonchaos.errors import StoreError
from tritonchaos.kept_verdict import judge_unless_kept
from tritonchaos.observations import (
    Answer,
    CycleFinished,
    CycleStarted,
    Event,
    History,
    Reading,
    RunFacts,
    SettleWindow,
    StepFinished,
)
from tritonchaos.post_unload import Channel, channel, may_be_somebody_elses, primary_metrics
from tritonchaos.verdict import Assessment, Finding

_SCENARIO: Final = "scenario.yaml"
_TIMED: Final = frozenset({"load", "unload"})
# Readings of a settle window are meant to be so far apart (see design: own readings at 0, 10, 20 ms, then every 10 ms).
_BETWEEN_READINGS_NS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run, reduced to what a comparison needs.

    Attributes:
        folder: Run directory; its last part names it.
        title: Scenario, and cell.
        scenario_text: scenario.yaml as run.
        times_ns: What took time, such as "load ident in phase good (control)" -> ns per cycle, warm-up left out.
        peaks: Memory metric -> highest reading of each cycle in bytes, by phase and arm.
        lateness_ns: How late the readings of settle windows came (90th percentile), which tells a busy machine.
    """

    folder: Path
    title: str
    scenario_text: str
    facts: RunFacts
    interrupted: bool
    assessments: tuple[Assessment, ...]
    findings: tuple[Finding, ...]
    times_ns: Mapping[str, Sequence[int]] = field(default_factory=dict)
    peaks: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    lateness_ns: float = 0.0


def read_run(folder: Path, cell: str = "") -> ComparedRun:
    """Read and judge a run directory.

    Raises:
        StoreError: It is not one, cannot be read, or its scenario is missing.
    """
    finished = judge_unless_kept(folder)
    history = finished.history
    facts = history.facts
    return ComparedRun(
        folder=folder,
        title=f"{facts.scenario} [{cell}]" if cell else facts.scenario,
        scenario_text=_scenario_text(folder),
        facts=facts,
        interrupted=history.interrupted,
        assessments=finished.verdict.assessments,
        findings=finished.verdict.findings,
        times_ns=times_ns(history),
        peaks=peaks(history),
        lateness_ns=lateness_ns(history),
    )


def _scenario_text(folder: Path) -> str:
    path = folder / _SCENARIO
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise StoreError(
            f"cannot read {path}: {error}", hint="copy the run directory again, whole: the scenario belongs to it"
        ) from error


def times_ns(history: History) -> dict[str, list[int]]:
    """Collect how long loads, unloads and settle windows of the main track took, by phase and arm.

    Warm-up cycles and calls without an answer are left out; a hang is a finding, not a slow load.
    """
    found: dict[str, list[int]] = {}
    for started, events in _measured_cycles(history.events):
        where = f"in phase {started.phase} ({started.arm.value})"
        for event in events:
            if isinstance(event, StepFinished):
                if _is_timed(event) and isinstance(event.reply, Answer):
                    found.setdefault(f"{event.spec.label()} {where}", []).append(event.reply.elapsed_ns)
            elif isinstance(event, SettleWindow) and len(event.times_ns) > 1:
                found.setdefault(f"settling {where}", []).append(event.times_ns[-1] - event.times_ns[0])
    return found


def _is_timed(step: StepFinished) -> bool:
    return step.spec.name in _TIMED and step.position.track == "main" and step.position.cycle is not None


def peaks(history: History) -> dict[str, dict[str, list[int]]]:
    """Find the highest reading of each cycle, of the memory metrics that decide and of private host memory.

    Samples of the sampling thread are in it, so that a short peak within a load counts.
    """
    read = {metric for event in history.events if isinstance(event, SettleWindow) for metric in event.values}
    metrics = _memory_metrics(history.facts, read)
    samples = {metric: sorted(history.samples[metric]) for metric in metrics if metric in history.samples}
    found: dict[str, dict[str, list[int]]] = {metric: {} for metric in metrics}
    for started, events in _measured_cycles(history.events):
        where = f"in phase {started.phase} ({started.arm.value})"
        ended_ns = events[-1].t_ns if events and isinstance(events[-1], CycleFinished) else started.t_ns
        for metric in metrics:
            values = list(_values(events, metric))
            values += _sampled(samples.get(metric, []), started.t_ns, ended_ns)
            if values:
                found[metric].setdefault(where, []).append(max(values))
    return found


def _memory_metrics(facts: RunFacts, read: set[str]) -> list[str]:
    chosen = [*primary_metrics(facts.uses_gpu, read), *primary_metrics(False, read)]
    return [
        metric
        for metric in dict.fromkeys(chosen)
        if channel(metric) is not Channel.COUNT and not may_be_somebody_elses(metric, read)
    ]


def _values(events: Sequence[Event], metric: str) -> Iterator[int]:
    for event in events:
        if isinstance(event, SettleWindow):
            yield from (value for value in event.values.get(metric, ()) if value is not None)
        elif isinstance(event, Reading) and metric in event.values:
            yield event.values[metric]


def _sampled(samples: Sequence[tuple[int, int]], start_ns: int, end_ns: int) -> list[int]:
    first, last = (bisect.bisect_left(samples, (stamp, 0)) for stamp in (start_ns, end_ns))
    return [value for _, value in samples[first:last]]


def lateness_ns(history: History) -> float:
    """Say how much later than planned the readings of settle windows came: the 90th percentile over the windows.

    The server has no part in it: on a machine that is busy with something else, it grows as the times of the server do.
    """
    late = [
        (window.times_ns[-1] - window.times_ns[0]) / (len(window.times_ns) - 1) - _BETWEEN_READINGS_NS
        for window in history.of(SettleWindow)
        if len(window.times_ns) > 1
    ]
    return max(0.0, statistics.quantiles(late, n=10)[-1]) if len(late) > 1 else 0.0


def _measured_cycles(events: Sequence[Event]) -> Iterator[tuple[CycleStarted, list[Event]]]:
    """Yield each finished cycle that is no warm-up, with its events."""
    started: CycleStarted | None = None
    inside: list[Event] = []
    for event in events:
        if isinstance(event, CycleStarted):
            started, inside = event, []
        elif started is not None:
            inside.append(event)
            if isinstance(event, CycleFinished):
                if not started.is_warm_up:
                    yield started, inside
                started = None
