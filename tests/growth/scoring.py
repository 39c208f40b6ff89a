"""Feeds the growth test reading by reading, stops at its first verdict, and counts what came out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tests.growth.detectors import SEEN
from tests.growth.series import Series
from tritonchaos.growth import Growth, GrowthTest

FLAT_CYCLES = 44
BUDGET = 200  # treatment cycles; what is found later does not count


@dataclass(frozen=True)
class Outcome:
    """What came out for one series; cycles of both arms and seconds of CPU are what the test used."""

    series: Series
    verdict: str
    cycles: int
    bytes_per_cycle: float | None = None
    interval: tuple[float, float] | None = None
    rule: str = ""
    cpu_s: float = 0.0

    @property
    def treatment_cycles(self) -> int:
        return self.series.arms[: self.cycles].count("T")

    @property
    def error(self) -> float | None:
        truth = self.series.bytes_per_cycle
        if self.verdict != "LEAK" or self.series.label != "LEAK" or not truth or self.bytes_per_cycle is None:
            return None
        return abs(self.bytes_per_cycle / truth - 1)

    @property
    def covers(self) -> bool | None:
        if self.error is None or self.interval is None:
            return None
        low, high = self.interval
        return low <= (self.series.bytes_per_cycle or 0.0) <= high


def sequential(series: Series, arms: str = "", budget: int | None = None) -> Outcome:
    """Judge one series; `arms` replaces its own."""
    test = GrowthTest(series.quantum, series.footprint, series.channel, interleaved=series.interleaved)
    order = series.arm_list if not arms else Series("", "", "", [], arms, 1).arm_list
    began, cycles = time.process_time(), 0
    for value, arm in zip(series.values, order, strict=False):
        cycles += 1
        state = test.see(value, arm)
        if state.verdict is not Growth.INCONCLUSIVE or test.treatment_cycles == budget:
            break
    found = test.latest
    return Outcome(
        series,
        found.verdict.value,
        cycles,
        found.bytes_per_cycle,
        found.interval,
        found.rule,
        time.process_time() - began,
    )


def least_cycles(series: Series) -> int | None:
    """Return the readings that whoever knows the floor in advance needs to see 44 treatment cycles without growth.

    No rule that waits for so many can be faster on average. Host growth below 16 KiB does not count.
    """
    step = (4 if series.channel == "host" else 1) * series.quantum
    floors = list(accumulate(reversed(series.values), min))[::-1]
    mark, flat = floors[0], 0
    for at, floor in enumerate(floors[1:], 1):
        if floor - mark >= step:
            mark, flat = floor, 0
        else:
            flat += series.arms[at] == "T"
        if flat == FLAT_CYCLES:
            return at + 1
    return None


def judged_at_once(rule: Callable[[Series], tuple[str, float | None]], series: Series) -> Outcome:
    began = time.process_time()
    verdict, rate = rule(series)
    return Outcome(series, verdict, min(SEEN, len(series.values)), rate, None, "", time.process_time() - began)


@dataclass(frozen=True)
class Score:
    """Counts over many series; shares as (of, all)."""

    bounded: int
    false_leaks: int
    leaks: int
    found: int
    missed_as_stable: int
    to_leak: float
    to_stable: float
    median_error: float
    p90_error: float
    covered: tuple[int, int]
    ms_per_1000: float


def score(outcomes: Iterable[Outcome]) -> Score:
    all_of = list(outcomes)
    bounded = [one for one in all_of if one.series.label == "STABLE"]
    leaks = [one for one in all_of if one.series.label == "LEAK"]
    errors = sorted(one.error for one in leaks if one.error is not None)
    covers = [one.covers for one in leaks if one.covers is not None]
    found = [one for one in leaks if one.verdict == "LEAK"]
    cycles = sum(one.cycles for one in all_of)
    return Score(
        bounded=len(bounded),
        false_leaks=sum(one.verdict == "LEAK" for one in bounded),
        leaks=len(leaks),
        found=len(found),
        missed_as_stable=sum(one.verdict == "STABLE" for one in leaks),
        to_leak=_mean([one.cycles for one in found]),
        to_stable=_mean([one.cycles for one in bounded if one.verdict == "STABLE"]),
        median_error=_rank(errors, 0.5),
        p90_error=_rank(errors, 0.9),
        covered=(sum(covers), len(covers)),
        ms_per_1000=1e6 * sum(one.cpu_s for one in all_of) / cycles if cycles else math.nan,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan
