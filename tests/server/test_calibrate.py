"""`calibrate` against a real server: what it finds, what it refuses, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.local_server import usable_local_target
from tests.server.cli import tritonchaos
from tests.stand_in_nvml import A, StandIn, needs_compiler
from tritonchaos import calibrated
from tritonchaos.calibration import Order, calibrate, document, write_files
from tritonchaos.overriding import Overrides
from tritonchaos.plugins import load_plugins
from tritonchaos.scenario_engine import Interrupt
from tritonchaos.store import open_history
from tritonchaos.units import MIB

pytestmark = [pytest.mark.server, needs_compiler]
HOST, DEVICE = "host_private_bytes", "nvml_process_used_bytes"

# Six runs, whatever they take: a clean twin, and what the first claim rests on.
ON_GPU = """
import json, sys
from pathlib import Path
from tritonchaos.calibration import Order, calibrate, document
from tritonchaos.overriding import Overrides
from tritonchaos.plugins import load_plugins
from tritonchaos.scenario_engine import Interrupt
load_plugins(())
settings = ("models.ident.parameters.kind=KIND_CPU",)
order = Order(({"local": {}},), Overrides(settings=settings), ("planted_gpu",), 600.0, Path(sys.argv[1]), most_runs=6)
print(json.dumps(document(calibrate(order, Interrupt()), "2026-12-01")))
"""


def test_six_runs_make_a_claim_that_later_runs_quote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usable_local_target()
    load_plugins(())
    (tmp_path / "out").mkdir()
    told: list[str] = []
    order = Order(({"local": {}},), Overrides(seed=3), ("planted",), 600.0, tmp_path / "out", told.append, most_runs=6)
    calibration = calibrate(order, Interrupt())
    found = document(calibration, "2026-12-01")

    assert [run["not_used"] for run in found["runs"]] == [None] * 6, found["runs"]
    assert len(told) == 6
    metric = found["metrics"][HOST]
    [leak] = metric["leaks"]
    assert (leak["bytes_per_cycle"], leak["runs"], leak["found"]) == (MIB, 5, 5)
    assert leak["claimed_cycles"] > max(leak["cycles"])
    assert {run["place"] for run in found["runs"]} == {"instance_initialize", "model_finalize"}
    assert metric["bounded"]["clean twin"]["runs"] == 1
    assert metric["bounded"]["clean twin"]["false_alarms"] == 0
    assert metric["settle_ms"]["longest"] >= metric["settle_ms"]["median"] > 0
    assert found["sampling"]["all_us"] > found["sampling"]["fast_us"] > 0
    assert "planted: leak of 64 KiB, 0 of the 5 runs that say something" in found["left_out"]
    assert str(tmp_path) not in json.dumps(found)

    monkeypatch.setenv("TRITONCHAOS_CACHE", str(tmp_path / "cache"))
    list(write_files(tmp_path / "out", calibration, found, "2026-12-01"))
    history = open_history(tmp_path / "out" / "runs" / found["runs"][0]["folder"])
    assert calibrated.statement(history.facts.target, uses_gpu=False) == metric["statement"]
    later = tritonchaos("run", "planted-leak", "--cycles", "6", "--out", "later", "--json", cwd=tmp_path)
    assert metric["statement"] in json.loads(later.stdout)["notes"]
    assert metric["statement"] in (tmp_path / "later" / "report.md").read_text()


def on_gpu(machine: StandIn) -> dict[str, Any]:
    usable_local_target()
    command = [sys.executable, "-c", ON_GPU, str(machine.folder / "out")]
    without = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    environment = without | machine.environment
    done = subprocess.run(command, env=environment, cwd=machine.folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_leaks_of_device_memory_are_planted_where_there_is_a_gpu(tmp_path: Path) -> None:
    found = on_gpu(StandIn(tmp_path, f"gpu uuid={A}"))

    assert found["key"]["gpu_uuids"] == A
    assert found["key"]["driver"].startswith("stand-in")
    metric = found["metrics"][DEVICE]
    assert metric["variant"] == "planted_gpu"
    [leak] = metric["leaks"]
    assert (leak["bytes_per_cycle"], leak["runs"], leak["found"]) == (2 * MIB, 5, 5)
    assert metric["statement"].startswith("this set-up sees 2 MiB per cycle in ")
    assert metric["bounded"]["clean twin"]["false_alarms"] == 0


def test_a_gpu_that_vanishes_ends_its_half_and_nothing_is_claimed(tmp_path: Path) -> None:
    # One line for each failed load of the first leak; the clean twin before it leaves none.
    found = on_gpu(StandIn(tmp_path, f"gpu uuid={A} lost_after=6"))

    assert len(found["runs"]) == 2
    assert "lost" in found["runs"][-1]["not_used"]
    assert any(line.startswith("planted_gpu: a GPU was lost after 2 runs") for line in found["left_out"])
    assert [part["statement"] for part in found["metrics"].values()] == [None]


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "said"),
    [
        (["--budget", "5s"], {}, 2, "found 5 s, too little for anything; expected at least"),
        (["--budget", "soon"], {}, 2, "--budget: found 'soon'"),
        (["--variant", "tensorrt"], {}, 2, "expected planted (host memory) or planted_gpu"),
        (["--variant", "planted_gpu"], {}, 2, "no GPU"),
        (["--budget", "1min"], {"CC": "/nonexistent/cc"}, 2, "the C compiler named by $CC was not found"),
        (["--target", "moon"], {}, 2, "moon"),
        (["--target", "docker"], {}, 2, "name it with --image"),
        (["--target", "remote"], {}, 2, "name it with --url"),
        (["--server-path", "/nonexistent/tritonserver"], {}, 4, "/nonexistent/tritonserver"),
    ],
)
def test_what_cannot_be_calibrated_is_refused_before_anything_starts(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], code: int, said: str
) -> None:
    usable_local_target()
    command = [sys.executable, "-m", "tritonchaos", "calibrate", "--out", "out", *arguments]
    done = subprocess.run(
        command, env={**os.environ, **environment}, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "out" / "runs").exists()


def test_one_interrupt_ends_it_with_what_it_has_and_nothing_is_left(tmp_path: Path) -> None:
    usable_local_target()
    command = [sys.executable, "-m", "tritonchaos", "calibrate", "--budget", "5min", "--out", "out", "--json"]
    environment = {**os.environ, "TRITONCHAOS_CACHE": str(tmp_path / "cache")}
    process = subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "clean twin" in process.stderr.readline()
    time.sleep(0.5)  # into the second run
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert json.loads(stdout)["interrupted"] is True
    assert json.loads((tmp_path / "out" / "calibration.json").read_text())["interrupted"] is True
    assert not (tmp_path / "cache" / "calibrations").exists()
    below = str(tmp_path / "out")
    assert not [p for p in psutil.process_iter(["cmdline"]) if any(below in part for part in p.info["cmdline"] or ())]
    assert list((tmp_path / "out" / "runs").glob("*/scratch")) == []
