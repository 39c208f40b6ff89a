"""What one run of a trial showed, and when nothing can be told from it."""

from __future__ import annotations

from tests.builders import CONTROL, TREATMENT, failed_load, run
from tests.calibration_outcomes import METRIC
from tritonchaos.calibration.outcomes import Outcome, outcome_of
from tritonchaos.calibration.trials import AT_MOST, FAILED_LOADS, HOST, Kind, Trial
from tritonchaos.calibration.trials import CONTROL as GOOD_LOADS
from tritonchaos.observations import History, MetricLost, PhaseFacts
from tritonchaos.summary import finish
from tritonchaos.units import KIB, MIB
from tritonchaos.verdict import Assessment, Finding, Status, Verdict

PHASES = (PhaseFacts(GOOD_LOADS, CONTROL, "cycles", 30), PhaseFacts(FAILED_LOADS, TREATMENT, "cycles", AT_MOST))
LEAK = Finding("leak", "memory_growth", "it grows", metric=METRIC, bytes_per_cycle=float(MIB))
CRASH = Finding("crash", "server_alive", "SIGSEGV")


def history(series: list[int], *more: object, **facts: object) -> History:
    built = run().start({METRIC: MIB}).phase(GOOD_LOADS, CONTROL, METRIC, [MIB] * 4)
    built = built.phase(FAILED_LOADS, TREATMENT, METRIC, series, **failed_load())
    return built.add(*more).history(phases=PHASES, **facts)  # type: ignore[arg-type]


def outcome(kind: Kind, recorded: History, word: str, *findings: Finding) -> Outcome:
    status = Status.FAIL if findings else Status.PASS
    row = Assessment("memory_growth", status, "because", METRIC, word, "steady", 13, 2048.0, findings)
    finished = finish(recorded, Verdict(status, (row,), findings), 1 if findings else 0)
    return outcome_of(Trial(HOST, kind, MIB), "model_finalize", "001", 2.0, finished)


def test_a_leak_that_was_planted_is_no_false_alarm() -> None:
    seen = outcome(Kind.LEAK, history([MIB * cycle for cycle in range(1, 14)]), "LEAK", LEAK)
    assert (seen.void, seen.false_alarms) == ("", ())
    assert (seen.verdicts[METRIC].word, seen.verdicts[METRIC].cycles) == ("LEAK", 13)
    assert len(seen.cycle_ns) == 13


def test_a_leak_in_a_clean_twin_is_a_false_alarm() -> None:
    assert outcome(Kind.CLEAN, history([MIB] * 13), "LEAK", LEAK).false_alarms == ("it grows",)
    assert outcome(Kind.POOL, history([MIB] * 13), "LEAK", LEAK).false_alarms == ("it grows",)


def test_noise_is_how_far_the_later_half_lies_apart() -> None:
    series = [MIB, 9 * MIB, 9 * MIB, MIB, MIB + 8 * KIB, MIB + 4 * KIB]
    assert outcome(Kind.CLEAN, history(series), "STABLE").noise == {METRIC: 8 * KIB}


def test_a_crash_says_nothing_of_how_well_growth_is_seen() -> None:
    assert outcome(Kind.LEAK, history([MIB] * 3), "LEAK", LEAK, CRASH).void == "crash: SIGSEGV"


def test_a_run_that_ended_early_is_no_miss() -> None:
    assert "after 20 of 200 cycles" in outcome(Kind.LEAK, history([MIB] * 20), "INCONCLUSIVE").void
    assert outcome(Kind.LEAK, history([MIB] * AT_MOST), "INCONCLUSIVE").void == ""


def test_a_gpu_that_was_lost_voids_the_run() -> None:
    lost = MetricLost(5, "nvml_process_used_bytes", "GPU is lost")
    seen = outcome(Kind.LEAK, history([MIB] * 20, lost), "LEAK", LEAK)
    assert seen.void == "nvml_process_used_bytes was lost: GPU is lost"
    assert seen.lost == {"nvml_process_used_bytes": "GPU is lost"}
