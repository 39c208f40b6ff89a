"""The target `remote` against a server that somebody else started: same verdicts, and it is left as it was found."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local_server import LocalServer, start_local_server, wait_for, write_python_model
from tests.server.cli import Called, run_scenario
from tritonchaos import processes
from tritonchaos.cleaning import find_leftovers, remove
from tritonchaos.client import parse_index
from tritonchaos.errors import TargetUnavailable
from tritonchaos.plugins import MayVanish, RepositoryPlace
from tritonchaos.shipped import shipped_folder
from tritonchaos.targets.remote import RemoteTarget

pytestmark = pytest.mark.server


def remote_scenario(name: str, server: LocalServer, variant: str, **fields: Any) -> str:
    """A shipped scenario with the target `remote` in place of its own."""
    document = yaml.safe_load((shipped_folder("scenarios") / f"{name}.yaml").read_text())
    document["target"] = [{"remote": {"url": server.running.url, **fields}}]
    model = document["models"]["ident"]
    model |= {"variant": variant, "parameters": {**model["parameters"], "dims": [16]}}
    return yaml.safe_dump(document, sort_keys=False)


def run_remote(name: str, server: LocalServer, folder: Path, variant: str = "planted", **fields: Any) -> Called:
    return run_scenario(remote_scenario(name, server, variant, **fields), folder)


def is_as_it_was(server: LocalServer) -> bool:
    """It runs, and nothing of ours is loaded or lies in its repository or beside it."""
    return (
        server.target.exit_code() is None
        and parse_index(server.client.index(10)) == ()
        and not list(server.launch.repository.iterdir())
        and not list(server.launch.repository.parent.glob(".tritonchaos-*"))
    )


# --- verdicts, the same that `local` gives (test_shipped_scenarios) ----------------------------------


def test_a_planted_leak_is_found_with_its_size(local_server: LocalServer, tmp_path: Path) -> None:
    called = run_remote("planted-leak", local_server, tmp_path, repository=str(local_server.launch.repository))
    assert called.exit_code == 1, called.shown()
    leak = next(f for f in called.findings("leak") if f["metric"] == "host_private_bytes")
    assert leak["bytes_per_cycle"] == pytest.approx(1024**2, rel=0.02)
    assert called.results["target"]["process"].split()[1] == str(local_server.pid)
    assert any("after_exit" in note and "not ours to stop" in note for note in called.results["notes"])
    assert {reading["name"] for reading in called.results["readings"]} & {"idle", "after_exit"} == set()
    assert is_as_it_was(local_server)


def test_the_command_line_names_it(local_server: LocalServer, tmp_path: Path) -> None:
    folder = f"target[0].remote.repository={local_server.launch.repository}"
    called = run_scenario("planted-leak", tmp_path, "--url", local_server.running.url, "--set", folder)
    assert called.exit_code == 1, called.shown()
    assert called.results["target"]["target"] == "remote"
    assert called.kinds() == {"leak"}, called.shown()
    assert is_as_it_was(local_server)


def test_failed_load_gives_its_memory_back(local_server: LocalServer, tmp_path: Path) -> None:
    called = run_remote("failed-load", local_server, tmp_path, repository=str(local_server.launch.repository))
    assert called.exit_code == 0, called.shown()
    assert called.results["variants"] == {"ident": "planted"}
    skipped = {entry["name"] for entry in called.results["target_skipped"]}
    assert "server flags disable-auto-complete-config" in skipped
    assert is_as_it_was(local_server)


SENT = """\
scenario: sent
target: [{remote: {url: URL}}]
models: {ident: {template: identity, variant: python, parameters: {dims: [4]}}}
phases:
  - phase: good
    cycles: 1
    each: [{load: ident}, {infer: ident}, {unload: ident}]
  - phase: edited
    cycles: 1
    before: [{edit_config: {model: ident, set: {"output[0].data_type": TYPE_INT32}}}]
    each: [{load: {model: ident, expect: {error: unexpected datatype TYPE_FP32}}}, {unload: ident}]
check: [server_alive, expectations, index_consistent]
"""


def test_without_a_repository_the_files_are_sent_with_every_load(local_server: LocalServer, tmp_path: Path) -> None:
    called = run_scenario(SENT.replace("URL", local_server.running.url), tmp_path)
    statuses = {a["checker"]: a["status"] for a in called.results["assessments"]}
    # Both loads did what they should, so the edited config was sent; 2.51 serves such a model without listing it.
    assert statuses == {"server_alive": "pass", "expectations": "pass", "index_consistent": "fail"}, called.shown()
    assert called.kinds() == {"wrong_state"}, called.shown()
    assert is_as_it_was(local_server)


def test_models_of_a_users_repository_may_not_have_the_servers_names(local_server: LocalServer, tmp_path: Path) -> None:
    write_python_model(local_server.launch.repository, "theirs")
    write_python_model(tmp_path / "users", "theirs")
    scenario = SENT.replace("URL", local_server.running.url)
    called = run_scenario(scenario, tmp_path, "--model-repository", tmp_path / "users")
    assert called.exit_code == 4, called.shown()
    assert "has a model theirs already" in called.stderr


def test_a_backend_of_ours_is_not_sent_along(local_server: LocalServer, tmp_path: Path) -> None:
    called = run_remote("planted-leak", local_server, tmp_path)
    assert called.exit_code == 4, called.shown()
    assert "backends: [planted]" in called.stderr
    assert is_as_it_was(local_server)


def test_a_server_that_dies_in_mid_run_is_a_crash(local_server: LocalServer, tmp_path: Path) -> None:
    scenario = remote_scenario(
        "unload-at-once", local_server, "planted", repository=str(local_server.launch.repository)
    )
    (tmp_path / "long.yaml").write_text(scenario)
    command = [sys.executable, "-m", "tritonchaos", "run", "long.yaml", "--out", "run"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert wait_for(lambda: (local_server.launch.repository / "ident").exists())
    time.sleep(0.5)  # some cycles; whichever it is in, the outcome is the same
    ticks = processes.start_ticks(local_server.pid)
    assert ticks is not None
    assert processes.end(local_server.pid, ticks, signal.SIGKILL)
    output, _ = running.communicate(timeout=120)
    assert running.returncode == 1, output
    findings = json.loads((tmp_path / "run" / "results.json").read_text())["findings"]
    assert "crash" in {finding["kind"] for finding in findings}, output
    assert not list(local_server.launch.repository.iterdir())


# --- what it says of itself --------------------------------------------------------------------------


def test_it_finds_the_process_and_never_stops_it(shared_server: LocalServer) -> None:
    target = RemoteTarget(shared_server.running.url)
    target.check()
    assert target.describe()["triton_version"] == "2.51.0"
    assert target.repository_place() == RepositoryPlace(shared=None, sends_files=True)
    running = target.start(shared_server.launch)
    assert (running.pid, running.is_ours, running.is_here) == (shared_server.pid, False, True)
    assert next(process.pid for process in target.processes()) == shared_server.pid
    for _ in range(2):
        stop = target.stop()
        assert (stop.signal, stop.exit_code, stop.forced) == ("", None, False)
    assert target.exit_code() is None
    assert isinstance(target, MayVanish)
    assert not target.has_vanished()
    assert shared_server.target.exit_code() is None


def test_names_that_the_server_has_are_refused(shared_server: LocalServer) -> None:
    write_python_model(shared_server.launch.repository, "theirs")
    target = RemoteTarget(shared_server.running.url)
    with pytest.raises(TargetUnavailable, match="has a model theirs already"):
        target.check_models(["ours", "theirs"])
    target.check_models(["ours"])


def test_another_folder_than_the_servers_is_told_before_the_first_step(
    shared_server: LocalServer, tmp_path: Path
) -> None:
    target = RemoteTarget(shared_server.running.url, repository=tmp_path)
    target.check()
    target.check_models(["elsewhere"])
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(TargetUnavailable, match="does not see elsewhere"):
        target.start(shared_server.launch)


def test_a_server_that_polls_cannot_be_used(tmp_path: Path) -> None:
    server = start_local_server(tmp_path, mode="poll")
    try:
        with pytest.raises(TargetUnavailable, match="explicit model load / unload is not allowed") as caught:
            RemoteTarget(server.running.url).check()
        assert "--model-control-mode=explicit" in caught.value.hint
    finally:
        server.stop()


def test_clean_removes_what_a_killed_run_left_and_never_ends_the_server(
    local_server: LocalServer, tmp_path: Path
) -> None:
    scenario = remote_scenario(
        "unload-at-once", local_server, "planted", repository=str(local_server.launch.repository)
    )
    (tmp_path / "long.yaml").write_text(scenario)
    running = subprocess.Popen([sys.executable, "-m", "tritonchaos", "run", "long.yaml"], cwd=tmp_path)
    placed = local_server.launch.repository / "ident"
    assert wait_for(lambda: any(tmp_path.glob("tritonchaos-runs/*/run.db")) and placed.exists())
    time.sleep(0.5)  # until it is in its cycles
    running.kill()
    running.wait()
    left = find_leftovers(tmp_path / "tritonchaos-runs")
    assert {leftover.kind for leftover in left} == {"model", "scratch"}
    for leftover in left:
        remove(leftover)
    assert local_server.target.exit_code() is None
    assert not list(local_server.launch.repository.iterdir())
    assert not list(local_server.launch.repository.parent.glob(".tritonchaos-*"))
