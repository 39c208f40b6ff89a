"""What a calibration writes: calibration.json, its page, and what it keeps for later reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.calibration_outcomes import METRIC, clean, leak, outcome
from tritonchaos import calibrated
from tritonchaos.calibration import Calibration, document, page, write_files
from tritonchaos.calibration.document import statements
from tritonchaos.calibration.outcomes import Verdict
from tritonchaos.calibration.sampling_cost import SamplingCost
from tritonchaos.calibration.trials import DEVICE, Kind
from tritonchaos.cli.calibrate import exit_code
from tritonchaos.units import KIB, MIB

FACTS = {"target": "local", "triton_version": "2.51.0", "gpu_uuids": ""}
OUTCOMES = (
    clean(),
    clean(),
    *[leak(MIB, 13)] * 5,
    *[leak(256 * KIB, 13)] * 5,
    leak(16 * KIB, 200, "STABLE"),
    outcome(Kind.CACHE, MIB, "STABLE", 52),
    outcome(Kind.POOL, MIB, "INCONCLUSIVE", 200),
    clean(void="crash: SIGSEGV", folder="009"),
)
CALIBRATION = Calibration(
    FACTS, OUTCOMES, 60.0, 42.0, 1, SamplingCost(8_000, 600_000), ("planted_gpu: no GPU",), interrupted=False
)
ALARM = replace(CALIBRATION, outcomes=(*OUTCOMES, clean(false_alarms=("grows",), folder="010")))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(tmp_path / "cache"))


def test_the_document_has_what_was_found_missed_and_left_out() -> None:
    found = json.loads(json.dumps(document(CALIBRATION, "2026-12-01")))
    metric = found["metrics"][METRIC]
    assert metric["smallest_leak"]["20"] == {
        "bytes_per_cycle": MIB,
        "footprint_bytes": 0,
        "cycles": 17,
        "runs": 5,
    }
    assert metric["smallest_leak"]["10"] is None
    assert [(row["bytes_per_cycle"], row["found"], row["called_stable"]) for row in metric["leaks"]] == [
        (MIB, 5, 0),
        (256 * KIB, 5, 0),
        (16 * KIB, 0, 1),
    ]
    assert metric["leaks"][1]["why_not_claimed"] == "5 runs, 8 are needed"
    assert metric["leaks"][2]["why_not_claimed"] == "1 of 1 runs did not find it"
    assert metric["bounded"]["clean twin"] == {"runs": 2, "false_alarms": 0, "stable": 2, "cycles": [50, 50]}
    assert metric["bounded"]["late pool"]["stable"] == 0
    assert (metric["noise_floor_bytes"], metric["excluded_bytes_per_cycle"]) == (4 * KIB, 2 * KIB)
    assert metric["settle_ms"] == {"median": 25.0, "longest": 30.0}
    assert metric["cycle_ms"] == 25.0
    assert found["sampling"] == {"fast_us": 8.0, "all_us": 600.0, "share": 0.001}
    assert found["left_out"] == ["planted_gpu: no GPU"]
    assert [run["not_used"] for run in found["runs"] if run["not_used"]] == ["crash: SIGSEGV"]


def test_the_page_says_it_for_people_in_one_page() -> None:
    text = page(document(CALIBRATION, "2026-12-01"))
    assert "This set-up sees 1 MiB per cycle in 17 cycles (host_private_bytes); calibrated on 2026-12-01" in text
    assert "| 16 KiB | 1 | 0 |  | no: 1 of 1 runs did not find it, 1 said STABLE |" in text
    assert "| clean twin | 2 | 0 | 2 | 50 |" in text
    assert "- planted_gpu: no GPU" in text
    assert len(text.splitlines()) < 60


def test_a_calibration_of_nothing_says_so() -> None:
    nothing = replace(CALIBRATION, outcomes=(), cost=None)
    text = page(document(nothing, "2026-12-01"))
    assert "Nothing can be claimed" in text
    assert "could not be measured" in text


@pytest.mark.parametrize(
    ("calibration", "code"),
    [
        (CALIBRATION, 0),
        (ALARM, 1),
        (replace(CALIBRATION, interrupted=True), 130),
        (replace(CALIBRATION, outcomes=OUTCOMES[:4]), 3),
    ],
)
def test_exit_codes(calibration: Calibration, code: int) -> None:
    assert exit_code(calibration) == code


def write(folder: Path, calibration: Calibration) -> list[str]:
    folder.mkdir(exist_ok=True)
    return list(write_files(folder, calibration, document(calibration, "2026-12-01"), "2026-12-01"))


def test_later_reports_quote_what_was_kept_for_the_same_machine_target_and_kind_of_memory(tmp_path: Path) -> None:
    assert calibrated.statement(FACTS, uses_gpu=False) == ""
    lines = write(tmp_path / "a", CALIBRATION)
    assert any(line.startswith("kept for later reports") for line in lines)
    quoted = calibrated.statement(FACTS, uses_gpu=False)
    assert quoted.startswith("this set-up sees 1 MiB per cycle in 17 cycles (host_private_bytes)")
    assert calibrated.statement(FACTS, uses_gpu=True) == ""
    assert calibrated.statement({**FACTS, "triton_version": "2.60.0"}, uses_gpu=False) == ""
    assert calibrated.statement({**FACTS, "gpu_uuids": "GPU-1"}, uses_gpu=False) == ""


def test_what_is_known_of_the_other_kind_of_memory_is_kept_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "a", CALIBRATION)
    metric = "nvml_process_used_bytes"
    write(
        tmp_path / "b",
        replace(CALIBRATION, outcomes=(*[leak(2 * MIB, 10, variant=DEVICE, metric=metric)] * 5,)),
    )
    assert "host_private_bytes" in calibrated.statement(FACTS, uses_gpu=False)
    assert metric in calibrated.statement(FACTS, uses_gpu=True)


@pytest.mark.parametrize("calibration", [ALARM, replace(CALIBRATION, interrupted=True)])
def test_a_calibration_with_false_alarms_or_broken_off_is_not_quoted(tmp_path: Path, calibration: Calibration) -> None:
    write(tmp_path / "a", calibration)
    assert (tmp_path / "a" / "calibration.json").is_file()
    assert calibrated.statement(FACTS, uses_gpu=False) == ""


def test_a_cache_that_holds_something_else_is_as_good_as_none(tmp_path: Path) -> None:
    write(tmp_path / "a", CALIBRATION)
    [file] = (tmp_path / "cache" / "calibrations").iterdir()
    for text in ("", "[]", '{"variants": 5}', '{"variants": {"planted": 5}}', '{"variants": {"planted": {}}}', "\x00"):
        file.write_text(text)
        assert calibrated.statement(FACTS, uses_gpu=False) == ""


def test_a_cache_that_cannot_be_written_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, where a folder should be")
    lines = write(tmp_path / "a", CALIBRATION)
    assert any(line.startswith("not kept for later reports") for line in lines)
    assert statements(CALIBRATION, "2026-12-01").keys() == {"planted"}


def test_of_several_gpus_only_that_with_the_leak_is_told_of() -> None:
    here, there = "nvml_process_used_bytes@GPU-a", "nvml_process_used_bytes@GPU-b"
    both = replace(
        leak(2 * MIB, 10, variant=DEVICE, metric=here),
        verdicts={here: Verdict("LEAK", 10), there: Verdict("STABLE", 46)},
    )
    found = document(replace(CALIBRATION, outcomes=(both,) * 5), "2026-12-01")
    assert list(found["metrics"]) == [here]
