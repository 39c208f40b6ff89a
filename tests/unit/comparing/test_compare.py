"""What is new, worse, fixed, better, same, and what cannot be told; and which of it decides."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.comparing.compared_runs import (
    ALIVE,
    HOST,
    compared,
    crash,
    leak,
    side,
    stable,
    undecided,
)
from tritonchaos.comparing.compare import compare_sides
from tritonchaos.comparing.document import document
from tritonchaos.comparing.finding_rows import fisher
from tritonchaos.comparing.records import Comparison, Kind
from tritonchaos.comparing.runs import ComparedRun
from tritonchaos.errors import UsageError
from tritonchaos.units import MIB
from tritonchaos.verdict import Assessment, Status

CLEAN = (stable(), ALIVE)
BESIDE = undecided(metric="host_rss_bytes", counts=False)


def runs(number: int, *assessments: Any, **fields: Any) -> list[ComparedRun]:
    return [compared(*assessments, name=f"run-{n}", **fields) for n in range(number)]


def of(base: list[ComparedRun], candidate: list[ComparedRun], **how: Any) -> Comparison:
    return compare_sides(side(*base, name="base"), side(*candidate, name="candidate"), **how)


def outcomes(comparison: Comparison, *kinds: Kind) -> dict[str, str]:
    shown = {row.about: row.outcome.value + ("" if row.decides else "*") for row in comparison.rows}
    return {about: word for about, word in shown.items() if not kinds or _kind(comparison, about) in kinds}


def _kind(comparison: Comparison, about: str) -> Kind:
    return next(row.kind for row in comparison.rows if row.about == about)


@pytest.mark.parametrize(
    ("base", "candidate", "exit_code", "word"),
    [
        (CLEAN, CLEAN, 0, "same"),
        (CLEAN, (leak(), ALIVE), 1, "worse"),
        (CLEAN, (stable(), crash()), 1, "worse"),
        ((leak(), ALIVE), CLEAN, 0, "better"),
        ((leak(), crash()), (leak(), crash()), 0, "same"),
        ((leak(1.0), ALIVE), (leak(2.0), ALIVE), 1, "worse"),
        ((leak(2.0), ALIVE), (leak(1.0), ALIVE), 0, "better"),
        ((leak(1.0), ALIVE), (leak(1.1), ALIVE), 0, "same"),
        (CLEAN, (undecided(), ALIVE), 3, "cannot tell"),
        ((undecided(), ALIVE), CLEAN, 0, "same"),
        ((undecided(), ALIVE), (leak(), ALIVE), 3, "cannot tell"),
        ((leak(), ALIVE), (undecided(), ALIVE), 3, "cannot tell"),
        ((stable(2 * MIB), ALIVE), (leak(1.0), ALIVE), 3, "cannot tell"),  # the base would have missed it
        (CLEAN, (stable(),), 3, "cannot tell"),  # the check is gone
        ((stable(),), CLEAN, 0, "same"),
        ((*CLEAN, BESIDE), (*CLEAN, BESIDE), 0, "same"),
        ((undecided(), ALIVE), (undecided(), crash()), 1, "worse"),  # one thing is worse, whatever else is
    ],
)
def test_one_run_against_one(base: Any, candidate: Any, exit_code: int, word: str) -> None:
    comparison = of([compared(*base)], [compared(*candidate)])
    assert (comparison.exit_code, comparison.word) == (exit_code, word), outcomes(comparison)


def test_a_new_leak_is_told_as_finding_and_as_growth() -> None:
    comparison = of([compared(*CLEAN)], [compared(leak(), ALIVE)])
    found = outcomes(comparison, Kind.FINDING, Kind.GROWTH)
    assert found == {
        f"leak: {HOST} grows by 1.0 MiB per cycle in wrong": "new",
        f"growth of {HOST} per cycle": "worse",
    }
    assert comparison.headline.startswith("WORSE: candidate against base: 1 new, 1 worse")
    [row] = [row for row in comparison.rows if row.kind is Kind.GROWTH]
    assert row.difference == pytest.approx(MIB)
    assert row.interval is not None and 0 < row.interval[0] < MIB < row.interval[1]


def test_a_leak_of_another_size_is_the_same_finding_with_a_difference() -> None:
    comparison = of([compared(leak(1.0))], [compared(leak(3.0))])
    [row] = [row for row in comparison.rows if row.kind is Kind.GROWTH]
    assert row.difference == pytest.approx(2 * MIB)
    assert row.interval == pytest.approx((1.8 * MIB, 2.2 * MIB))
    assert not [row for row in comparison.rows if row.outcome.value in ("new", "fixed")]


def test_what_does_not_count_does_not_decide() -> None:
    comparison = of([compared(*CLEAN)], [compared(stable(), crash(counts=False))])
    assert comparison.exit_code == 0
    assert "new*" in outcomes(comparison, Kind.FINDING).values()


def test_known_findings_that_are_accepted_do_not_decide() -> None:
    known = leak()
    known = replace(known, findings=tuple(replace(f, known="https://example.org/1") for f in known.findings))
    assert of([compared(*CLEAN)], [compared(known, ALIVE)]).exit_code == 1
    comparison = of([compared(*CLEAN)], [compared(known, ALIVE, accept_known=True)])
    assert comparison.exit_code == 0
    assert set(outcomes(comparison, Kind.FINDING, Kind.GROWTH).values()) == {"new*", "worse*"}


def test_a_base_that_was_cut_short_does_not_speak_against_the_candidate() -> None:
    cut_short = Assessment("max_time", Status.UNKNOWN, "the run's longest time was over")
    assert of([compared(*CLEAN, cut_short)], [compared(*CLEAN)]).exit_code == 0
    assert of([compared(*CLEAN)], [compared(*CLEAN, cut_short)]).exit_code == 3


def test_an_interrupted_candidate_cannot_be_told() -> None:
    comparison = of([compared(*CLEAN)], [compared(*CLEAN, interrupted=True)])
    assert comparison.exit_code == 3


# --- several runs a side -------------------------------------------------------------------------


def test_a_crash_that_comes_now_and_then_is_not_fixed_by_one_good_run() -> None:
    base = [*runs(9, *CLEAN), compared(stable(), crash(), name="bad")]
    comparison = of(base, [compared(*CLEAN)])
    [row] = [row for row in comparison.rows if row.kind is Kind.FINDING]
    assert (row.outcome.value, row.decides) == ("cannot tell", False)
    assert "it comes in 1 of 10 runs" in row.why
    assert comparison.exit_code == 0
    assert "fixed" in outcomes(of(base, runs(40, *CLEAN)), Kind.FINDING).values()


def test_a_crash_that_comes_much_oftener_is_worse() -> None:
    base = [*runs(9, *CLEAN), compared(stable(), crash(), name="bad")]
    assert of(base, [*runs(8, *CLEAN), *runs(2, stable(), crash())]).exit_code == 0
    assert of(base, runs(10, stable(), crash())).exit_code == 1


def test_fishers_exact_test() -> None:
    # The tea-tasting of R. A. Fisher, "The Design of Experiments" (1935): 4 of 4 right has p = 1/70.
    assert fisher((4, 4), (0, 4)) == pytest.approx(1 / 70)
    assert fisher((3, 4), (1, 4)) == pytest.approx(17 / 70)
    assert fisher((0, 4), (0, 4)) == 1


# --- times ---------------------------------------------------------------------------------------

LOAD = "load ident in phase good (control)"


def timed(median_ms: float, seed: int, cycles: int = 40, noise: float = 0.5, **fields: Any) -> ComparedRun:
    draws = random.Random(seed)
    times = [int(median_ms * 1e6 * draws.lognormvariate(0, noise)) for _ in range(cycles)]
    return compared(*CLEAN, times_ns={LOAD: times}, name=f"run-{seed}", **fields)


def time_outcome(base: list[ComparedRun], candidate: list[ComparedRun]) -> str:
    return outcomes(of(base, candidate), Kind.TIME).get(f"time of {LOAD}", "no row")


def test_clean_pairs_on_a_machine_whose_speed_wanders_are_never_worse() -> None:
    draws = random.Random(1)
    for pair in range(60):
        # Up to 1.7 times slower for the whole of a run, which no interval of one run shows.
        slow = [draws.uniform(1, 1.7) for _ in range(2)]
        base, candidate = (timed(100 * factor, 2 * pair + n, noise=0.3) for n, factor in enumerate(slow))
        comparison = of([base], [candidate])
        assert comparison.exit_code == 0, outcomes(comparison)


def test_a_load_that_takes_thrice_as_long_is_worse_and_the_other_way_round_better() -> None:
    assert time_outcome([timed(100, 1)], [timed(400, 2)]) == "worse"
    assert time_outcome([timed(400, 2)], [timed(100, 1)]) == "better"
    assert time_outcome([timed(1, 1)], [timed(10, 2)]) == "same"  # 9 ms
    assert time_outcome([timed(1, 1, cycles=3)], [timed(1000, 2, cycles=3)]) == "no row"


def test_a_busier_machine_and_another_machine_are_no_slower_server() -> None:
    busy = timed(400, 2, lateness_ns=3e6)
    comparison = of([timed(100, 1)], [busy])
    [row] = [row for row in comparison.rows if row.kind is Kind.TIME]
    assert (row.outcome.value, row.decides) == ("cannot tell", False)
    assert "busier in the candidate" in row.why
    other = timed(400, 2, target={"target": "local", "cpu_count": "64"})
    assert time_outcome([timed(100, 1)], [other]) == "cannot tell*"


def test_three_runs_a_side_tell_smaller_differences() -> None:
    base = [timed(100, seed, noise=0.1) for seed in range(3)]
    assert time_outcome(base, [timed(150, seed, noise=0.1) for seed in range(3, 6)]) == "worse"
    assert time_outcome(base[:1], [timed(150, 3, noise=0.1)]) == "same"
    # One of three was slow for the whole of its run.
    assert time_outcome(base, [timed(300, 3), timed(100, 4, noise=0.1), timed(101, 5, noise=0.1)]) == "cannot tell*"


# --- peak memory ---------------------------------------------------------------------------------


def peaking(mib: float, cycles: int = 20) -> ComparedRun:
    where = "in phase good (control)"
    peak = [int(mib * MIB) + 4096 * (cycle % 3) for cycle in range(cycles)]
    return compared(*CLEAN, peaks={HOST: {where: peak}})


@pytest.mark.parametrize(
    ("base", "candidate", "outcome"),
    [(100, 101, "same"), (100, 120, "worse"), (120, 100, "better"), (10, 13, "same"), (10, 15, "worse")],
)
def test_peaks_are_compared_cycle_by_cycle(base: float, candidate: float, outcome: str) -> None:
    comparison = of([peaking(base)], [peaking(candidate, cycles=15)])
    assert outcomes(comparison, Kind.MEMORY) == {f"peak of {HOST} in phase good (control)": outcome}


def test_a_few_cycles_say_nothing_of_peaks() -> None:
    assert outcomes(of([peaking(100)], [peaking(500, cycles=4)]), Kind.MEMORY) == {}


# --- which runs belong together ------------------------------------------------------------------


def test_other_scenarios_are_refused_with_their_differences() -> None:
    base, candidate = compared(*CLEAN, text="scenario: s\nseed: 1\n"), compared(*CLEAN, text="scenario: s\nseed: 2\n")
    with pytest.raises(UsageError, match=r"(?s)-seed: 1\n\+seed: 2.*--different-scenarios"):
        of([base], [candidate])
    allowed = of([base], [candidate], different_scenarios=True)
    assert allowed.exit_code == 0
    assert "+seed: 2" in allowed.differences["s"]


def test_another_target_is_the_same_scenario_and_is_told() -> None:
    base = compared(*CLEAN, text="# one\nscenario: s\ntarget: [local]\n", target={"triton_version": "2.51.0"})
    candidate = compared(*CLEAN, text="target: [docker]\nscenario: s\n", target={"triton_version": "2.60.0"})
    comparison = of([base], [candidate])
    assert comparison.differences == {}
    assert "triton_version: 2.51.0 in the base, 2.60.0 in the candidate" in comparison.notes


def test_another_variant_is_not_the_same_thing() -> None:
    base, candidate = compared(*CLEAN), compared(*CLEAN, variants={"ident": "tensorrt"})
    with pytest.raises(UsageError, match="ident served by planted"):
        of([base], [candidate])


def test_a_scenario_that_the_candidate_lacks_cannot_be_told() -> None:
    both = [compared(*CLEAN), compared(*CLEAN, title="t")]
    comparison = compare_sides(side(*both), side(both[0], t="no target could be used"))
    assert comparison.exit_code == 3
    [row] = [row for row in comparison.rows if row.kind is Kind.RUN]
    assert (row.scenario, row.why) == ("t", "no target could be used")
    assert compare_sides(side(both[0]), side(*both)).exit_code == 3


def test_sides_without_a_common_scenario_are_refused() -> None:
    base = [compared(*CLEAN, title="a"), compared(*CLEAN, title="b")]
    with pytest.raises(UsageError, match="found a, b in the base and c in the candidate"):
        of(base, [compared(*CLEAN, title="c")])


def test_runs_without_anything_judged_cannot_be_told() -> None:
    assert of([compared()], [compared()]).exit_code == 3


def test_the_document_is_plain_and_has_no_infinity() -> None:
    comparison = of([timed(1, 1, cycles=2)], [timed(1, 2, cycles=60)])
    plain = document(comparison)
    assert plain["schema"] == "tritonchaos.compare/1"
    assert plain["outcome"] == "same"
    assert {row["outcome"] for row in plain["rows"]} == {"same"}
    assert "inf" not in str(plain).lower().replace("informed", "")
