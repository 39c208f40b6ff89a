"""A leak far below what one load shows, found by more loads before each reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.cli import run_scenario, tritonchaos
from tritonchaos.units import KIB

pytestmark = pytest.mark.server

# Both arms are refused, so that they differ in nothing but the leak.
SCENARIO = """\
scenario: amplify
seed: 1
target: [{{local: {{}}}}]
server: {{flags: {{disable-auto-complete-config: true}}}}
models:
  healthy: {{template: identity, variant: planted, parameters: {{datatype: FP32, dims: [16]}}}}
  leaking:
    template: identity
    variant: planted
    parameters: {{datatype: FP32, dims: [16], plant: [{{what: host_bytes, bytes: {leak}, when: failed}}]}}
phases:
  - phase: edits
    steps:
      - edit_config: {{model: healthy, set: {{"output[0].data_type": TYPE_INT32}}}}
      - edit_config: {{model: leaking, set: {{"output[0].data_type": TYPE_INT32}}}}
  - phase: pairs
    warm_up_cycles: 20
    cycles: {{at_least: 6, at_most: {at_most}, until: verdict}}
    amplify: {amplify}
    arms:
      control: {{each: [{{load: {{model: healthy, expect: {{error: unexpected datatype}}}}}}, {{unload: healthy}}]}}
      treatment: {{each: [{{load: {{model: leaking, expect: {{error: unexpected datatype}}}}}}, {{unload: leaking}}]}}
check: [memory_growth, server_alive, hang, expectations]
"""


def scenario(*, leak: str, amplify: bool, at_most: int) -> str:
    return SCENARIO.format(leak=leak, amplify=str(amplify).lower(), at_most=at_most)


def test_a_leak_of_2_kib_per_load_is_found_and_judged_offline_at_the_same_cycle(tmp_path: Path) -> None:
    called = run_scenario(scenario(leak="2KiB", amplify=True, at_most=120), tmp_path)
    assert called.exit_code == 1, called.shown()
    live = called.results
    leak = called.findings("leak")[0]
    assert leak["per"] == "load"
    assert leak["bytes_per_cycle"] == pytest.approx(2 * KIB, rel=0.4)
    judged = tritonchaos("judge", called.folder, cwd=tmp_path)
    assert (judged.returncode, called.results) == (1, live)
    # The run stopped at its verdict: the last treatment cycle is the one at which it was reached.
    treatment = next(p for p in live["phases"] if p["arm"] == "treatment")
    assert sorted(set(treatment["loads"]))[:3] == [1, 2, 4]
    growth = next(a for a in live["assessments"] if a["metric"] == leak["metric"])
    assert growth["cycles_used"] == treatment["cycles"]


def test_without_more_loads_the_same_leak_is_not_found(tmp_path: Path) -> None:
    called = run_scenario(scenario(leak="2KiB", amplify=False, at_most=60), tmp_path)
    assert called.exit_code in {0, 3}, called.shown()


BEHIND_A_CONTROL_BLOCK = """\
scenario: amplify-behind-a-block
seed: {seed}
target: [{{local: {{}}}}]
server: {{flags: {{disable-auto-complete-config: true}}}}
models:
  ident:
    template: identity
    variant: planted
    parameters: {{datatype: FP32, dims: [16]{plant}}}
phases:
{control}
  - phase: failed_loads
    cycles: {{at_least: 6, at_most: 200, until: verdict}}
    amplify: true
    before: [{{edit_config: {{model: ident, set: {{"output[0].data_type": TYPE_INT32}}}}}}]
    each: [{{load: {{model: ident, expect: {{error: unexpected datatype}}}}}}, {{unload: ident}}]
check: [memory_growth, server_alive, expectations]
"""
LEAK = ", plant: [{what: host_bytes, bytes: 4KiB, when: failed}]"
CONTROL = """\
  - phase: good_loads
    arm: control
    cycles: {at_least: 3, at_most: 30, until: flat}
    each: [{load: ident}, {wait: 20ms}, {unload: ident}]
"""


def test_4_kib_per_load_are_found_behind_a_control_block_that_loads_once_per_cycle(tmp_path: Path) -> None:
    called = run_scenario(BEHIND_A_CONTROL_BLOCK.format(seed=1, plant=LEAK, control=CONTROL), tmp_path)
    assert called.exit_code == 1, called.shown()
    leak = called.findings("leak")[0]
    assert leak["bytes_per_cycle"] == pytest.approx(4 * KIB, rel=0.2)
    assert "per cycle of one load)" in leak["title"]
    live = called.results
    judged = tritonchaos("judge", called.folder, cwd=tmp_path)
    assert (judged.returncode, called.results) == (1, live)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("control", [CONTROL, ""], ids=["behind a control block", "alone"])
def test_no_clean_twin_of_ten_is_called_a_leak(tmp_path: Path, control: str) -> None:
    for seed in range(1, 11):
        folder = tmp_path / str(seed)
        folder.mkdir()
        called = run_scenario(BEHIND_A_CONTROL_BLOCK.format(seed=seed, plant="", control=control), folder)
        assert called.findings("leak") == [], called.shown()
