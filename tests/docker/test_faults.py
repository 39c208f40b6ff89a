"""What is done to a running container, and what a server in it then does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docker.engine_state import unchanged
from tests.local_server import new_launch, wait_for, write_python_model
from tests.server.cli import run_scenario
from tritonchaos.client import TritonClient
from tritonchaos.containers.spec import Mount
from tritonchaos.containers.stacks import take_stacks_beside
from tritonchaos.errors import TargetError
from tritonchaos.local_server.stacks import ARGUMENTS, find_debugger
from tritonchaos.observations import Answer, NoAnswer
from tritonchaos.plugins import LaunchSpec, RunningServer
from tritonchaos.targets.docker import DockerTarget

pytestmark = pytest.mark.docker


class Served:
    """A server in a container, with one client."""

    def __init__(self, target: DockerTarget, launch: LaunchSpec) -> None:
        self.target = target
        self.launch = launch
        self.running: RunningServer = target.start(launch)
        self.client = TritonClient(self.running.url, self.running.grpc)

    def is_live(self, deadline_s: float = 10) -> bool:
        live = self.client.live(deadline_s)
        return isinstance(live, Answer) and live.status == 200

    def stop(self) -> None:
        self.client.close()
        self.target.stop()


@pytest.fixture(params=["publish", "none"])
def served(
    request: pytest.FixtureRequest, engine: str, cpu_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("run")
    with unchanged(folder):
        target = DockerTarget(cpu_image, network=request.param, shm_size=64 << 20, scratch_size=16 << 20)
        server = Served(target, new_launch(folder))
        yield server
        server.stop()


def test_a_paused_server_is_silent_and_then_goes_on(served: Served) -> None:
    assert served.is_live()
    served.target.faults().pause()
    silence = served.client.live(0.3)
    assert isinstance(silence, NoAnswer)
    assert silence.reason == "deadline"
    served.target.faults().unpause()
    assert served.is_live()


def test_a_paused_server_is_stopped_as_any_other(served: Served) -> None:
    served.target.faults().pause()
    stop = served.target.stop()
    assert (stop.signal, stop.exit_code) == ("SIGTERM", 0)


def test_a_server_without_its_network_is_silent_and_then_comes_back(served: Served) -> None:
    assert served.is_live()
    served.target.faults().cut_network()
    assert isinstance(served.client.live(0.3), NoAnswer)
    served.target.faults().join_network()
    assert wait_for(served.is_live)


def test_no_space_for_shared_memory_makes_a_python_load_fail_until_it_is_free(served: Served) -> None:
    write_python_model(served.launch.repository, "ident")
    assert served.target.faults().fill_scratch("shared_memory", 0) == ""
    refused = served.client.load("ident", 60)
    assert isinstance(refused, Answer)
    assert refused.status != 200
    served.target.faults().free_scratch()
    assert served.client.load("ident", 60).status == 200  # type: ignore[union-attr]
    processes = {process.role for process in served.target.processes()}
    assert processes == {"server", "stub"}


def test_scratch_space_is_taken_but_for_what_is_left(served: Served) -> None:
    folder = served.target.own_folders(served.launch).temp
    assert folder is not None
    assert served.target.faults().fill_scratch("temp", 1 << 20) == ""
    assert free_bytes(folder) == 1 << 20
    assert list(folder.iterdir()) == []  # nothing that the server or a reading would see
    served.target.faults().free_scratch()
    assert free_bytes(folder) == 16 << 20


def test_memory_is_limited_while_it_runs(served: Served) -> None:
    assert served.target.faults().limit_memory(2 << 30) == ""
    assert served.is_live()


def free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


STEPS = """\
scenario: faults-of-a-container
seed: 1
target: [{{docker: {{image: "{image}", network: none, shm_size: 64MiB}}}}]
models:
  ident: {{template: identity, variant: python, parameters: {{datatype: FP32, dims: [4]}}}}
phases:
  - phase: faults
    steps:
      - load: ident
      - pause: {{for: 200ms}}
      - infer: ident
      - cut_network: {{for: 200ms}}
      - infer: ident
      - limit_memory: 4GiB
      - unload: ident
      - wait_for: {{model: ident, state: ABSENT}}
      - fill_scratch: {{place: shared_memory}}
      - load: {{model: ident, expect: {{status: 400}}}}
      - free_scratch
      - load: ident
      - unload: ident
check: [server_alive, expectations, hang]
"""


def test_a_scenario_with_each_fault_passes(tmp_path: Path, engine: str, cpu_image: str) -> None:
    with unchanged(tmp_path):
        called = run_scenario(STEPS.format(image=cpu_image), tmp_path)
        assert called.exit_code == 0, called.shown()
        assert called.results["target"]["container_reached"] == "over a relay beside the container"  # which can be cut


LESS_THAN_IT_HAS = """\
scenario: less-than-it-has
seed: 1
target: [{{docker: {{image: "{image}", network: none, shm_size: 64MiB}}}}]
models:
  ident:
    template: identity
    variant: planted
    parameters: {{datatype: FP32, dims: [4], plant: [{{what: host_bytes, bytes: 200MiB}}]}}
phases: [{{phase: one, steps: [{{load: ident}}, {{limit_memory: 64MiB}}, {{wait: 2s}}]}}]
check: [server_alive, expectations]
"""


def test_a_limit_below_what_is_in_use_kills_or_is_refused_and_never_passes(
    tmp_path: Path, engine: str, cpu_image: str
) -> None:
    """With cgroup v1 the kernel refuses it, with v2 it kills; either way a run does not pass as if nothing was."""
    with unchanged(tmp_path):
        called = run_scenario(LESS_THAN_IT_HAS.format(image=cpu_image), tmp_path)
    if "cgroup v1" in called.results["target"]["engine"]:
        assert called.exit_code == 3, called.shown()
        reasons = {one["checker"]: one["reason"] for one in called.results["assessments"]}
        assert "could not limit the container's memory to 64 MiB" in reasons["expectations"]
    else:
        assert called.exit_code == 1, called.shown()
        assert "at the container's memory limit" in called.findings("crash")[0]["title"]


def test_a_target_without_a_container_is_refused_before_it_starts(tmp_path: Path, server_here: None) -> None:
    text = STEPS.format(image="a").replace('{docker: {image: "a", network: none, shm_size: 64MiB}}', "local")
    called = run_scenario(text, tmp_path)
    assert called.exit_code == 4, called.shown()
    assert "lacks: pause" in called.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(find_debugger() is None, reason="neither gdb nor eu-stack is on this machine")
def test_stacks_are_taken_from_outside(served: Served) -> None:
    stacks = served.target.stacks()
    assert list(stacks) == [served.running.pid]
    assert "Thread" in stacks[served.running.pid or 0], stacks


def test_what_a_server_leaves_is_told_and_no_mount_of_ours(tmp_path: Path, engine: str, cpu_image: str) -> None:
    (tmp_path / "file").touch()
    with unchanged(tmp_path):
        target = DockerTarget(cpu_image, mounts=(f"{tmp_path}/file:/tmp/below/file",))
        server = Served(target, replace(new_launch(tmp_path), may_trim=True))
        temp = target.own_folders(server.launch).temp
        assert temp is not None
        (temp / "left").write_bytes(b"x" * 5000)
        assert target.trim(20) == ""
        server.client.close()
        assert server.target.stop().left == (("temp", "left", 8192),)


GDB = r"""#!/bin/sh
for argument; do case "$before" in -p) pid=$argument ;; esac; before=$argument; done
echo "Thread 1 (process $pid)"
echo "#0 in $(tr '\0' ' ' </proc/$pid/cmdline | cut -d' ' -f1) CapEff $(grep CapEff /proc/self/status)"
"""


def test_without_a_debugger_here_that_of_the_image_is_used_in_a_container_beside(
    served: Served, tmp_path: Path
) -> None:
    """The program that stands for gdb says which process it was pointed at, and what it may do."""
    found = served.target._all()
    (tmp_path / "gdb").write_text(GDB)
    (tmp_path / "gdb").chmod(0o755)
    assert served.target._server is not None
    container = served.target._server.container
    spec = replace(container.spec, mounts=(*container.spec.mounts, Mount(str(tmp_path / "gdb"), "/usr/bin/gdb")))
    facts = replace(found.facts, tools=("/usr/bin/gdb",))
    pid = served.running.pid or 0
    stacks = take_stacks_beside(found.engine, facts, spec, container.id, [pid], ARGUMENTS)
    assert "#0 in tritonserver" in stacks[pid], stacks
    assert "0000000000080000" in stacks[pid]  # CAP_SYS_PTRACE, and nothing else
    with pytest.raises(TargetError, match="on this machine or in the image"):
        take_stacks_beside(found.engine, replace(facts, tools=()), spec, container.id, [pid], ARGUMENTS)


def test_an_allocator_of_the_image_is_preloaded(tmp_path: Path, engine: str, cpu_image: str) -> None:
    scenario = """\
scenario: allocators
seed: 1
server: {env: {LD_PRELOAD: libjemalloc.so.2}}
models: {ident: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}}
phases: [{phase: p, cycles: 1, each: [{load: ident}, {wait: 20ms}, {unload: ident}]}]
check: [server_alive, expectations]
"""
    with unchanged(tmp_path):
        called = run_scenario(scenario, tmp_path, "--image", cpu_image)
        assert called.exit_code == 0, called.shown()
        refused = run_scenario(
            scenario.replace("libjemalloc", "libabsent"), tmp_path, "--image", cpu_image, "--out", "b"
        )
        assert refused.exit_code == 2, refused.shown()
        assert "libabsent.so.2" in refused.stderr
