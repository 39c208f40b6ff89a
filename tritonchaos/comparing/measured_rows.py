"""Compares times and peak memory, cycle by cycle, so that a busy machine is never taken for a slower server."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tritonchaos.comparing.records import Kind, Outcome, Row
from tritonchaos.comparing.runs import ComparedRun
from tritonchaos.comparing.statistics import Shift, paired_shift, shift, shift_of_runs
from tritonchaos.post_unload import Channel, channel
from tritonchaos.units import MIB, format_bytes

_FEWEST_CYCLES: Final = 5
RUNS_FOR_SPREAD: Final = 3
_MACHINE: Final = ("machine", "cpu_count", "gpu_uuids")
# How much later the readings of the candidate may come before its times say nothing of the server.
_BUSIER_NS: Final = 1_000_000

Runs = Sequence[ComparedRun]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What counts as a difference: more than a factor, and more than an amount.

    Attributes:
        factor: Of the base.
        amount: In ns or bytes.
    """

    factor: float
    amount: float


# One run a side cannot show what differs from run to run on the same machine; with three a side it is in the interval.
_ONE_RUN: Final = Tolerance(2.0, 20e6)
_MORE_RUNS: Final = Tolerance(1.25, 5e6)
_HOST_PEAK: Final = Tolerance(1.1, 4 * MIB)
# Two pages of the driver, and a tenth.
_DEVICE_PEAK: Final = Tolerance(1.1, 4 * MIB)


def judge_shift(found: Shift, base: float, tolerance: Tolerance) -> Outcome:
    """Hold a difference, with its interval, against what counts as one.

    Args:
        found: Candidate minus base.
        base: The base's own value, in the same unit.
    """
    limit = max(tolerance.amount, (tolerance.factor - 1) * base)
    if found.low > limit:
        return Outcome.WORSE
    # The same factor the other way round: half the time is as much better as twice the time is worse.
    if found.high < -max(tolerance.amount, (1 - 1 / tolerance.factor) * base):
        return Outcome.BETTER
    return Outcome.SAME if -limit <= found.low and found.high <= limit else Outcome.CANNOT_TELL


# --- times ---------------------------------------------------------------------------------------


def time_rows(scenario: str, base: Runs, candidate: Runs) -> Iterator[Row]:
    """Compare how long loads, unloads and settling took. What cannot be told does not count."""
    doubt = _doubt(base, candidate)
    for what in _common(base, candidate, lambda run: run.times_ns):
        old, new = ([run.times_ns.get(what, ()) for run in runs] for runs in (base, candidate))
        row = _time_row(scenario, what, [s for s in old if s], [s for s in new if s], doubt)
        if row is not None:
            yield row


def _common(base: Runs, candidate: Runs, of: Callable[[ComparedRun], Iterable[str]]) -> list[str]:
    there = {what for run in candidate for what in of(run)}
    return [what for what in dict.fromkeys(what for run in base for what in of(run)) if what in there]


def _time_row(scenario: str, what: str, old: list[Sequence[int]], new: list[Sequence[int]], doubt: str) -> Row | None:
    many = min(len(old), len(new)) >= RUNS_FOR_SPREAD
    before, after = _joined(old), _joined(new)
    if not many and min(len(before), len(after)) < _FEWEST_CYCLES:
        return None
    if many:
        found = shift_of_runs([median(series) for series in old], [median(series) for series in new])
    else:
        found = shift(before, after)
    outcome = judge_shift(found, median(before), _MORE_RUNS if many else _ONE_RUN)
    why = ""
    if doubt and outcome in (Outcome.WORSE, Outcome.BETTER):
        outcome, why = Outcome.CANNOT_TELL, doubt
    return Row(
        scenario,
        Kind.TIME,
        f"time of {what}",
        outcome,
        f"{median(before) / 1e6:.2f} ms",
        f"{median(after) / 1e6:.2f} ms",
        found.estimate,
        (found.low, found.high),
        why,
        decides=outcome is not Outcome.CANNOT_TELL,
    )


def _doubt(base: Runs, candidate: Runs) -> str:
    """Say why times say nothing of the server: another machine, or one that was busier on one side."""
    for name in _MACHINE:
        old, new = ({run.facts.target.get(name, "") for run in runs} for runs in (base, candidate))
        if old != new:
            return f"the machines differ in {name}"
    before, after = (max(run.lateness_ns for run in runs) for runs in (base, candidate))
    if abs(after - before) > _BUSIER_NS:
        side = "candidate" if after > before else "base"
        late = f"{before / 1e6:.1f} ms and {after / 1e6:.1f} ms"
        return f"the machine was busier in the {side}: readings came late by {late} (90 %)"
    return ""


def _joined(series: list[Sequence[int]]) -> list[int]:
    return [value for one in series for value in one]


def median(values: Sequence[float]) -> float:
    """Return the median; 0 of nothing."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if not ordered:
        return 0.0
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)


# --- peak memory ---------------------------------------------------------------------------------


def memory_rows(scenario: str, base: Runs, candidate: Runs) -> Iterator[Row]:
    """Compare the highest reading of each cycle with that of the same cycle of the other side."""
    for metric in _common(base, candidate, lambda run: run.peaks):
        tolerance = _DEVICE_PEAK if channel(metric) is Channel.DEVICE else _HOST_PEAK
        for where in _common(base, candidate, partial(_wheres, metric)):
            old, new = ([_peaks(run, metric, where) for run in runs] for runs in (base, candidate))
            row = _memory_row(scenario, f"peak of {metric} {where}", old, new, tolerance)
            if row is not None:
                yield row


def _wheres(metric: str, run: ComparedRun) -> Iterable[str]:
    return run.peaks.get(metric, {})


def _peaks(run: ComparedRun, metric: str, where: str) -> Sequence[int]:
    of_metric: Mapping[str, Sequence[int]] = run.peaks.get(metric, {})
    return of_metric.get(where, ())


def _memory_row(
    scenario: str, about: str, old: list[Sequence[int]], new: list[Sequence[int]], tolerance: Tolerance
) -> Row | None:
    before, after = _typical(old), _typical(new)
    count = min(len(before), len(after))
    if count < _FEWEST_CYCLES:
        return None
    found = paired_shift(before, after)
    if not math.isfinite(found.low):
        return None
    outcome = judge_shift(found, median(before[:count]), tolerance)
    return Row(
        scenario,
        Kind.MEMORY,
        about,
        outcome,
        format_bytes(median(before[:count])),
        format_bytes(median(after[:count])),
        found.estimate,
        (found.low, found.high),
        decides=outcome is not Outcome.CANNOT_TELL,
    )


def _typical(runs: list[Sequence[int]]) -> list[float]:
    """Return for each cycle the median over the runs that got as far."""
    longest = max((len(run) for run in runs), default=0)
    return [median([run[cycle] for run in runs if len(run) > cycle]) for cycle in range(longest)]
