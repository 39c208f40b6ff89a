"""The growth test on series of device memory that were recorded on a real GPU with planted defects of known size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tritonchaos.growth import GrowthTest
from tritonchaos.observations import Arm
from tritonchaos.post_unload import Channel

RECORDED = Path(__file__).parents[1] / "recorded" / "growth_device.jsonl"
TRACES = [json.loads(line) for line in RECORDED.read_text().splitlines()]
ARMS = {"C": Arm.CONTROL, "T": Arm.TREATMENT}


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace["id"])
def test_the_verdict_is_the_truth(trace: dict) -> None:
    test = GrowthTest(trace["quantum"], channel=Channel.DEVICE)
    for value, letter in zip(trace["values"], trace["arms"], strict=True):
        test.see(value, ARMS[letter])
    assert test.state.verdict.value == trace["label"]
    if trace["bytes_per_cycle"]:
        assert test.state.bytes_per_cycle == pytest.approx(trace["bytes_per_cycle"], rel=0.1)
