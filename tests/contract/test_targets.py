"""What every target must do, whatever it starts a tritonserver with."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.local_server import new_launch, wait_for
from tritonchaos import processes
from tritonchaos.client import TritonClient, parse_index
from tritonchaos.errors import TargetNotLive, TargetUnavailable
from tritonchaos.observations import Answer, NoAnswer
from tritonchaos.plugins import TARGETS, LaunchSpec, Target, load_plugins

pytestmark = pytest.mark.server

load_plugins()


@pytest.fixture(params=TARGETS.names())
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Each registered target that can be used here without parameters; it is stopped in any case."""
    try:
        made: Target = TARGETS[request.param]()
        made.check()
    except (TargetUnavailable, TypeError) as reason:
        pytest.skip(f"{request.param}: {reason}")
    yield made
    made.stop()


@pytest.fixture
def launch(tmp_path: Path) -> LaunchSpec:
    return new_launch(tmp_path)


def asked(target: Target, launch: LaunchSpec, ask: Callable[[TritonClient], Any]) -> Any:
    """Start, ask one thing, close the connection."""
    running = target.start(launch)
    client = TritonClient(running.url, running.grpc)
    try:
        return ask(client)
    finally:
        client.close()


def test_it_describes_itself_before_and_after_a_start(target: Target, launch: LaunchSpec) -> None:
    assert target.describe()["target"] == target.name
    target.start(launch)
    assert target.describe()["triton_version"][0].isdigit()


def test_a_started_server_is_live_and_its_log_is_written(target: Target, launch: LaunchSpec) -> None:
    live = asked(target, launch, lambda client: client.live(10))
    assert isinstance(live, Answer)
    assert live.status == 200
    assert target.exit_code() is None
    assert b"tritonserver" in launch.log_file.read_bytes().lower()


def test_the_index_of_an_empty_repository_is_empty(target: Target, launch: LaunchSpec) -> None:
    assert parse_index(asked(target, launch, lambda client: client.index(10))) == ()


def test_stop_ends_it_unforced_and_a_second_stop_is_harmless(target: Target, launch: LaunchSpec) -> None:
    running = target.start(launch)
    stop = target.stop()
    assert (stop.signal, stop.exit_code, stop.forced, stop.left) == ("SIGTERM", 0, False, ())
    assert target.exit_code() == 0
    assert isinstance(TritonClient(running.url).live(5), NoAnswer)
    again = target.stop()
    assert (again.signal, again.forced) == ("", False)


def test_stop_before_any_start_is_harmless(target: Target) -> None:
    assert target.exit_code() is None
    assert target.stop().signal == ""


def test_a_stopped_target_starts_again_and_appends_to_the_log(target: Target, launch: LaunchSpec) -> None:
    target.start(launch)
    target.stop()
    first = launch.log_file.read_bytes()
    live = asked(target, launch, lambda client: client.live(10))
    assert isinstance(live, Answer)
    assert launch.log_file.read_bytes().startswith(first)


def test_a_server_that_ends_at_once_is_not_live(target: Target, launch: LaunchSpec) -> None:
    with pytest.raises(TargetNotLive) as caught:
        target.start(replace(launch, flags={"model-repository": "/no/such/folder"}))
    assert caught.value.state == "exited"
    assert caught.value.exit_status not in {0, None}
    assert any("/no/such/folder" in line for line in caught.value.log_lines)
    assert target.exit_code() == caught.value.exit_status


def test_a_crash_is_an_exit_code(target: Target, launch: LaunchSpec) -> None:
    running = target.start(launch)
    if running.pid is None:
        pytest.skip("this target does not know the process")
    ticks = processes.start_ticks(running.pid)
    assert ticks is not None
    assert processes.end(running.pid, ticks, signal.SIGKILL)
    assert wait_for(lambda: target.exit_code() is not None)
    assert target.exit_code() == -signal.SIGKILL
    assert target.stop().signal == ""
