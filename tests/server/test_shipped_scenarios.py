"""The shipped scenarios against a real tritonserver, with the verdict that each must give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.cli import run_as_user

pytestmark = pytest.mark.server

# A server that will not stop is waited for twice that time and 5 s; Triton's default is 30 s, ours 10 s.
SHORT_EXIT = ("--set", "server.flags.exit-timeout-secs=1")


def test_good_load_is_flat(tmp_path: Path) -> None:
    called = run_as_user("good-load", tmp_path)
    assert called.exit_code == 0, called.shown()
    growth = [a for a in called.results["assessments"] if a["metric"] == "host_private_bytes"]
    assert growth and growth[0]["verdict"] == "STABLE"
    assert growth[0]["excluded_bytes_per_cycle"] > 0


def test_failed_load_of_the_planted_variant_gives_its_memory_back(tmp_path: Path) -> None:
    called = run_as_user("failed-load.yaml", tmp_path, "--json")
    assert called.exit_code == 0, called.shown()
    results = json.loads(called.stdout)
    assert results == called.results
    assert results["verdict"] == "pass"
    assert results["variants"] == {"ident": "planted"}
    assert {skipped["name"] for skipped in results["target_skipped"]} >= {"docker"}
    assert [phase["phase"] for phase in results["phases"]][:3] == ["baseline", "wrong_output_datatype", "restored"]


def test_as_reported_says_how_many_cycles_are_missing(tmp_path: Path) -> None:
    called = run_as_user("failed-load-as-reported", tmp_path)
    assert called.exit_code == 3, called.shown()
    growth = next(a for a in called.results["assessments"] if a["metric"] == "host_private_bytes")
    assert growth["status"] == "unknown"
    assert "more" in growth["reason"]
    assert "wrong_output_datatype" in (called.folder / "report.md").read_text()


def test_a_planted_leak_is_found_with_its_size(tmp_path: Path) -> None:
    called = run_as_user("planted-leak", tmp_path)
    assert called.exit_code == 1, called.shown()
    leak = next(f for f in called.findings("leak") if f["metric"] == "host_private_bytes")
    assert leak["bytes_per_cycle"] == pytest.approx(1024**2, rel=0.02)
    low, high = leak["interval_bytes_per_cycle"]
    assert low <= leak["bytes_per_cycle"] <= high


def test_a_missing_model_file_is_a_hang_and_the_server_will_not_stop(tmp_path: Path) -> None:
    called = run_as_user("missing-model-file", tmp_path, *SHORT_EXIT)
    assert called.exit_code == 1, called.shown()
    assert {"hang", "will_not_stop"} <= called.kinds(), called.shown()
    hang = called.findings("hang")[0]
    assert hang["position"]["phase"] == "without_model_file"
    assert any("LOADING" in line for line in hang["evidence"])


def test_a_model_from_sent_files_is_served_but_not_in_the_index(tmp_path: Path) -> None:
    called = run_as_user("override-load", tmp_path)
    assert called.exit_code == 1, called.shown()
    assert called.kinds() == {"wrong_state"}, called.shown()
    titles = {finding["title"] for finding in called.findings("wrong_state")}
    assert any(title.startswith("load ident answered 200, but the model is not READY") for title in titles), titles
    statuses = {a["checker"]: a["status"] for a in called.results["assessments"]}
    assert statuses["expectations"] == "pass", "it was loaded, answered rightly and unloaded"


def test_after_a_failed_reload_the_server_will_not_stop(tmp_path: Path) -> None:
    called = run_as_user("failed-reload", tmp_path, *SHORT_EXIT)
    assert called.exit_code == 1, called.shown()
    assert called.kinds() == {"will_not_stop"}, called.shown()


def test_a_slow_load_over_http_holds_up_what_is_asked_over_http_alone(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    called = run_as_user("health-during-load", tmp_path)
    assert called.exit_code == 1, called.shown()
    assert called.kinds() == {"slowdown"}, called.shown()
    slow = called.findings("slowdown")
    assert {finding["title"] for finding in slow} == {"infer busy took longer than 1 s", "request took longer than 1 s"}
    # The phase with loads over gRPC comes first: nothing was held up in it.
    assert {finding["position"]["phase"] for finding in slow} == {"over_http"}
