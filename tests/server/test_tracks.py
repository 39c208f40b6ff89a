"""Tracks beside the main one: at a rate, in a closed loop, started by a step, and across a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.server.cli import run_scenario
from tritonchaos.observations import History, StepFinished, TrafficSummary
from tritonchaos.store import open_history

pytestmark = pytest.mark.server

TRACKS = """\
scenario: tracks
seed: 1
target: [{local: {}}]
models:
  busy: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}
  ident: {template: identity, variant: planted, parameters: {datatype: INT8, dims: [4]}}
phases:
  - phase: prepare
    steps: [{load: busy}, {infer: busy}]
  - phase: paced
    steps: [{wait: 1500ms}]
    meanwhile: [{track: paced, workers: 2, rate: 40/s, stop: {after: 1s}, each: [{infer: busy}]}]
  - phase: race
    cycles: 3
    each: [{load: ident}, {wait: 100ms}, {unload: ident}]
    meanwhile:
      - {track: closed, workers: 2, each: [{infer: busy}]}
      - track: race
        start: {at: {step: load ident, when: finished, offset: 5ms}}
        stop: {times: 2}
        each: [{infer: ident}]
      - {track: never, start: {at: {step: unload busy}}, each: [{infer: busy}]}
  - phase: restart
    steps: [{wait: 200ms}, restart_server, {load: busy}, {wait: 400ms}, {unload: busy}]
    meanwhile: [{track: across, rate: 10/s, each: [{infer: {model: busy, expect: {status: [200, 400, 404]}}}]}]
check: [server_alive, hang, expectations, index_consistent]
"""


def requests(history: History, track: str) -> int:
    single = sum(step.position.track == track for step in history.of(StepFinished))
    return single + sum(summary.count for summary in history.of(TrafficSummary) if summary.track == track)


def test_tracks_start_run_and_stop_as_they_say_and_every_request_is_verified(tmp_path: Path) -> None:
    called = run_scenario(TRACKS, tmp_path)
    assert called.exit_code == 0, called.shown()
    history = open_history(called.folder)
    # At a rate the number of requests is the schedule's, however slow the machine is.
    assert requests(history, "paced") == 40
    assert requests(history, "closed") > 20
    race = [step for step in history.of(StepFinished) if step.position.track == "race"]
    loads = [step for step in history.of(StepFinished) if step.spec.label() == "load ident"]
    assert len(race) == 6
    for load, first in zip(loads, race[::2], strict=True):
        assert first.started_ns >= load.t_ns + 5_000_000
    assert any("track never of race never started" in note for note in called.results["notes"])
    # A stop waits for requests that are under way, and none is sent until the server is back.
    across = Counter(type(step.reply).__name__ for step in history.of(StepFinished) if step.position.track == "across")
    assert across.keys() == {"Answer"}
    assert across["Answer"] >= 4


def test_a_refusal_beside_the_main_track_is_a_finding(tmp_path: Path) -> None:
    scenario = """\
scenario: refused
seed: 1
target: [{local: {}}]
models:
  busy: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}
phases:
  - phase: unload_under_load
    steps: [{load: busy}, {wait: 200ms}, {unload: busy}, {wait: 100ms}]
    meanwhile: [{track: traffic, start: {at: {step: wait}}, each: [{infer: busy}]}]
check: [server_alive, hang, expectations]
"""
    called = run_scenario(scenario, tmp_path)
    assert called.exit_code == 1, called.shown()
    [finding] = called.findings("wrong_error")
    assert finding["position"]["track"] == "traffic"
