"""Holds what a calibration claims against fresh runs: its own leak, other sizes and places, clean twins.

The scenarios are written anew here, and memory is planted by an edit of the config on trial, so that they share nothing
with those of the calibration but their form.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli import Called
from tritonchaos.units import format_bytes

RUNS = 10
SIZES = (1.5, 3, 11)  # times the claimed size; none of them is a size that a calibration plants
WHOLE_MODELS = (1.5, 2, 3)  # the same where the model takes as much while it is loaded
PLACES = ("before_validation", "model_initialize", "instance_finalize", "execute")

SCENARIO = """\
scenario: held-against-a-claim
seed: {seed}
target: [{{local: {{}}}}]
server: {{flags: {{disable-auto-complete-config: true}}}}
models:
  ident: {{template: identity, variant: {variant}, parameters: {{datatype: FP32, dims: [16], plant: {held}{more}}}}}
phases:
  - phase: baseline
    arm: control
    cycles: {{at_least: 3, at_most: 30, until: flat}}
    each: [{{load: ident}}, {infer}{{wait: 20ms}}, {{unload: ident}}]
  - phase: on_trial
    cycles: {{at_least: 6, at_most: 200, until: verdict}}
    before:
      - edit_config:
          model: ident
          set: {edit}
    each: {each}
check: [memory_growth, server_alive, expectations]
"""
FAILED_LOAD = '[{load: {model: ident, expect: {error: "unexpected datatype TYPE_FP32"}}}, {unload: ident}]'
GOOD_LOAD = "[{load: ident}, {infer: ident}, {wait: 20ms}, {unload: ident}]"


Plants = list[dict[str, Any]]


@dataclass(frozen=True)
class Fresh:
    """A fresh run: what was planted, and what came of it on the deciding metric."""

    planted: str
    verdict: str
    cycles: int
    leaks: int


def calibrate(
    folder: Path, variant: str, budget: str, *options: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Calibrate as a user does; return calibration.json.

    Args:
        variant: "" calibrates all that there is.
    """
    command = [sys.executable, "-m", "tritonchaos", "calibrate", "--budget", budget, "--json"]
    command += ["--out", str(folder / "calibration"), *(["--variant", variant] if variant else []), *options]
    done = subprocess.run(
        command,
        env={**os.environ, "TRITONCHAOS_CACHE": str(folder / "cache"), **(environment or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


class Claims:
    """What a calibration claims of one variant, to be held against fresh runs.

    Args:
        folder: An empty folder.
        found: calibration.json.
        variant: "planted" or "planted_gpu".
        more: Further parameters of the model, such as ", kind: KIND_CPU".
    """

    def __init__(self, folder: Path, found: Mapping[str, Any], variant: str, more: str = "") -> None:
        self._folder = folder
        self._more = more
        self._variant = variant
        [(self.metric, part)] = [(m, p) for m, p in found["metrics"].items() if p["variant"] == variant]
        assert part["statement"], part
        claims = [claim for claim in part["smallest_leak"].values() if claim is not None]
        # Every claim on the page; the same size may be the smallest within 20, 50 and 200 cycles.
        held = {(claim["bytes_per_cycle"], claim["cycles"]) for claim in claims}
        self._whole = {claim["bytes_per_cycle"] for claim in claims if claim["footprint_bytes"]}
        self.claims = sorted(held, key=lambda claim: claim[1])
        self.false_alarms = {kind: seen["false_alarms"] for kind, seen in part["bounded"].items()}
        self.statement = part["statement"]
        self._number = 0

    def times(self, count: int) -> tuple[float, ...]:
        return WHOLE_MODELS if count in self._whole else SIZES

    def leak(self, count: int, place: str, *, of: int = 0) -> Fresh:
        """Plant a leak.

        Args:
            of: The claimed size; where a whole model was claimed, this model takes what leaks while it is loaded.
        """
        what = "host_bytes" if self._variant == "planted" else "device_bytes"
        held = [{"what": what, "bytes": count, "held": True}] if of in self._whole else []
        plant: dict[str, Any] = {"what": what, "bytes": count, "at": place}
        if place in ("instance_initialize", "instance_finalize", "model_finalize"):
            plant["when"] = "failed"
        return self._run(held, [plant], f"{format_bytes(count)} at {place}", is_failing=place != "execute")

    def clean(self) -> Fresh:
        return self._run([], [], "nothing", is_failing=True)

    def _run(self, held: Plants, plant: Plants, planted: str, *, is_failing: bool) -> Fresh:
        self._number += 1
        edit = {'parameters["plant"].string_value': json.dumps([*held, *plant])}
        if is_failing:
            edit["output[0].data_type"] = "TYPE_INT32"
        text = SCENARIO.format(
            seed=1000 + self._number,
            variant=self._variant,
            held=json.dumps(held),
            more=self._more,
            infer="" if is_failing else "{infer: ident}, ",
            edit=json.dumps(edit),
            each=FAILED_LOAD if is_failing else GOOD_LOAD,
        )
        called = self._call(text)
        rows = [row for row in called.results["assessments"] if row["checker"] == "memory_growth"]
        [row] = [row for row in rows if row["metric"] == self.metric]
        return Fresh(planted, row["verdict"], row["cycles_used"], len(called.findings("leak")))

    def _call(self, text: str) -> Called:
        folder = self._folder / f"fresh-{self._number:03}"
        folder.mkdir()
        (folder / "scenario.yaml").write_text(text)
        command = [sys.executable, "-m", "tritonchaos", "run", "scenario.yaml", "--out", "run"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
        assert done.returncode in {0, 1, 3}, done.stderr
        return Called(done.returncode, done.stdout, done.stderr, folder / "run")


def hold(claims: Claims, capsys: pytest.CaptureFixture[str], most_claims: int | None = None) -> None:
    """Hold claims against ten fresh runs each and ten of what was not tried; ten clean twins must stay clean.

    Args:
        most_claims: So many claims, the quickest first; None: all of the page.
    """
    told = [claims.statement]
    kept = True
    for count, cycles in claims.claims[:most_claims]:
        own_places = [("instance_initialize", "model_finalize")[number % 2] for number in range(RUNS)]
        own = [claims.leak(count, place, of=count) for place in own_places]
        times = claims.times(count)
        others = [
            claims.leak(round(count * times[number % len(times)]), PLACES[number % len(PLACES)], of=count)
            for number in range(RUNS)
        ]
        for name, fresh in (("its own leak", own), ("other sizes and places", others)):
            found = sum(run.verdict == "LEAK" and run.cycles <= cycles for run in fresh)
            kept = kept and found >= RUNS - 1
            told.append(f"{format_bytes(count)} within {cycles} cycles, {name}: {found} of {RUNS}; {_shown(fresh)}")
    clean = [claims.clean() for _ in range(RUNS)]
    alarms = sum(run.leaks > 0 or run.verdict == "LEAK" for run in clean)
    told.append(f"clean twins called a leak: {alarms} of {RUNS}; {_shown(clean)}")
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(told) + "\n")
    assert kept, told
    assert alarms == 0, told
    assert set(claims.false_alarms.values()) == {0}


def _shown(fresh: list[Fresh]) -> str:
    return ", ".join(f"{run.planted} {run.verdict} {run.cycles}" for run in fresh)
