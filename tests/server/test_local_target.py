"""The target `local` with a real tritonserver: what it starts, stops, and leaves behind."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.local_server import (
    IDENTITY,
    LocalServer,
    new_launch,
    start_local_server,
    usable_local_target,
    wait_for,
    write_python_model,
)
from tritonchaos import processes
from tritonchaos.errors import TargetNotLive, TritonChaosBug, UsageError
from tritonchaos.observations import Answer
from tritonchaos.processes import Process

pytestmark = pytest.mark.server

SAYS_WHERE = (
    IDENTITY
    + """
    def initialize(self, args):
        import json, os, sys
        told = {"numpy": numpy.__file__, "temp": os.environ["TMPDIR"], "extra": os.environ.get("EXTRA")}
        print("TOLD " + json.dumps(told), flush=True)
"""
)
STUBBORN = (
    IDENTITY
    + """
    def initialize(self, args):
        import subprocess
        self.child = subprocess.Popen(["sleep", "600"], start_new_session=DETACH)
"""
)


def load(server: LocalServer, model: str) -> None:
    reply = server.client.load(model, 30)
    assert isinstance(reply, Answer), reply
    assert reply.status == 200, reply


def roles(server: LocalServer) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for process in server.target.processes():
        found.setdefault(process.role, []).append(process.pid)
    return found


def is_gone(pid: int) -> bool:
    stat = processes.read_stat(pid)
    return stat is None or stat.is_zombie


def test_a_stub_has_numpy_the_temp_folder_and_the_environment(tmp_path: Path) -> None:
    server = start_local_server(tmp_path, env={"EXTRA": "told"})
    try:
        write_python_model(server.launch.repository, "m", SAYS_WHERE)
        load(server, "m")
    finally:
        server.stop()
    line = next(line for line in server.launch.log_file.read_text().splitlines() if "TOLD " in line)
    told = json.loads(line.partition("TOLD ")[2])
    assert told == {"numpy": np.__file__, "temp": str(server.launch.temp), "extra": "told"}


def test_processes_have_roles(local_server: LocalServer) -> None:
    write_python_model(local_server.launch.repository, "m")
    assert local_server.target.processes() == [Process(local_server.pid, "server")]
    load(local_server, "m")
    assert {role: len(pids) for role, pids in roles(local_server).items()} == {"server": 1, "stub": 1}


def test_shared_memory_has_the_prefix_and_goes_with_the_server(local_server: LocalServer) -> None:
    prefix = local_server.launch.shm_prefix
    write_python_model(local_server.launch.repository, "m")
    load(local_server, "m")
    assert processes.shared_memory(prefix) != []
    local_server.client.close()
    assert local_server.target.stop().left == ()
    assert processes.shared_memory(prefix) == []


def test_a_crash_leaves_no_stub_and_no_shared_memory_after_stop(local_server: LocalServer) -> None:
    write_python_model(local_server.launch.repository, "m")
    load(local_server, "m")
    stub = roles(local_server)["stub"][0]
    os.kill(local_server.pid, signal.SIGKILL)
    assert wait_for(lambda: local_server.target.exit_code() is not None)
    stop = local_server.target.stop()
    assert (stop.signal, stop.exit_code) == ("", -signal.SIGKILL)
    assert processes.read_stat(stub) is None
    assert processes.shared_memory(local_server.launch.shm_prefix) == []


@pytest.mark.parametrize("detach", [True, False])
def test_what_a_model_started_is_ended_and_named(local_server: LocalServer, detach: bool) -> None:
    write_python_model(local_server.launch.repository, "m", STUBBORN.replace("DETACH", str(detach)))
    load(local_server, "m")
    child = roles(local_server)["other"][0]
    local_server.client.close()
    stop = local_server.target.stop()
    assert ("process", "sleep", 0) in stop.left
    assert is_gone(child)


def test_a_server_that_cannot_stop_is_killed(tmp_path: Path) -> None:
    server = start_local_server(tmp_path, flags={"exit-timeout-secs": 1})
    write_python_model(server.launch.repository, "hung", code=None)
    reply = server.client.load("hung", 2)
    server.client.close()
    stop = server.target.stop()
    if isinstance(reply, Answer):
        pytest.skip(f"this tritonserver answers: {reply}")
    # Either it gives up by itself, which is exit status 1 and a line in its log, or it must be killed.
    assert stop.forced == (stop.signal == "SIGKILL")
    assert stop.forced or "Exit timeout expired" in server.launch.log_file.read_text()
    assert is_gone(server.pid)
    assert processes.stubs_below(server.launch.scratch) == []


def test_a_stopped_process_is_killed_by_force(tmp_path: Path) -> None:
    server = start_local_server(tmp_path, flags={"exit-timeout-secs": 0})
    server.client.close()
    os.kill(server.pid, signal.SIGSTOP)
    stop = server.target.stop()
    assert (stop.signal, stop.exit_code, stop.forced) == ("SIGKILL", -signal.SIGKILL, True)


def test_a_silent_server_is_not_live_and_is_stopped(tmp_path: Path) -> None:
    target = usable_local_target()
    launch = new_launch(tmp_path)
    write_python_model(launch.repository, "slow", "import time; time.sleep(60)\n" + IDENTITY)
    launch = replace(launch, mode="none", startup_deadline_s=2.0)
    with pytest.raises(TargetNotLive) as caught:
        target.start(launch)
    assert (caught.value.state, caught.value.exit_status) == ("running", None)
    assert caught.value.log_lines
    assert target.exit_code() == -signal.SIGKILL
    assert processes.stubs_below(launch.scratch) == []


def test_an_unknown_flag_is_refused_with_the_nearest_names(tmp_path: Path) -> None:
    target = usable_local_target()
    with pytest.raises(UsageError, match="exit-timeout-secs"):
        target.start(new_launch(tmp_path, {"exit-timeout": 1}))
    assert target.exit_code() is None


def test_flags_and_mode_reach_the_server(tmp_path: Path) -> None:
    flags: dict[str, object] = {"disable-auto-complete-config": True, "log-verbose": 1, "allow-metrics": True}
    server = start_local_server(tmp_path, flags=flags, mode="poll")
    try:
        arguments = processes.command_line(server.pid)
        assert "--disable-auto-complete-config" in arguments
        assert "--log-verbose=1" in arguments
        assert "--allow-metrics=true" in arguments
        assert "--model-control-mode=poll" in arguments
        assert f"--backend-config=python,shm-region-prefix-name={server.launch.shm_prefix}" in arguments
    finally:
        server.stop()


def test_the_server_does_not_share_our_terminal_signals(local_server: LocalServer) -> None:
    assert os.getpgid(local_server.pid) != os.getpgid(0)
    assert os.getsid(local_server.pid) != os.getsid(0)


def test_a_second_start_while_it_runs_is_our_defect(local_server: LocalServer) -> None:
    with pytest.raises(TritonChaosBug, match="while it runs"):
        local_server.target.start(local_server.launch)


def test_a_server_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    target = usable_local_target()
    thread = threading.Thread(target=target.start, args=(new_launch(tmp_path),))
    thread.start()
    thread.join()
    try:
        # A death signal tied to the thread would have come by now.
        assert not wait_for(lambda: target.exit_code() is not None, at_most_s=1)
    finally:
        assert target.stop().exit_code == 0


STARTS_AND_WAITS = """
import sys
from pathlib import Path
from tests.local_server import start_local_server, write_python_model

server = start_local_server(Path(sys.argv[1]))
write_python_model(server.launch.repository, "m")
assert server.client.load("m", 30).status == 200
print(server.launch.shm_prefix, *(process.pid for process in server.target.processes()), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def nobody_reaps() -> Iterator[None]:
    """Orphans become children of this process, which reaps none: as in a container whose first process reaps none."""
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)
    yield
    ctypes.CDLL(None).prctl(set_child_subreaper, 0, 0, 0, 0)


@pytest.fixture
def starter(tmp_path: Path, nobody_reaps: None) -> Iterator[subprocess.Popen[str]]:
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS_AND_WAITS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    yield process
    process.kill()
    process.communicate()


def test_kill_9_of_the_starter_leaves_no_server_and_no_stub(starter: subprocess.Popen[str]) -> None:
    usable_local_target()
    assert starter.stdout is not None
    prefix, *pids = starter.stdout.readline().split()
    assert len(pids) == 2
    starter.kill()
    starter.wait()
    assert wait_for(lambda: all(is_gone(int(pid)) for pid in pids)), [processes.read_stat(int(pid)) for pid in pids]
    # Shared memory outlives processes; `tritonchaos clean` removes it, and here the test does.
    processes.remove_shared_memory(prefix)


# --- trimming ------------------------------------------------------------------------------------

SHOWS_ENVIRONMENT = (
    IDENTITY
    + """
    def initialize(self, args):
        import json, os
        told = [os.environ.get("LD_PRELOAD"), os.environ.get("TRITONCHAOS_TRIM")]
        print("TOLD " + json.dumps(told), flush=True)
"""
)


def test_a_server_that_may_be_trimmed_is_and_its_stubs_do_not_see_how(tmp_path: Path) -> None:
    server = start_local_server(tmp_path, may_trim=True)
    try:
        assert server.target.trim(30.0) == ""
        write_python_model(server.launch.repository, "shows", SHOWS_ENVIRONMENT)
        load(server, "shows")
        told = next(line for line in server.launch.log_file.read_text().splitlines() if "TOLD " in line)
        assert json.loads(told.partition("TOLD ")[2]) == [None, None]
        assert server.target.trim(30.0) == ""
        assert "preloaded" in server.target.describe()["malloc_trim"]
    finally:
        server.stop()
    assert "no server runs" in server.target.trim(1.0)


def test_a_server_is_left_alone_unless_it_may_be_trimmed(tmp_path: Path) -> None:
    server = start_local_server(tmp_path)
    try:
        assert "trimmer" not in Path(f"/proc/{server.pid}/maps").read_text()
        assert "not prepared" in server.target.trim(1.0)
        assert "malloc_trim" not in server.target.describe()
    finally:
        server.stop()
