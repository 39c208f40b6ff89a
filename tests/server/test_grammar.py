"""Scenario features on a real server: own models, sweeps, versions, requests, groups, signals, server settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.server.cli import run_scenario

pytestmark = pytest.mark.server

CONFIG = """\
name: "theirs"
backend: "python"
max_batch_size: 8
input [ { name: "A" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
MODEL = """\
import os
import resource
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        wanted = os.environ.get("WANTED", "")
        assert wanted in ("", "hi" if "TAKEN_AWAY" not in os.environ else "never"), wanted
        assert not wanted or resource.getrlimit(resource.RLIMIT_NOFILE) == (2048, 2048)

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "A").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("B", values + 1)]) for values in inputs]
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    folder = tmp_path / "theirs"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(CONFIG)
    (folder / "1" / "model.py").write_text(MODEL)
    return folder


MANY_STEPS = """\
scenario: many-steps
seed: 1
target: [{local: {}}]
models:
  mine: {path: theirs, inputs: zeros, expect_outputs: out.npz}
  ident: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [-1], max_batch_size: 4}}
phases:
  - phase: own_model
    steps:
      - load:
          model: mine
          expect:
            {state: {mine: READY}, version: 1, processes: {stub: 1}, live: true, ready: true,
             log: "successfully loaded 'mine'", not_log: "failed to load"}
      - infer: {model: mine, version: "1", concurrency: 3, count: 2, expect: {version: 1, outputs: match}}
      - add_version: {model: mine, version: 2, from: 1}
      - edit_config: {model: mine, set: {"version_policy.all": {}}}
      - load: {model: mine, expect: {version: [1, 2], processes: {stub: 2}}}
      - infer: {model: mine, version: "2", expect: {version: 2, outputs: match}}
      - request: /v2/models/mine/versions/2/ready
      - request: {path: /v2/models/mine/infer, method: POST, body: {inputs: []}, expect: {status: 400}}
      - request: {path: /v2/models/mine/load, method: POST, body: {base64: AP8=}, expect: {status: [400, 404]}}
      - {unload: {model: mine, expect: {state: {mine: ABSENT}, processes: {stub: 0}}}}
      - restore: mine
  - phase: sweeps
    cycles: 4
    each:
      - load: {model: ident, record: load}
      - infer: {model: ident, batch: [1, 4], shapes: [[1], [7]], concurrency: [1, 3]}
      - infer: {model: ident, batch: [4, 5], every: 2, expect: {error: batch-size}}
      - repeat: {times: 2, steps: [{wait: 10ms}]}
      - unload: ident
      - together: {gap: 2ms, every: 4, steps: [{load: ident}, {load: mine}, {request: /v2}]}
      - infer: {model: mine, every: 4}
      - wait: 20ms
      - unload: {model: mine, every: 4}
      - unload: {model: ident, every: 4}
check: [server_alive, hang, expectations, index_consistent, latency: {record: load, at_most: 5s, of: max}]
"""


def test_own_models_versions_sweeps_requests_and_groups(tmp_path: Path, theirs: Path) -> None:
    np.savez(tmp_path / "out.npz", B=np.ones((1, 1), np.float32))
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in theirs.rglob("*")}
    called = run_scenario(MANY_STEPS, tmp_path)
    assert called.exit_code == 0, called.shown()
    assert called.results["variants"] == {"mine": "own", "ident": "planted"}
    (phase,) = called.results["phases"]
    assert len(phase["latency"]["latency_load_ns"]) == 4
    assert all(took > 0 for took in phase["latency"]["latency_load_ns"])
    assert "latency_load_ns" not in phase["post_unload"]
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in theirs.rglob("*")} == before


SETTINGS = """\
scenario: settings
seed: 1
target: [{local: {}}]
server: {env: {TAKEN_AWAY: x}}
models: {mine: {path: theirs}}
phases:
  - phase: killed
    steps:
      - load: mine
      - signal: {process: stub, signal: SIGKILL}
      - signal: {process: server, signal: SIGKILL}
      - start_server
      - request: /v2/health/ready
      - signal: {process: stub, signal: SIGKILL, expect: any}
  - phase: other_settings
    server: {env: {WANTED: hi, TAKEN_AWAY: null}, ulimits: {nofile: 2048}}
    cycles: 1
    each: [{load: mine}, {infer: mine}, {unload: mine}]
  - phase: fresh
    server: {fresh: cycle}
    cycles: 3
    each: [{load: mine}, {infer: mine}, {unload: mine}]
  - phase: all_at_start
    server: {mode: none}
    steps:
      - infer: mine
      - load: {model: mine, expect: {error: not allowed}}
check: [server_alive, hang, expectations, index_consistent]
"""


def test_signals_and_server_settings(tmp_path: Path, theirs: Path) -> None:
    called = run_scenario(SETTINGS, tmp_path)
    assert called.exit_code == 0, called.shown()
    # Once for the run, after the kill, for the settings, back from them, for each fresh cycle, and for mode none.
    assert called.results["server_starts"] == 8


UNMET = """\
scenario: unmet
seed: 1
target: [{local: {}}]
models:
  ident: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}
phases:
  - phase: p
    steps:
      - load: {model: ident, expect: {log: "no such line"}}
      - unload: ident
      - load: {model: ident, expect: {not_log: "successfully loaded"}}
      - load: {model: ident, expect: {version: 7}}
      - infer: {model: ident, expect: {version: 7}}
      - load: {model: ident, expect: {processes: {stub: 3}}}
      - load: {model: ident, expect: {live: false}}
      - load: {model: ident, expect: {within: 1us}}
check: [expectations]
"""


def test_each_unmet_expectation_is_a_finding(tmp_path: Path) -> None:
    called = run_scenario(UNMET, tmp_path)
    assert called.exit_code == 1, called.shown()
    titles = sorted(finding["title"] for finding in called.results["findings"])
    parts = ["logged no line", "logged a line", "another version", "another number of processes", "another health"]
    assert [part for part in parts if not any(part in title for title in titles)] == [], titles
    assert len([title for title in titles if "another version" in title]) == 2
    assert called.kinds() == {"wrong_error", "wrong_state", "leftover", "slowdown"}


BROKEN_FILES = """\
scenario: broken-files
seed: 1
target: [{local: {}}]
models: {ident: {template: identity, variant: python, parameters: {datatype: FP32, dims: [4]}}}
phases:
  - phase: empty
    cycles: 1
    before: [{put_file: {model: ident, path: 1/model.py, text: ""}}]
    each: [{load: {model: ident, deadline: 20s, expect: {error: TritonPythonModel, processes: {stub: 0}}}}]
    after: [{restore: ident}]
  - phase: wrong
    cycles: 1
    before: [{put_file: {model: ident, path: 1/model.py, from: wrong.py}}]
    each: [{load: {model: ident, deadline: 20s, expect: {error: SyntaxError, state: {ident: ABSENT}}}}]
    after: [{restore: ident}]
  - phase: restored
    steps: [{load: ident}, {infer: ident}, {unload: ident}]
check: [server_alive, hang, expectations, index_consistent]
"""


def test_a_broken_model_file_is_refused_and_restored(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("def initialize(self:\n")
    called = run_scenario(BROKEN_FILES, tmp_path)
    assert called.exit_code == 0, called.shown()
