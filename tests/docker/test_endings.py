"""How servers in containers end, and that nothing stays: killed, out of memory, beside others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from tests.docker.engine_state import on_engine, unchanged
from tests.local_server import wait_for
from tests.server.cli import run_scenario, tritonchaos

pytestmark = pytest.mark.docker

FOREVER = """\
scenario: goes-on
seed: 1
target: [{{docker: {{image: "{image}", network: {network}}}}}]
models:
  ident: {{template: identity, variant: planted, parameters: {{datatype: FP32, dims: [4]}}}}
phases:
  - phase: loads
    cycles: 100000
    each: [{{load: ident}}, {{wait: 20ms}}, {{unload: ident}}]
check: [server_alive, expectations]
"""
HUNGRY = """\
scenario: hungry
seed: 1
target: [{{docker: {{image: "{image}", memory: 400MiB}}}}]
models:
  ident:
    template: identity
    variant: planted
    parameters: {{datatype: FP32, dims: [4], plant: [{{what: host_bytes, bytes: 600MiB}}]}}
phases:
  - phase: one
    steps: [{{load: ident}}]
check: [server_alive]
"""


STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def nothing_stays(engine: str, tmp_path: Path) -> Iterator[None]:
    with unchanged(tmp_path):
        yield
        while STARTED:
            end(STARTED.pop())


def end(run: subprocess.Popen[str]) -> None:
    """End a run that a failed test did not end; a second interrupt lets nothing wait."""
    for _ in range(2):
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            wait_for(lambda: run.poll() is not None, 15)


def start(folder: Path, image: str, network: str) -> tuple[subprocess.Popen[str], str]:
    """Start a run that goes on for ever; return it once its server's container runs, with that one's name."""
    file = folder / "goes-on.yaml"
    file.write_text(FOREVER.format(image=image, network=network))
    run = subprocess.Popen(
        [sys.executable, "-m", "tritonchaos", "run", file, "--out", folder / "run"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    STARTED.append(run)
    assert wait_for(lambda: cycles(folder) > 3 or run.poll() is not None, 60)
    assert run.poll() is None, run.communicate()[0]
    return run, server_of(run.pid)


def cycles(folder: Path) -> int:
    log = folder / "run" / "server.log"
    return log.read_text(errors="replace").count("successfully loaded") if log.exists() else 0


def server_of(pid: int) -> str:
    """Name of the container that the server of a run is in."""
    with closing(docker.from_env().api) as api:
        found = api.containers(filters={"label": "tritonchaos.role=server"})
    return next(one["Names"][0].lstrip("/") for one in found if f"/{pid}/" in one["Labels"]["tritonchaos.owner"])


def test_a_server_that_runs_out_of_memory_has_crashed_of_it(tmp_path: Path, cpu_image: str) -> None:
    called = run_scenario(HUNGRY.format(image=cpu_image), tmp_path)
    assert called.exit_code == 1, called.shown()
    assert called.kinds() == {"crash"}
    assert "SIGKILL" in called.findings("crash")[0]["title"]
    assert "at the container's memory limit" in called.findings("crash")[0]["title"]


def test_reaching_the_limit_of_processes_is_our_error_and_no_finding(tmp_path: Path, cpu_image: str) -> None:
    text = HUNGRY.format(image=cpu_image).replace("what: host_bytes, bytes: 600MiB", "what: threads, count: 5000")
    called = run_scenario(text.replace("memory: 400MiB", "memory: 4GiB"), tmp_path)
    assert called.exit_code == 3, called.shown()
    assert "reached its limit of 4096 processes and threads" in called.stderr


@pytest.mark.parametrize("network", ["publish", "none"])
def test_a_container_killed_from_outside_is_a_crash(tmp_path: Path, cpu_image: str, network: str) -> None:
    run, name = start(tmp_path, cpu_image, network)
    with closing(docker.from_env().api) as api:
        api.kill(name)
    assert wait_for(lambda: cycles(tmp_path) > 0 and restarted(tmp_path), 60)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=120)
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert {finding["kind"] for finding in results["findings"]} == {"crash"}, output
    assert run.returncode == 1, output


def restarted(folder: Path) -> bool:
    return (folder / "run" / "server.log").read_text(errors="replace").count("Started HTTPService") == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, cpu_image: str, number: signal.Signals) -> None:
    run, _ = start(tmp_path, cpu_image, "none")
    run.send_signal(number)
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 130, output


def test_what_a_killed_run_leaves_is_told_and_cleaned(tmp_path: Path, cpu_image: str) -> None:
    before = on_engine()
    run, name = start(tmp_path, cpu_image, "none")
    assert tritonchaos("clean", "--dry-run", "--runs", tmp_path, cwd=tmp_path).stdout.count("container") == 0
    run.kill()
    run.communicate()
    left = on_engine() - before
    assert len(left) == 2, left  # the server and its relay
    beside = tmp_path / "beside"
    beside.mkdir()
    told = run_scenario(HUNGRY.format(image=cpu_image), beside)
    assert f"a killed run left the container {name}" in told.stderr
    cleaned = tritonchaos("clean", "--yes", "--runs", tmp_path, cwd=tmp_path)
    assert name in cleaned.stdout
    assert on_engine() - before == set()


def test_clean_touches_nothing_that_is_not_ours(tmp_path: Path, cpu_image: str) -> None:
    with closing(docker.from_env().api) as api:
        made = api.create_container(cpu_image, ["sleep", "60"], name=f"somebodys-{os.getpid()}", labels={"a": "b"})
        try:
            tritonchaos("clean", "--yes", "--runs", tmp_path, cwd=tmp_path)
            assert api.inspect_container(made["Id"])["State"]["Status"] == "created"
        finally:
            api.remove_container(made["Id"], force=True)


def test_two_runs_at_once_do_not_meet(tmp_path: Path, cpu_image: str) -> None:
    runs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        runs.append(start(tmp_path / name, cpu_image, "none"))
    (first, one), (second, two) = runs
    assert one != two
    first.send_signal(signal.SIGINT)
    assert first.communicate(timeout=120)[0]
    seen = cycles(tmp_path / "two")
    assert wait_for(lambda: cycles(tmp_path / "two") > seen)
    second.send_signal(signal.SIGINT)
    output, _ = second.communicate(timeout=120)
    assert (first.returncode, second.returncode) == (130, 130), output
