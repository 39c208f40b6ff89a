"""The whole GPU path, from NVML to the verdict, on GPUs that are not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli import Called
from tests.stand_in_nvml import A, B, StandIn, needs_compiler
from tritonchaos.observations import MetricLost
from tritonchaos.store import open_history
from tritonchaos.units import KIB, MIB

pytestmark = [pytest.mark.server, needs_compiler]

PROCESS, DEVICE = "nvml_process_used_bytes", "nvml_device_used_bytes"
NOTE = "device memory was read from a stand-in NVML, not from a GPU"

SCENARIO = """\
scenario: on-gpu
seed: 1
target: [{{local: {{}}}}]
server:
  flags: {{disable-auto-complete-config: true}}
  env: {{LD_PRELOAD: "{preload}", TRITONCHAOS_STAND_IN_CONTEXT: "{context}:314572800"}}
models:
  ident:
    template: identity
    variant: planted_gpu
    parameters:
      kind: KIND_CPU
      dims: [4]
      plant: {plant}
phases:
  - phase: baseline
    arm: control
    cycles: {{at_least: 3, at_most: 10, until: flat}}
    each: [{{load: ident}}, {{wait: 20ms}}, {{unload: ident}}]
  - phase: broken
    cycles: {{at_least: 6, at_most: {at_most}, until: verdict}}
    amplify: {amplify}
    before: [{{edit_config: {{model: ident, set: {{"output[0].data_type": TYPE_INT32}}}}}}]
    each:
      - load: {{model: ident, expect: {{error: "unexpected datatype TYPE_FP32"}}}}
      - unload: ident
check: [memory_growth, returns_to_baseline, server_alive, expectations]
"""


def run(
    machine: StandIn,
    *,
    gpu: int = 0,
    leak: int = 0,
    cap: int = 0,
    at_most: int = 60,
    context: str = "0",
    amplify: str = "false",
    **environment: str,
) -> Called:
    """Four good cycles or more, of a model that holds 64 MiB, then failed loads until there is a verdict."""
    plant = [{"what": "device_bytes", "bytes": 64 * MIB, "gpu": gpu, "when": "good", "held": True}]
    if leak:
        plant.append({"what": "device_bytes", "bytes": leak, "gpu": gpu, "when": "failed", "cap": cap})
    for entry in plant:
        entry["at"] = "instance_initialize"
    text = SCENARIO.format(
        preload=machine.context, context=context, plant=json.dumps(plant), at_most=at_most, amplify=amplify
    )
    return machine.run_scenario(text, **environment)


def assessment(called: Called, checker: str, metric: str) -> dict[str, Any]:
    [found] = [row for row in called.results["assessments"] if (row["checker"], row["metric"]) == (checker, metric)]
    return found


def assert_leaks(called: Called, metric: str, per_cycle: int) -> None:
    assert called.exit_code == 1, called.shown()
    [leak] = called.findings("leak")
    assert leak["metric"] == metric
    assert leak["bytes_per_cycle"] == pytest.approx(per_cycle, rel=0.1), called.shown()
    assert NOTE in called.results["notes"]


def test_a_leak_on_the_second_of_two_gpus_is_found_there(tmp_path: Path) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A}", f"gpu uuid={B}")

    called = run(machine, gpu=1, leak=2 * MIB, context="0,1")

    assert_leaks(called, f"{PROCESS}@{B}", 2 * MIB)
    # `until: flat` waited for both GPUs, and neither had anything to settle.
    assert any(note.startswith("phase baseline ended after 4 cycles: flat") for note in called.results["notes"])
    assert assessment(called, "memory_growth", f"{PROCESS}@{A}")["status"] != "fail"


def test_the_clean_twin_passes_beside_a_co_tenant_that_comes_and_goes_and_is_named(tmp_path: Path) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A}", f"gpu uuid={B}")
    neighbour = machine.co_tenant(1, 96 * MIB)
    try:
        called = run(machine, gpu=1, context="1", CUDA_VISIBLE_DEVICES=B)
    finally:
        neighbour.kill()
        neighbour.communicate()

    assert called.exit_code == 0, called.shown()
    assert called.results["findings"] == []
    assert assessment(called, "memory_growth", PROCESS)["status"] == "pass"
    assert assessment(called, "memory_growth", DEVICE)["reason"].startswith("NOISY: what others use on this GPU moved")
    assert NOTE in called.results["notes"]
    [note] = [note for note in called.results["notes"] if f"pid {neighbour.pid} " in note]
    assert note.startswith(f"{B} is not idle")
    assert "192 MiB" in note
    assert called.results["target"]["gpu_uuids"] == B


def test_a_gpu_that_is_lost_during_the_run_is_never_a_pass(tmp_path: Path) -> None:
    # Two lines for contexts, of the server and of its --help; two for each good cycle.
    machine = StandIn(tmp_path, f"gpu uuid={A} lost_after=12")

    called = run(machine, leak=1, at_most=6)

    assert called.exit_code == 3, called.shown()
    assert called.results["findings"] == []
    lost = {event.metric: event.reason for event in open_history(called.folder).of(MetricLost)}
    assert lost.keys() == {DEVICE, PROCESS, "nvml_device_reserved_bytes"}
    assert all("GPU is lost" in reason for reason in lost.values())
    judged = [row for row in called.results["assessments"] if (row["metric"] or "").startswith("nvml_")]
    assert {row["checker"] for row in judged} == {"memory_growth", "returns_to_baseline"}
    assert {row["status"] for row in judged} == {"unknown"}


def test_a_leak_of_a_32nd_of_a_page_is_found_with_its_size(tmp_path: Path) -> None:
    called = run(StandIn(tmp_path, f"gpu uuid={A}"), leak=64 * KIB, at_most=600)

    assert_leaks(called, PROCESS, 64 * KIB)


def test_a_leak_of_a_512th_of_a_page_is_found_by_more_loads_before_each_reading(tmp_path: Path) -> None:
    called = run(StandIn(tmp_path, f"gpu uuid={A}"), leak=4 * KIB, at_most=200, amplify="true")

    assert called.exit_code == 1, called.shown()
    [leak] = called.findings("leak")
    assert (leak["metric"], leak["per"]) == (PROCESS, "load")
    assert leak["bytes_per_cycle"] == pytest.approx(4 * KIB, rel=0.3), called.shown()
    assert leak["footprint_bytes"] == 64 * MIB


@pytest.mark.parametrize("cap", [1, 8])
def test_a_bounded_cache_is_no_leak(tmp_path: Path, cap: int) -> None:
    called = run(StandIn(tmp_path, f"gpu uuid={A}"), leak=2 * MIB, cap=cap, at_most=200)

    assert called.findings("leak") == [], called.shown()
    assert called.exit_code == 0, called.shown()


def test_without_memory_of_processes_the_device_decides(tmp_path: Path) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A}", "driver process_memory=0")

    assert_leaks(run(machine, leak=2 * MIB), DEVICE, 2 * MIB)


def test_without_memory_of_processes_a_co_tenant_that_comes_and_goes_is_no_leak(tmp_path: Path) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A}", "driver process_memory=0")
    neighbour = machine.co_tenant(0, 96 * MIB)
    try:
        called = run(machine)
    finally:
        neighbour.kill()
        neighbour.communicate()

    assert called.findings("leak") == [], called.shown()
    assert [note for note in called.results["notes"] if f"pid {neighbour.pid} " in note]


def test_a_leak_on_an_instance_of_a_gpu_is_found(tmp_path: Path) -> None:
    instance = "MIG-cccccccc-0000-0000-0000-000000000003"
    machine = StandIn(tmp_path, f"gpu uuid={A} mig=1", f"instance uuid={instance} of={A} base=0 reserved=0")

    called = run(machine, gpu=1, leak=2 * MIB, context="1", CUDA_VISIBLE_DEVICES=instance)

    assert_leaks(called, PROCESS, 2 * MIB)
    assert called.results["target"]["gpu_uuids"] == instance


def test_with_an_old_driver_that_counts_reserved_as_used_a_leak_is_found(tmp_path: Path) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A}", "driver memory_v2=0", "driver process_list=0")

    assert_leaks(run(machine, leak=2 * MIB), DEVICE, 2 * MIB)


def test_a_gpu_that_is_lost_while_the_other_is_read_on_is_never_a_pass(tmp_path: Path) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A}", f"gpu uuid={B} lost_after=16")

    called = run(machine, gpu=0, leak=1, at_most=40, context="0,1")

    assert called.exit_code == 3, called.shown()
