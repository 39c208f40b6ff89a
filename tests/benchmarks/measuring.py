"""Runs `tritonchaos` as a user does and takes the numbers from the run directory."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks import scenarios
from tritonchaos.observations import CycleStarted, History, ServerExited, SettleWindow, StepFinished, TrafficSummary
from tritonchaos.store import open_history

_STEPS = Path(__file__).with_name("steps.py")
_ATTEMPTS = 3
_MS = 1e6
SETTLE_MS = 20.0


@dataclass(frozen=True)
class Finished:
    """One run of the command line.

    Attributes:
        began_ns, ended_ns: CLOCK_MONOTONIC around the whole process.
        crashed_before: Runs thrown away before it, because Triton itself crashed in them.
    """

    history: History
    folder: Path
    began_ns: int
    ended_ns: int
    crashed_before: int


def command() -> list[str]:
    """The command line of the tritonchaos that this Python has."""
    return [sys.executable, "-m", "tritonchaos"]


def run(text: str, parent: Path, say: Callable[[str], None]) -> Finished:
    """Run a scenario; one in which the server crashed is run again, and counted."""
    for attempt in range(_ATTEMPTS):
        folder = parent / f"run-{time.monotonic_ns()}"
        scenario = folder.with_suffix(".yaml")
        scenario.write_text(text)
        began_ns = time.monotonic_ns()
        done = subprocess.run(
            [*command(), "run", str(scenario), "--out", str(folder), "--plugin", str(_STEPS)],
            capture_output=True,
            text=True,
        )
        ended_ns = time.monotonic_ns()
        if done.returncode in {2, 4, 70}:
            sys.exit(f"the benchmark could not be run:\n{done.stderr}")
        history = open_history(folder)
        if next(iter(history.of(ServerExited)), None) is None:
            return Finished(history, folder, began_ns, ended_ns, attempt)
        say("the server crashed; once more")
    sys.exit(f"the server crashed in {_ATTEMPTS} runs")


# --- what a cycle costs --------------------------------------------------------------------------


@dataclass(frozen=True)
class CycleCost:
    """Medians of one round, in milliseconds."""

    ours_ms: float
    bare_ms: float

    @property
    def added_ms(self) -> float:
        """What tritonchaos adds to the bare loop and the 20 ms of its settle window."""
        return self.ours_ms - self.bare_ms - SETTLE_MS


def cycle_costs(history: History) -> list[CycleCost]:
    """Compare each round's cycles with the bare loop before them."""
    bare = {step.position.phase: _observed(step, "cycles_ns") for step in _steps(history, "bare_cycles")}
    costs = []
    for number, phase in enumerate(bare):
        ours = cycle_times_ns(history, f"ours_{number}")
        costs.append(CycleCost(statistics.median(ours) / _MS, statistics.median(bare[phase]) / _MS))
    return costs


def cycle_times_ns(history: History, phase: str) -> list[int]:
    """From the start of each cycle of a phase to the start of the next, in nanoseconds."""
    starts = [event.t_ns for event in history.of(CycleStarted) if event.phase == phase]
    return [after - before for before, after in itertools.pairwise(starts)]


def engine_ms_per_cycle(history: History, count: int) -> list[float]:
    """Processor time of the engine's thread in each round, by its cycles."""
    seen = looks(history)
    return [(after.main_ns - before.main_ns) / count / _MS for before, after in zip(seen[::2], seen[1::2], strict=True)]


def rollups_ms(history: History) -> list[float]:
    """Wall time of one reading of the server's smaps_rollup, read a few times after each round."""
    return [step.observed["rollup_ns"] / _MS for step in _steps(history, "look_at_tool")[1::2]]


def long_windows(history: History) -> tuple[int, int]:
    """Settle windows that took more than their three readings, and all."""
    windows = list(history.of(SettleWindow))
    return sum(len(window.times_ns) > history.facts.sample_count for window in windows), len(windows)


# --- tritonchaos itself --------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """What the step `look_at_tool` saw."""

    monotonic_ns: int
    main_ns: int
    sampling_ns: int
    rss_bytes: int
    rollup_ns: int


def looks(history: History) -> list[Look]:
    """All looks at tritonchaos itself, in order."""
    return [Look(**step.observed) for step in _steps(history, "look_at_tool")]


def store_bytes_per_cycle_and_metric(finished: Finished) -> tuple[float, int]:
    """Size of the finished run.db by cycles and metrics, and the number of metrics."""
    windows = list(finished.history.of(SettleWindow))
    metrics = {metric for window in windows for metric in window.values}
    return (finished.folder / "run.db").stat().st_size / len(windows) / len(metrics), len(metrics)


def help_times_s(count: int) -> list[float]:
    """Wall time of `tritonchaos --help`, after one run that fills the caches."""
    times = []
    for _ in range(count + 1):
        began = time.monotonic()
        subprocess.run([*command(), "--help"], check=True, capture_output=True)
        times.append(time.monotonic() - began)
    return times[1:]


def first_cycle_times_s(count: int, parent: Path, say: Callable[[str], None]) -> list[float]:
    """From the start of the process to the start of the first cycle; the first run fills the caches."""
    times = []
    for _ in range(count + 1):
        finished = run(scenarios.first_cycle(), parent, say)
        times.append((looks(finished.history)[0].monotonic_ns - finished.began_ns) / 1e9)
    return times[1:]


# --- inference -----------------------------------------------------------------------------------


def inference_rates(history: History) -> list[tuple[float, float]]:
    """Inferences per second of each round: (tritonchaos, bare loop)."""
    return [
        (_rate_of_track(history, f"ours_{number}"), _observed(bare, "per_second"))
        for number, bare in enumerate(_steps(history, "bare_inference"))
    ]


def _rate_of_track(history: History, phase: str) -> float:
    """Verified inferences per second: those recorded one by one, and those in the summaries of a second."""
    steps = [step for step in _steps(history, "infer") if step.position.phase == phase]
    counted = [summary for summary in history.of(TrafficSummary) if summary.phase == phase]
    right = sum(step.observed.get("match") is True for step in steps) + sum(summary.ok for summary in counted)
    if right != len(steps) + sum(summary.count for summary in counted):
        sys.exit("an inference of the benchmark was not answered as expected")
    began_ns = min(event.started_ns for event in (*steps, *counted))
    ended_ns = max(event.t_ns for event in (*steps, *counted))
    return right / ((ended_ns - began_ns) / 1e9)


def _steps(history: History, name: str) -> Sequence[StepFinished]:
    return [step for step in history.of(StepFinished) if step.spec.name == name]


def _observed(step: StepFinished, key: str) -> Any:
    return step.observed[key]
