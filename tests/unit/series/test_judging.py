"""Judging recorded series: when it stops, what it says, and what it never does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tritonchaos.growth import Growth
from tritonchaos.post_unload import Channel
from tritonchaos.series import Series, SeriesVerdict, judge_series, read_series
from tritonchaos.series.judging import are_interleaved
from tritonchaos.series.sketch import Sketch
from tritonchaos.units import MIB

RECORDED = Path(__file__).parents[2] / "recorded" / "growth_device.jsonl"
FLAT, CLIMB = [64 * MIB] * 300, [64 * MIB + 2 * MIB * cycle for cycle in range(300)]


def judge(values: list[int], budget: int = 10_000, arms: str = "", channel: Channel = Channel.DEVICE) -> SeriesVerdict:
    quantum = 1 if channel is Channel.COUNT else 2 * MIB
    return judge_series(Series("a", iter(values), arms, channel, quantum), budget)


def test_a_leak_is_found_early_with_its_rate() -> None:
    found = judge(CLIMB)
    assert found.verdict is Growth.LEAK
    assert found.cycles < 60
    assert found.state.bytes_per_cycle == pytest.approx(2 * MIB)
    assert "2 MiB" in found.reason


def test_a_flat_series_is_stable_early_and_says_what_it_excludes() -> None:
    found = judge(FLAT)
    assert found.verdict is Growth.STABLE
    assert 44 <= found.cycles < 60
    assert "203.51 KiB" in found.reason


def test_the_same_verdict_comes_at_the_same_cycle_without_an_early_stop() -> None:
    assert judge(CLIMB, budget=0).cycles == judge(CLIMB).cycles
    assert judge(FLAT, budget=0).cycles == judge(FLAT).cycles


def test_stable_becomes_leak_when_judging_goes_on() -> None:
    late = [*FLAT[:60], *CLIMB]
    assert judge(late).verdict is Growth.STABLE
    assert judge(late, budget=0).verdict is Growth.LEAK


def test_a_budget_ends_an_undecided_series() -> None:
    found = judge(CLIMB, budget=10)
    assert (found.verdict, found.cycles) == (Growth.INCONCLUSIVE, 10)
    assert "10 values were judged" in found.reason


@pytest.mark.parametrize(("values", "said"), [([], "the series is empty"), ([5 * MIB], "one value tells nothing")])
def test_too_little_is_inconclusive_with_the_reason(values: list[int], said: str) -> None:
    found = judge(values)
    assert (found.verdict, found.cycles) == (Growth.INCONCLUSIVE, len(values))
    assert said in found.reason


def test_a_flaw_behind_the_verdict_spoils_it() -> None:
    lines = ["bytes\n", *(f"{value}\n" for value in FLAT), "oops\n"]
    [series] = read_series(lines, "file")
    found = judge_series(series)
    assert (found.verdict, found.flaw) == (Growth.INCONCLUSIVE, True)
    assert "line 302" in found.reason


def test_arms_that_end_before_the_values_are_a_flaw() -> None:
    found = judge(FLAT, arms="TTT")
    assert found.verdict is Growth.INCONCLUSIVE
    assert "found 3 arms" in found.reason


def test_growth_of_both_arms_of_coin_ordered_pairs_is_not_the_treatments() -> None:
    assert judge(CLIMB, arms="CTTC" * 75).verdict is Growth.INCONCLUSIVE
    only_treatment, level = [], 64 * MIB
    for letter in "CTTCTCCT" * 30:
        level += 2 * MIB if letter == "T" else 0
        only_treatment.append(level)
    assert judge(only_treatment, arms="CTTCTCCT" * 30).verdict is Growth.LEAK


@pytest.mark.parametrize(
    ("arms", "interleaved"),
    [
        ("", False),
        ("TTTTTTTT", False),
        ("CCCCTTTTTTTT", False),
        ("CCCCTTTTTTTTCCCC", False),
        ("CCCCTTTTTTTTCCCCTTTTTTTTCCCC", False),
        ("CTCTCTCT", True),
        ("TCCTTCCTCTTC", True),
        ("CCCCCCCCCCTCCTTCCTCTTC", True),
        ("CTTCTTTCCTCTC", True),
    ],
)
def test_coin_ordered_arms_are_told_from_blocks(arms: str, interleaved: bool) -> None:
    assert are_interleaved(arms) is interleaved


def test_counts_are_not_printed_as_bytes() -> None:
    found = judge([10 + cycle for cycle in range(100)], channel=Channel.COUNT)
    assert found.verdict is Growth.LEAK
    assert " 23 " in found.reason
    assert "B per" not in found.reason


def test_the_document_has_the_fields_that_are_promised() -> None:
    assert list(judge(CLIMB).document()) == [
        "id", "verdict", "bytes_per_cycle", "interval_bytes_per_cycle", "cycles", "rule", "shape", "reason",
    ]  # fmt: skip
    assert json.loads(json.dumps(judge(CLIMB).document()))["interval_bytes_per_cycle"][0] <= 2 * MIB


def test_series_recorded_on_a_real_gpu_get_their_verdicts() -> None:
    lines = RECORDED.read_text().splitlines(keepends=True)
    labels = [json.loads(line)["label"] for line in lines]
    assert [judge_series(series, budget=0).verdict.value for series in read_series(lines, "file")] == labels


def test_the_outline_of_a_long_series_stays_small_and_keeps_its_peak() -> None:
    sketch = Sketch()
    for value in range(100_001):
        sketch.add(value)
    outline = sketch.columns()
    assert len(outline) <= 128
    assert outline[-1] == 100_000
    assert outline == sorted(outline)
