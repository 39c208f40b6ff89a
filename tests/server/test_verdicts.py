"""What users may break on purpose: each must end with the right kind of finding, and its clean twin with none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.left_files import removed
from tests.server.cli import run_scenario

pytestmark = pytest.mark.server

# A python model takes a second or more to load: as few cycles as the growth test needs for a leak, or a counter that
# rises once early on for a pass.
PYTHON_MODEL = """\
scenario: leaves-{what}
seed: 1
target: [{{local: {{}}}}]
models:
  ident: {{template: identity, variant: python, parameters: {{datatype: FP32, dims: [4]{leaves}}}}}
phases:
  - phase: good
    arm: control
    cycles: 3
    each: [{{load: ident}}, {{unload: ident}}]
  - phase: broken
    arm: treatment
    cycles: 14
    before: [{{edit_config: {{model: ident, set: {{"output[0].data_type": TYPE_INT32}}}}}}]
    each:
      - load: {{model: ident, expect: {{error: "unexpected datatype TYPE_FP32"}}}}
      - unload: ident
check: [leftovers, server_alive, expectations]
"""

ONE_TREATMENT = """\
scenario: one-treatment
seed: 1
target: [{{local: {{}}}}]
server: {{flags: {{disable-auto-complete-config: true}}}}
models:
  ident: {{template: identity, variant: planted, parameters: {{datatype: FP32, dims: [4]}}}}
phases:
  - phase: good
    arm: control
    cycles: 5
    each: [{{load: ident}}, {{unload: ident}}]
  - phase: broken
    cycles: {{at_least: 5, at_most: 80, until: verdict}}
    before: [{before}]
    each:
      - load: {{model: ident, expect: {{error: "unexpected datatype TYPE_FP32"}}}}
      - unload: ident
check: [{checks}]
"""


def test_a_python_model_that_leaves_a_mebibyte_in_two_places_per_failed_load_is_found(tmp_path: Path) -> None:
    leaves = ", leave_temp_bytes_per_failed_load: 1MiB, leave_shm_bytes_per_failed_load: 1MiB"
    with removed():
        called = run_scenario(PYTHON_MODEL.format(what="mebibytes", leaves=leaves), tmp_path)
    assert called.exit_code == 1, called.shown()
    left = {finding["metric"]: finding["bytes_per_cycle"] for finding in called.findings("leftover")}
    assert set(left) == {"temp_bytes", "shm_other_bytes"}, called.shown()
    assert list(left.values()) == pytest.approx([1024**2] * 2, rel=0.02)


def test_a_python_model_that_leaves_nothing_passes(tmp_path: Path) -> None:
    called = run_scenario(PYTHON_MODEL.format(what="nothing", leaves=""), tmp_path)
    assert called.exit_code == 0, called.shown()
    assert called.results["findings"] == []


@pytest.mark.parametrize("checks", ["memory_growth", "memory_growth, expectations"])
def test_a_treatment_load_that_succeeds_never_passes(tmp_path: Path, checks: str) -> None:
    called = run_scenario(ONE_TREATMENT.format(before="{restore: ident}", checks=checks), tmp_path)
    assert called.exit_code in {1, 3}, called.shown()


@pytest.mark.parametrize("checks", ["memory_growth", "memory_growth, expectations"])
def test_a_treatment_load_that_fails_with_another_text_never_passes(tmp_path: Path, checks: str) -> None:
    edit = '{edit_config: {model: ident, set: {"output[0].dims": [5]}}}'
    called = run_scenario(ONE_TREATMENT.format(before=edit, checks=checks), tmp_path)
    assert called.exit_code in {1, 3}, called.shown()
    if "expectations" in checks:
        assert "wrong_error" in called.kinds(), called.shown()


def test_traffic_beside_the_main_track_is_verified_and_ends_with_it(tmp_path: Path) -> None:
    scenario = """\
scenario: beside
seed: 1
target: [{local: {}}]
models:
  busy: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}
  ident: {template: identity, variant: planted, parameters: {datatype: INT8, dims: [4]}}
phases:
  - phase: prepare
    steps: [{load: busy}, {infer: busy}]
  - phase: loads
    cycles: 5
    each: [{load: ident}, {infer: ident}, {unload: ident}]
    meanwhile: [{track: traffic, each: [{infer: busy}]}]
  - phase: done
    steps: [{unload: busy}]
check: [server_alive, hang, expectations, index_consistent]
"""
    called = run_scenario(scenario, tmp_path)
    assert called.exit_code == 0, called.shown()


def test_arms_in_coin_ordered_pairs_find_the_planted_leak(tmp_path: Path) -> None:
    scenario = """\
scenario: coin
seed: 3
target: [{local: {}}]
server: {flags: {disable-auto-complete-config: true}}
models:
  ident:
    template: identity
    variant: planted
    parameters: {datatype: FP32, dims: [4], retain_host_bytes_per_failed_load: 1MiB}
phases:
  - phase: pairs
    cycles: {at_least: 4, at_most: 60, until: verdict}
    warm_up_cycles: 2
    arms:
      mode: coin
      control:
        before: [{restore: ident}]
        each: [{load: ident}, {unload: ident}]
      treatment:
        before: [{edit_config: {model: ident, set: {"output[0].data_type": TYPE_INT32}}}]
        each: [{load: {model: ident, expect: {error: unexpected datatype}}}, {unload: ident}]
check: [memory_growth, expectations]
"""
    called = run_scenario(scenario, tmp_path)
    assert called.exit_code == 1, called.shown()
    leak = called.findings("leak")[0]
    assert leak["bytes_per_cycle"] == pytest.approx(1024**2, rel=0.02)
