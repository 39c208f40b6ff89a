"""Who holds what does not come back: the reclaim ladder after a leak, and what malloc_trim gives back at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.cli import Called, run_scenario
from tritonchaos.units import KIB, MIB

pytestmark = pytest.mark.server
HOST = "host_private_bytes"


def readings(called: Called, metric: str = HOST) -> dict[str, int]:
    return {row["name"]: row["bytes"] for row in called.results["readings"] if row["metric"] == metric}


def test_failed_load_with_a_planted_leak_stops_early_with_ladder_and_footprint(tmp_path: Path) -> None:
    plant = [
        {"what": "host_bytes", "bytes": "4MiB", "when": "good", "held": True},
        {"what": "host_bytes", "bytes": "1MiB", "when": "failed"},
    ]
    called = run_scenario("failed-load", tmp_path, "--set", f"models.ident.parameters.plant={json.dumps(plant)}")
    assert called.exit_code == 1, called.shown()
    [leak] = called.findings("leak")
    treatment = next(p for p in called.results["phases"] if p["phase"] == "wrong_output_datatype")
    assert treatment["cycles"] < 60
    assert leak["bytes_per_cycle"] == pytest.approx(MIB, rel=0.05)
    assert leak["footprint_bytes"] == pytest.approx(4 * MIB, rel=0.1)
    assert leak["footprints"] == pytest.approx(0.25, rel=0.15)
    ladder = leak["ladder"]
    assert ladder["held_by"] == "backend or process"
    assert [rung["done"] for rung in ladder["rungs"]] == [
        "a good load",
        "unloading all models",
        "malloc_trim",
        "the end of the process",
    ]
    assert all(rung["returned_bytes"] < ladder["grown_bytes"] / 2 for rung in ladder["rungs"][:3])
    assert any("of a loaded model" in line for line in leak["evidence"])
    assert "reclaim ladder" in called.stdout and "reclaim ladder" in (called.folder / "report.md").read_text()


def test_without_a_leak_nobody_climbs(tmp_path: Path) -> None:
    called = run_scenario("failed-load", tmp_path, "--set", "phases.wrong_output_datatype.cycles=3")
    assert "phase who_holds_it skipped: no leak was seen" in called.stderr, called.shown()
    assert "ladder_start" not in readings(called)
    assert "can be called" in called.results["target"]["malloc_trim"]


RETAINS = """\
scenario: retains
seed: 1
target: [{local: {}}]
server: {flags: {disable-auto-complete-config: true}, env: {}}
models:
  ident: {template: identity, variant: planted, parameters: {dims: [4], plant: PLANT}}
phases: [{phase: loads, cycles: 4, each: [{load: ident}, {wait: 20ms}, {unload: ident}]}]
check: [memory_growth, server_alive, expectations]
"""


def test_what_the_allocator_only_keeps_comes_back_at_the_end_and_is_a_note(tmp_path: Path) -> None:
    # Freed again, but below a little that stays, so that the heap cannot shrink by itself.
    plant = [*[{"what": "host_bytes", "bytes": 60 * KIB, "held": True}] * 64, {"what": "host_bytes", "bytes": 60 * KIB}]
    called = run_scenario(RETAINS.replace("PLANT", json.dumps(plant)), tmp_path)
    assert called.results["findings"] == [], called.shown()
    read = readings(called)
    assert read["before_trim"] - read["after_trim"] > 2 * MIB, called.shown()
    [note] = [note for note in called.results["notes"] if note.startswith("malloc_trim returned")]
    assert HOST in note


def test_a_library_that_the_scenario_preloads_stays_alone(tmp_path: Path) -> None:
    text = RETAINS.replace("PLANT", "[]").replace("env: {}", 'env: {LD_PRELOAD: "libc.so.6"}')
    called = run_scenario(text, tmp_path)
    assert "before_trim" in readings(called)
    assert "after_trim" not in readings(called)
    assert "scenario's own choice" in called.results["target"]["malloc_trim"]
