"""The evaluation that stays: every figure of docs/growth-verdict.md comes from here."""

from __future__ import annotations

import hashlib
import random
import resource
import statistics
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tritonchaos.growth
from tests.growth import bounded, leaks
from tests.growth.detectors import USUAL
from tests.growth.making import KINDS, coin_pairs
from tests.growth.mixes import (
    Job,
    additional_bounded,
    additional_leaks,
    evenly,
    in_proportion,
    labelled_kinds,
    make,
)
from tests.growth.scoring import BUDGET, Outcome, Score, judged_at_once, score, sequential
from tests.growth.series import OWN_RECORDED, PUBLIC, RECORDED, Series, read
from tritonchaos.growth import GrowthTest
from tritonchaos.observations import Arm
from tritonchaos.units import MIB

OURS = "tritonchaos"
_PAIRS = 50
_GROWING = (
    "l_const",
    "l_page_fill",
    "l_intermittent",
    "l_two_sizes",
    "l_random_size",
    "l_batch",
    "l_jitter",
    "l_saw_net",
    "l_outliers",
    "l_cotenant",
    "l_footprint",
    "l_warm_const",
    "l_late",
    "l_accelerating",
    "l_arm_block",
    "m_decelerating",
    "m_page_slow",
    "h_walk",
    "h_coupon_32",
    "h_pool_long",
)


@dataclass(frozen=True)
class Sizes:
    """How many series of each sort."""

    bounded: int = 10_000  # in the mix of the labelled series
    leaks: int = 3_000
    more_bounded: int = 4_500  # of the additional kinds
    more_leaks: int = 1_350
    slow: int = 1_200
    hard: int = 100  # of each kind
    compared: int = 600  # bounded ones and leaks on which the usual rules are tried
    shuffles: int = 1_000
    long_run: int = 1_000_000


QUICK = Sizes(330, 150, more_bounded=150, more_leaks=90, slow=20, hard=4, compared=40, shuffles=20, long_run=20_000)


@dataclass(frozen=True)
class LongRun:
    readings: int
    cpu_s: float
    peak_mib: float
    verdict: str


@dataclass(frozen=True)
class KindsCycles:
    """What became of the bounded series of a kind; `labelled` are those of the labelled set, if it has any."""

    kind: str
    labelled: list[Outcome]
    fresh: list[Outcome]


@dataclass(frozen=True)
class Figures:
    """Everything that is reported.

    `fresh` are the kinds of the labelled series in their own proportions, `more` the additional kinds of the generator.
    `promised` are the leaks among `fresh` that are as fast as promised, so without two slower kinds.
    """

    seed: str
    labelled: dict[str, Score]
    fresh: dict[str, Score]
    more: Score
    promised: Score
    to_stable: list[KindsCycles]
    ambiguous: tuple[int, int]
    recorded: list[Outcome]
    own_recorded: list[Outcome]
    slow: dict[str, list[Outcome]]
    hard: dict[str, list[Outcome]]
    footprint_median: float
    blamed: list[tuple[str, int, int]]
    long_run: LongRun
    false_leaks: list[str]
    missed: list[str]


def seed_of_source() -> str:
    """Return a hash of the growth package: a change of the code changes all fresh series."""
    digest = hashlib.sha256()
    for path in sorted(Path(tritonchaos.growth.__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def evaluate(sizes: Sizes, seed: str = "", processes: int = 2) -> Figures:
    seed = seed or seed_of_source()
    public = read(PUBLIC)
    with ProcessPoolExecutor(processes) as pool:
        long_run = pool.submit(_long_run, sizes.long_run)
        mix = [
            *in_proportion(labelled_kinds("STABLE"), sizes.bounded),
            *in_proportion(labelled_kinds("LEAK"), sizes.leaks),
        ]
        ours = [*evenly(additional_bounded(), sizes.more_bounded), *evenly(additional_leaks(), sizes.more_leaks)]
        fresh, more = _judged(pool, mix, seed), _judged(pool, ours, seed)
        slow = _by_kind(_judged(pool, evenly(leaks.slow_kinds(), sizes.slow), seed))
        kinds = bounded.hard_kinds()
        hard = _by_kind(_judged(pool, evenly(kinds, sizes.hard * len(kinds)), seed))
        jobs = [(name, sizes.shuffles, seed) for name in _GROWING]
        blamed = list(pool.map(_shuffled, *zip(*jobs, strict=True)))
        outcomes = [sequential(series) for series in public]
        compared = [one.series for one in [*fresh[: sizes.compared], *fresh[sizes.bounded :][: sizes.compared]]]
        return Figures(
            seed=seed,
            labelled={OURS: score(outcomes), **_usual(pool, public)},
            fresh={OURS: score(fresh), **_usual(pool, compared)},
            more=score(more),
            promised=score(one for one in fresh if one.series.kind.startswith("l_")),
            to_stable=_cycles_by_kind(outcomes, [*fresh, *more]),
            ambiguous=_left_open(outcomes),
            recorded=[sequential(series) for series in read(RECORDED)],
            own_recorded=[sequential(series) for path in OWN_RECORDED for series in _only_recorded(path)],
            slow=slow,
            hard=hard,
            footprint_median=statistics.median(o.cycles for o in more if o.series.kind == "l_footprint"),
            blamed=blamed,
            long_run=long_run.result(),
            false_leaks=[o.series.name for o in [*fresh, *more, *outcomes] if _is_false_leak(o)],
            missed=[o.series.name for o in [*fresh, *more] if o.series.label == "LEAK" and o.verdict != "LEAK"],
        )


def _judged(pool: ProcessPoolExecutor, jobs: Sequence[Job], seed: str) -> list[Outcome]:
    """Each process makes its own series: ten thousand of them are more to send than to make."""
    return list(pool.map(_make_and_judge, jobs, [seed] * len(jobs), chunksize=50))


def _make_and_judge(job: Job, seed: str) -> Outcome:
    return sequential(make(job, seed), budget=BUDGET)


def _cycles_by_kind(labelled: Iterable[Outcome], fresh: Iterable[Outcome]) -> list[KindsCycles]:
    known, made_now = _by_kind(labelled), _by_kind(fresh)
    return [KindsCycles(kind, known.get(kind, []), of) for kind, of in made_now.items() if kind.startswith("s_")]


def _is_false_leak(outcome: Outcome) -> bool:
    return outcome.verdict == "LEAK" and outcome.series.label != "LEAK"


def _only_recorded(path: Path) -> list[Series]:
    return [series for series in read(path) if "real" in series.kind and "small" not in path.name]


def _by_kind(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.series.kind, []).append(outcome)
    return dict(sorted(found.items()))


def _left_open(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    ambiguous = [one for one in outcomes if one.series.label == "AMBIGUOUS"]
    return sum(one.verdict == "INCONCLUSIVE" for one in ambiguous), len(ambiguous)


def _usual(pool: ProcessPoolExecutor, series: Sequence[Series]) -> dict[str, Score]:
    names = list(USUAL)
    return dict(zip(names, pool.map(_one_usual, names, [series] * len(names)), strict=True))


def _one_usual(name: str, series: Sequence[Series]) -> Score:
    return score(judged_at_once(USUAL[name], one) for one in series)


# --- labels of coin-ordered pairs ----------------------------------------------------------------


def _shuffled(name: str, count: int, seed: str) -> tuple[str, int, int]:
    """Give a growing series the labels of fair coins, again and again: how often is the treatment blamed?"""
    grown = KINDS[name](random.Random(f"{seed}/shuffled/{name}"))
    values, coin = grown.values[: 2 * _PAIRS], random.Random(f"{seed}/labels/{name}")
    blamed = 0
    for _ in range(count):
        arms = coin_pairs(coin, _PAIRS)
        series = Series(name, name, "", values, arms, grown.quantum, "device", grown.footprint)
        test = GrowthTest(series.quantum, series.footprint, interleaved=True)
        blamed += any(test.see(v, a).verdict.value == "LEAK" for v, a in zip(values, series.arm_list, strict=True))
    return name, blamed, count


# --- one long run --------------------------------------------------------------------------------


def _long_run(readings: int) -> LongRun:
    """A busy co-tenant's noise, judged to the end."""
    noise, test = random.Random(1), GrowthTest(2 * MIB)
    began = time.process_time()
    for _ in range(readings):
        test.see(10**10 + round(noise.gauss(0, 2)) * 2 * MIB, Arm.TREATMENT)
    cpu_s = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return LongRun(readings, cpu_s, peak, test.state.verdict.value)
