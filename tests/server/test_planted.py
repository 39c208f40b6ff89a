"""The planted backend: each defect at a real tritonserver, and the finding that must come of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli import Called, run_scenario
from tritonchaos import native
from tritonchaos.units import KIB, MIB

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(native.missing_compiler() is not None, reason=f"{native.missing_compiler()}"),
]

# 20 ms: an unload at once can crash Triton 2.51.
FAILED_LOADS = """\
scenario: planted
seed: 1
target: [{{local: {{}}}}]
server: {{flags: {{disable-auto-complete-config: true}}}}
models:
  ident: {{template: identity, variant: planted, parameters: {{datatype: FP32, dims: [4], plant: {plant}}}}}
phases:
  - phase: good
    arm: control
    cycles: {{at_least: 3, at_most: 30, until: flat}}
    each: [{{load: ident}}, {{wait: 20ms}}, {{unload: ident}}]
  - phase: failed
    cycles: {{at_least: 10, at_most: {cycles}, until: verdict}}
    before: [{{edit_config: {{model: ident, set: {{"output[0].data_type": TYPE_INT32}}}}}}]
    each: [{{load: {{model: ident, expect: {{error: unexpected datatype}}}}}}, {{unload: ident}}]
  - phase: after_exit
    steps: [{{stop_server: {{}}}}, {{sample: {{name: after_exit}}}}]
check: [memory_growth, returns_to_baseline, server_alive, hang, expectations, leftovers]
"""
LOADS = """\
scenario: planted
seed: 1
target: [{{local: {{}}}}]
server: {{flags: {{exit-timeout-secs: 1}}, env: {env}}}
models:
  ident: {{template: identity, variant: planted, parameters: {{datatype: FP32, dims: [4], plant: {plant}}}}}
phases:
  - phase: loads
    cycles: {cycles}
    each:
      - load: {load}
      - {{infer: {infer}}}
      - {{wait: 20ms}}
      - {{unload: {{model: ident, deadline: 3s}}}}
check: [server_alive, hang, expectations]
"""


def failed_loads(folder: Path, *plants: dict[str, Any], cycles: int = 200) -> Called:
    return run_scenario(FAILED_LOADS.format(plant=json.dumps(plants), cycles=cycles), folder)


def loads(
    folder: Path,
    *plants: dict[str, Any],
    load: str = "{model: ident}",
    infer: str = "{model: ident}",
    env: dict[str, str] | None = None,
    cycles: int = 2,
) -> Called:
    text = LOADS.format(plant=json.dumps(plants), load=load, infer=infer, env=json.dumps(env or {}), cycles=cycles)
    return run_scenario(text, folder)


def planted_lines(called: Called) -> list[str]:
    return re.findall(r'"planted: (.*)"$', (called.folder / "server.log").read_text(errors="replace"), re.MULTILINE)


# --- what is kept --------------------------------------------------------------------------------


def test_what_failed_loads_keep_is_found_with_its_size(tmp_path: Path) -> None:
    called = failed_loads(
        tmp_path,
        {"what": "host_bytes", "bytes": "1MiB", "when": "failed"},
        {"what": "fds", "count": 2, "when": "failed"},
        {"what": "threads", "when": "failed"},
        {"what": "temp_files", "bytes": "8KiB", "when": "failed"},
    )
    assert called.exit_code == 1, called.shown()
    leak = called.findings("leak")[0]
    assert leak["metric"] == "host_private_bytes"
    # A thread brings pages of its stack and of its descriptor along.
    assert leak["bytes_per_cycle"] == pytest.approx(MIB, rel=0.05)
    left = {finding["metric"]: finding["bytes_per_cycle"] for finding in called.findings("leftover")}
    assert {"server_fds", "server_threads", "temp_bytes"} <= set(left), called.shown()
    assert left["server_fds"] == pytest.approx(2, abs=0.1)
    assert left["server_threads"] == pytest.approx(1, abs=0.1)
    assert left["temp_bytes"] == pytest.approx(8 * KIB, rel=0.05)
    assert any(line.startswith("retained 2 fds on purpose (failed load)") for line in planted_lines(called))


def test_failed_loads_without_a_plant_pass(tmp_path: Path) -> None:
    called = failed_loads(tmp_path)
    assert called.exit_code == 0, called.shown()
    assert planted_lines(called) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "plant",
    [
        {"what": "host_bytes", "bytes": "1MiB", "cap": 8},
        {"what": "host_bytes", "bytes": "1MiB", "when": "failed", "after": 20, "cap": 5},
        {"what": "host_bytes", "bytes": "1MiB", "release_every": 5},
        {"what": "host_bytes", "bytes": "1MiB", "held": True},
    ],
    ids=["bounded cache", "late pool", "bursts", "held while loaded"],
)
def test_what_comes_to_an_end_is_no_leak(tmp_path: Path, plant: dict[str, Any]) -> None:
    called = failed_loads(tmp_path, plant, cycles=60)
    assert called.kinds() == set(), called.shown()
    assert planted_lines(called)


@pytest.mark.long
@pytest.mark.parametrize(
    "conditions",
    [{"every": 2}, {"probability": 0.5, "seed": 7}, {"at": "model_finalize"}],
    ids=["every other time", "at random", "at model_finalize"],
)
def test_a_leak_under_conditions_is_found(tmp_path: Path, conditions: dict[str, Any]) -> None:
    called = failed_loads(tmp_path, {"what": "host_bytes", "bytes": "1MiB", "when": "failed", **conditions})
    assert called.exit_code == 1, called.shown()
    times = [int(line.rpartition(" ")[2]) for line in planted_lines(called)]
    planted_per_load = MIB * len(times) / times[-1]
    assert called.findings("leak")[0]["bytes_per_cycle"] == pytest.approx(planted_per_load, rel=0.3)


def test_the_ledger_has_what_a_device_would_have(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    called = loads(
        tmp_path,
        {"what": "device_bytes", "bytes": "2MiB"},
        {"what": "device_bytes", "bytes": "1MiB", "held": True, "gpu": 1},
        {"what": "streams"},
        {"what": "pinned_bytes", "bytes": "64KiB"},
        env={"TRITONCHAOS_PLANTED_LEDGER": str(ledger)},
    )
    assert called.exit_code == 0, called.shown()
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert len({line.pop("pid") for line in lines}) == 1
    device, stream = {"gpu": 0, "bytes": 2 * MIB, "what": "device"}, {"gpu": 0, "bytes": 0, "what": "stream"}
    held = {"gpu": 1, "bytes": MIB, "what": "device"}
    assert lines == 2 * [device, held, stream, {**held, "bytes": -MIB}]


# --- what is done --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plant", "status"),
    [
        ({"what": "exit", "status": 7}, "status 7"),
        pytest.param({"what": "abort", "at": "instance_finalize"}, "SIGABRT", marks=pytest.mark.long),
        pytest.param({"what": "segfault", "at": "model_finalize"}, "SIGSEGV", marks=pytest.mark.long),
        pytest.param({"what": "segfault", "at": "execute"}, "SIGSEGV", marks=pytest.mark.long),
        # What Triton 2.51 makes of a second final response.
        pytest.param({"what": "respond_twice"}, "SIGSEGV", marks=pytest.mark.long),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value['what']}-{value.get('at')}",
)
def test_the_end_of_the_server_is_a_crash_with_its_status(tmp_path: Path, plant: dict[str, Any], status: str) -> None:
    called = loads(tmp_path, {**plant, "every": 2, "cap": 1})
    assert called.exit_code == 1, called.shown()
    assert status in json.dumps(called.findings("crash")), called.shown()


@pytest.mark.parametrize(
    ("plant", "load", "infer"),
    [
        ({"what": "hang", "at": "before_validation"}, "{model: ident, deadline: 2s}", "{model: ident}"),
        pytest.param(
            {"what": "spin", "at": "model_initialize"}, "{model: ident, deadline: 2s}", "{model: ident}",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"what": "never_respond"}, "{model: ident}", "{model: ident, deadline: 2s}", marks=pytest.mark.long
        ),
    ],
    ids=["hang", "spin", "never_respond"],
)  # fmt: skip
def test_what_does_not_end_is_a_hang(tmp_path: Path, plant: dict[str, Any], load: str, infer: str) -> None:
    called = loads(tmp_path, plant, load=load, infer=infer, cycles=1)
    assert called.exit_code == 1, called.shown()
    assert called.findings("hang"), called.shown()


@pytest.mark.parametrize(("plants", "kinds"), [([], set()), ([{"what": "sleep", "ms": 1500}], {"slowdown"})])
def test_a_load_that_sleeps_is_a_slowdown(tmp_path: Path, plants: list[dict[str, Any]], kinds: set[str]) -> None:
    text = LOADS.format(
        plant=json.dumps(plants), env="{}", cycles=2, load="{model: ident, record: load_time}", infer="{model: ident}"
    )
    judged = text.replace("expectations]", "expectations, latency: {record: load_time, at_most: 1s}]")
    called = run_scenario(judged, tmp_path)
    assert called.kinds() == kinds, called.shown()


def test_a_hang_that_is_released_is_none(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    plants = [
        {"what": "hang", "until_file": str(tmp_path / "go")},
        {"what": "sleep", "ms": 10},
        {"what": "spin", "ms": 5},
    ]
    called = loads(tmp_path, *plants, cycles=1)
    assert called.exit_code == 0, called.shown()
    assert len(planted_lines(called)) == 3


@pytest.mark.parametrize("what", ["wrong_output", "wrong_size"])
def test_a_wrong_answer_is_found(tmp_path: Path, what: str) -> None:
    called = loads(tmp_path, {"what": what, "every": 2})
    assert called.exit_code == 1, called.shown()
    assert called.kinds() == {"wrong_output"}, called.shown()


VERSIONS = """\
scenario: versions
target: [{{local: {{}}}}]
models:
  v: {{template: versioned, variant: planted, parameters: {{datatype: FP32, dims: [4], plant: {plant}}}}}
phases:
  - phase: two_versions
    before: [{{add_version: {{model: v, version: 3}}}}]
    cycles: 2
    each: [{{load: v}}, {{infer: {{model: v, version: "1"}}}}, {{infer: v}}, {{wait: 20ms}}, {{unload: v}}]
check: [server_alive, expectations]
"""


@pytest.mark.parametrize(("plant", "kinds"), [("[]", set()), ("[{what: wrong_version, every: 4}]", {"wrong_output"})])
def test_the_answer_of_another_version_is_found(tmp_path: Path, plant: str, kinds: set[str]) -> None:
    called = run_scenario(VERSIONS.format(plant=plant), tmp_path)
    assert called.kinds() == kinds, called.shown()
    shown = json.dumps(called.findings("wrong_output"))
    # The server chooses the highest version where none is asked for.
    assert ("VERSION[0] is 2, expected" in shown) == bool(kinds)


PLANNED = {"what": "fail", "code": "not_found", "text": 'planned: "no"'}


@pytest.mark.parametrize(
    ("plant", "load", "kinds"),
    [
        ({**PLANNED, "at": "model_initialize"}, "{model: ident, expect: {error: 'Not found: planned: \"no\"'}}", set()),
        ({**PLANNED, "at": "before_validation"}, "{model: ident, expect: {error: other}}", {"wrong_error"}),
        ({**PLANNED, "at": "execute"}, "{model: ident}", set()),
    ],
    ids=["as expected", "with another text", "in execute"],
)
def test_a_planted_failure_has_its_text(tmp_path: Path, plant: dict[str, Any], load: str, kinds: set[str]) -> None:
    called = loads(tmp_path, plant, load=load, infer="{model: ident, expect: {status: [400, 404]}}", cycles=1)
    assert called.kinds() == kinds, called.shown()


def test_a_backend_that_fails_to_initialise_is_tried_again(tmp_path: Path) -> None:
    plant = json.dumps([{"what": "fail", "at": "backend_initialize", "text": "no backend"}])
    called = loads(
        tmp_path,
        load="{model: ident, expect: {error: no backend}}",
        infer="{model: ident, expect: {status: [400, 404]}}",
        env={"TRITONCHAOS_PLANT": plant},
    )
    assert called.exit_code == 0, called.shown()
    assert len(planted_lines(called)) == 2


@pytest.mark.parametrize(
    ("plant", "error"),
    [
        ({"what": "host_bytes", "bytes": "64000GiB"}, "bytes are not free"),
        ({"what": "device_bytes", "bytes": 4096}, "there is no CUDA driver"),
    ],
    ids=["more than there is", "no CUDA"],
)
def test_what_cannot_be_planted_is_a_load_error_and_the_server_lives(
    tmp_path: Path, plant: dict[str, Any], error: str
) -> None:
    if "CUDA" in error and Path("/dev/nvidiactl").exists():
        pytest.skip("there is a CUDA driver")
    called = loads(
        tmp_path,
        plant,
        load="{model: ident, expect: {error: " + error + "}}",
        infer="{model: ident, expect: {status: [400, 404]}}",
        cycles=1,
    )
    assert called.exit_code == 0, called.shown()


def test_a_plant_that_is_written_wrong_into_config_pbtxt_is_a_load_error(tmp_path: Path) -> None:
    change = {'parameters["plant"].string_value': '[{"what": "x"}]'}
    text = LOADS.format(
        plant="[]",
        env="{}",
        cycles=1,
        load="{model: ident, expect: {error: 'plant.0..what: expected one of host_bytes'}}",
        infer="{model: ident, expect: {status: [400, 404]}}",
    )
    edit = json.dumps([{"edit_config": {"model": "ident", "set": change}}])
    called = run_scenario(text.replace("    each:", f"    before: {edit}\n    each:"), tmp_path)
    assert called.exit_code == 0, called.shown()
