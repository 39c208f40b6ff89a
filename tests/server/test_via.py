"""Steps over gRPC against a real tritonserver: same answers as over HTTP, same end of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.cli import run_scenario
from tritonchaos.expectation import error_text
from tritonchaos.observations import Answer, History, NoAnswer, ServerStopped, StepFinished
from tritonchaos.store import open_history

pytest.importorskip("grpc", reason="grpcio is not installed")
pytestmark = pytest.mark.server

VIA = """\
scenario: via
seed: 1
target: [{local: {}}]
models:
  ident: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}
  slow: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4], sleep_ms_in_load: 1500}}
phases:
  - phase: good
    cycles: 2
    each:
      - load: {model: ident, via: grpc, record: load}
      - infer: {model: ident, via: both, expect: {status: 200, outputs: match, version: "1"}}
      - infer: {model: ident, via: grpc, concurrency: [1, 3]}
      - unload: {model: ident, via: grpc}
  - phase: refused
    before: [{edit_config: {model: ident, set: {"output[0].data_type": TYPE_INT32}}}]
    cycles: 1
    each:
      - load: {model: ident, expect: {status: 400, error: "unexpected datatype TYPE_FP32"}}
      - load: {model: ident, via: grpc, expect: {status: 400, error: "unexpected datatype TYPE_FP32"}}
      - infer: {model: ident, via: both, expect: {status: [400, 404]}}
      - unload: {model: ident, via: grpc}
    after: [{restore: ident}]
  - phase: restarted
    steps:
      - restart_server
      - load: {model: ident, via: grpc}
      - load: {model: slow, via: grpc, deadline: 300ms, expect: any}
      - wait_for: {model: slow, state: READY}
      - infer: {model: slow, via: grpc}
check: [server_alive, hang, expectations, index_consistent]
"""


def steps(history: History, label: str) -> list[StepFinished]:
    return [step for step in history.of(StepFinished) if step.spec.label() == label]


def test_what_is_asked_over_grpc_is_answered_and_judged_as_over_http(tmp_path: Path) -> None:
    called = run_scenario(VIA, tmp_path)
    assert called.exit_code == 0, called.shown()
    history = open_history(called.folder)
    over_http = [s.reply for s in steps(history, "load ident") if s.position.phase == "refused"]
    over_grpc = [s.reply for s in steps(history, "load ident via grpc") if s.position.phase == "refused"]
    for http, grpc in zip(over_http, over_grpc, strict=True):
        assert isinstance(http, Answer) and isinstance(grpc, Answer)
        assert (http.status, error_text(http)) == (grpc.status, error_text(grpc))
    unknown = [s.reply for label in ("infer ident", "infer ident via grpc") for s in steps(history, label)]
    refusals = {(reply.status, error_text(reply)) for reply in unknown if isinstance(reply, Answer) and reply.body}
    assert len(refusals) == 1
    late = steps(history, "load slow via grpc")[0].reply
    assert isinstance(late, NoAnswer) and late.reason == "deadline"
    # With a channel left open a stop takes the whole exit timeout.
    stops = list(history.of(ServerStopped))
    assert [(stop.forced, stop.exit_timeout_expired, stop.exit_code) for stop in stops] == [(False, False, 0)] * 2


def test_without_a_grpc_port_nothing_is_started(tmp_path: Path) -> None:
    text = VIA.replace("models:", "server: {flags: {allow-grpc: false}}\nmodels:", 1)
    called = run_scenario(text, tmp_path)
    assert called.exit_code == 4, called.shown()
    assert "lacks: grpc (load ident via grpc in phase good)" in called.stderr
    assert not (tmp_path / "run").exists()
