"""Planted defects of known size on a real GPU, through the real NVML: the verdict against the device's own word."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server.cli import Called, run_scenario
from tritonchaos.nvml import Nvml, open_nvml
from tritonchaos.units import KIB, MIB

pytestmark = pytest.mark.gpu
PROGRAM = Path(__file__).with_name("cuda.py")
SCENARIO = """\
scenario: planted-on-a-gpu
seed: 1
target: [{{local: {{}}}}]
server: {{flags: {{disable-auto-complete-config: true}}}}
models:
  ident: {{template: identity, variant: planted_gpu, parameters: {{datatype: FP32, dims: [16], plant: {plant}}}}}
phases:
  - phase: good
    arm: control
    cycles: {good}
    each: [{{load: ident}}, {{wait: 20ms}}, {{unload: ident}}]
  - phase: failed
    cycles: {failed}
    amplify: {amplify}
    before: [{{edit_config: {{model: ident, set: {{"output[0].data_type": TYPE_INT32}}}}}}]
    each:
      - load: {{model: ident, expect: {{error: unexpected datatype TYPE_FP32}}}}
      - unload: ident
check: [memory_growth, returns_to_baseline, server_alive, hang, expectations, leftovers]
"""
UNTIL_FLAT = "{at_least: 8, at_most: 30, until: flat}"
UNTIL_VERDICT = "{at_least: 6, at_most: 200, until: verdict}"


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> Iterator[None]:
    nvml = open_nvml()
    if not isinstance(nvml, Nvml):
        pytest.skip(nvml.reason)
    nvml.close()
    yield


def planted(
    folder: Path, plant: str, good: str = UNTIL_FLAT, failed: str = UNTIL_VERDICT, *, amplify: bool = False
) -> Called:
    return run_scenario(SCENARIO.format(plant=plant, good=good, failed=failed, amplify=str(amplify).lower()), folder)


def device_series(called: Called, phase: str) -> list[int]:
    found = next(entry for entry in called.results["phases"] if entry["phase"] == phase)
    return found["post_unload"]["nvml_process_used_bytes"]


@contextmanager
def beside(what: str) -> Iterator[list[str]]:
    """Run the other program on the GPU; what it prints is collected."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
    reader.start()
    try:
        lines.append(f"pid {process.pid}")
        yield lines
    finally:
        process.communicate()
        reader.join(10)


def test_200_good_and_200_failed_loads_are_flat_to_the_byte(tmp_path: Path) -> None:
    called = planted(tmp_path, "[]", "200", "200")
    assert called.exit_code == 0, called.shown()
    assert len(set(device_series(called, "good")[3:])) == 1
    assert len(set(device_series(called, "failed")[3:])) == 1
    assert called.results["findings"] == []


@pytest.mark.parametrize(
    "plant",
    [
        "[{what: device_bytes, bytes: 2MiB, when: failed}]",
        "[{what: streams, count: 3, when: failed}, {what: events, count: 21, when: failed}]",
    ],
    ids=["2 MiB", "3 streams and 21 events"],
)
def test_a_leak_is_found_with_the_size_that_the_device_says(tmp_path: Path, plant: str) -> None:
    with beside("watch") as lines:
        called = planted(tmp_path, plant, failed="40")
    assert called.exit_code == 1, called.shown()
    leak = next(f for f in called.findings("leak") if f["metric"] == "nvml_process_used_bytes")
    series = device_series(called, "failed")
    free = [int(line.split()[1]) for line in lines if line.startswith("free")]
    # With the server up it stands longest at the level of the good cycles; 40 failed loads later free memory is least.
    with_server = Counter(value for value in free if value < max(free) - 256 * MIB)
    lost = with_server.most_common(1)[0][0] - min(with_server)
    assert series[-1] - series[0] == pytest.approx(lost * 39 / 40, rel=0.1)
    assert leak["bytes_per_cycle"] == pytest.approx(lost / 40, rel=0.1)


def test_pinned_memory_that_failed_loads_keep_is_found_on_the_host(tmp_path: Path) -> None:
    called = planted(tmp_path, "[{what: pinned_bytes, bytes: 2MiB, when: failed}]")
    assert "crash" not in called.kinds(), called.shown()
    log = (called.folder / "server.log").read_text(errors="replace")
    assert "retained 2097152 pinned bytes on purpose" in log
    growth = {a["metric"]: a["verdict"] for a in called.results["assessments"] if a["checker"] == "memory_growth"}
    # The driver maps it from its own pool: whether a private page of the process, or one of the device, is up to it.
    assert "LEAK" in growth.values(), growth


@pytest.mark.parametrize("plant", ["{what: device_bytes, bytes: 64KiB, when: failed}", "{what: modules, when: failed}"])
def test_a_leak_below_a_page_per_load_is_found(tmp_path: Path, plant: str) -> None:
    called = planted(tmp_path, f"[{plant}]", failed="180")
    assert called.exit_code == 1, called.shown()
    leak = next(f for f in called.findings("leak") if f["metric"] == "nvml_process_used_bytes")
    assert leak["bytes_per_cycle"] == pytest.approx(64 * KIB, rel=0.1)


def test_4_kib_per_load_is_not_seen_and_stable_says_so(tmp_path: Path) -> None:
    called = planted(tmp_path, "[{what: device_bytes, bytes: 4KiB, when: failed}]")
    growth = next(a for a in called.results["assessments"] if a["metric"] == "nvml_process_used_bytes")
    assert growth["verdict"] == "STABLE", called.shown()
    assert growth["excluded_bytes_per_cycle"] > 4 * KIB


def test_4_kib_per_load_are_found_by_more_loads_before_each_reading(tmp_path: Path) -> None:
    called = planted(tmp_path, "[{what: device_bytes, bytes: 4KiB, when: failed}]", amplify=True)
    assert called.exit_code == 1, called.shown()
    leak = next(f for f in called.findings("leak") if f["metric"] == "nvml_process_used_bytes")
    assert leak["per"] == "load"
    assert leak["bytes_per_cycle"] == pytest.approx(4 * KIB, rel=0.3)


def test_no_leak_is_stable_with_a_bound_far_below_a_page_per_load(tmp_path: Path) -> None:
    called = planted(tmp_path, "[]", amplify=True)
    assert called.exit_code == 0, called.shown()
    growth = next(a for a in called.results["assessments"] if a["metric"] == "nvml_process_used_bytes")
    assert growth["excluded_bytes_per_cycle"] < 10 * KIB


@pytest.mark.parametrize("rest", ["cap: 5", "after: 20, cap: 5"], ids=["bounded cache", "late pool"])
def test_a_bounded_pool_is_no_leak(tmp_path: Path, rest: str) -> None:
    called = planted(tmp_path, f"[{{what: device_bytes, bytes: 4MiB, when: failed, {rest}}}]", failed="120")
    assert called.exit_code == 0, called.shown()


@pytest.mark.parametrize(("plant", "exit_code"), [("[]", 0), ("[{what: device_bytes, bytes: 2MiB, when: failed}]", 1)])
def test_a_neighbour_that_comes_and_goes_changes_no_verdict_and_is_named(
    tmp_path: Path, plant: str, exit_code: int
) -> None:
    with beside("neighbour") as lines:
        called = planted(tmp_path, plant)
        pid = next(line.split()[1] for line in lines if line.startswith("pid"))
    assert called.exit_code == exit_code, called.shown()
    assert any(pid in note and "iB" in note for note in called.results["notes"]), called.results["notes"]


def test_missing_memory_is_an_error_of_the_load_and_the_server_lives(tmp_path: Path) -> None:
    called = planted(tmp_path, "[{what: device_bytes, bytes: 4096GiB}]", "2", "2")
    assert called.exit_code in {1, 3}, called.shown()
    assert "crash" not in called.kinds()
    assert any("device" in line for f in called.findings("wrong_error") for line in (f["title"], *f["evidence"]))
