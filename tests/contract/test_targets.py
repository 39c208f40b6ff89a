"""What every target must do, whatever it starts a tritonserver with."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.local_server import new_launch, start_local_server, wait_for
from tritonchaos import processes
from tritonchaos.client import TritonClient, parse_index
from tritonchaos.errors import TargetNotLive, TargetUnavailable
from tritonchaos.observations import Answer, NoAnswer
from tritonchaos.plugins import ABILITIES, TARGETS, LaunchSpec, Target, abilities_of, load_plugins

pytestmark = pytest.mark.server

load_plugins()


# What a target of the same class is called where it is tried in more than one way.
IN_A_CLOSED_CONTAINER = "docker, nothing published"
ENGINE = os.environ.get("TRITONCHAOS_TEST_ENGINE")
IN_A_CONTAINER = {"image": "tritonchaos/tritonserver-cpu:2.51", "pull": "never", "engine": ENGINE}


@pytest.fixture(scope="module")
def fields(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """Target -> fields that it cannot do without: a server that is up, for those that start none."""
    server = start_local_server(tmp_path_factory.mktemp("up"))
    closed = {**IN_A_CONTAINER, "network": "none"}
    yield {"remote": {"url": server.running.url}, "docker": IN_A_CONTAINER, IN_A_CLOSED_CONTAINER: closed}
    server.stop()


@pytest.fixture(params=[*TARGETS.names(), IN_A_CLOSED_CONTAINER])
def target(request: pytest.FixtureRequest, fields: dict[str, dict[str, Any]]) -> Iterator[Target]:
    """Each registered target that can be used here; it is stopped in any case."""
    name = request.param.partition(",")[0]
    if name == "docker" and ENGINE is None:
        pytest.skip("docker: $TRITONCHAOS_TEST_ENGINE names no engine")
    try:
        made: Target = TARGETS[name](**fields.get(request.param, {}))
        made.check()
    except (TargetUnavailable, TypeError) as reason:
        pytest.skip(f"{request.param}: {reason}")
    yield made
    made.stop()


@pytest.fixture
def starting(target: Target) -> Target:
    """Those that start and stop their server."""
    lacks = {"start", "stop", "log"} - abilities_of(target)
    if lacks:
        pytest.skip(f"{target.name} lacks: {', '.join(sorted(lacks))}")
    return target


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


def test_a_started_server_is_live_and_its_log_is_written(starting: Target, launch: LaunchSpec) -> None:
    live = asked(starting, launch, lambda client: client.live(10))
    assert isinstance(live, Answer)
    assert live.status == 200
    assert starting.exit_code() is None
    assert b"tritonserver" in launch.log_file.read_bytes().lower()


def test_its_abilities_are_known_names(target: Target) -> None:
    assert abilities_of(target) <= set(ABILITIES)


def test_the_index_of_an_empty_repository_is_empty(target: Target, launch: LaunchSpec) -> None:
    assert parse_index(asked(target, launch, lambda client: client.index(10))) == ()


def test_stop_ends_it_unforced_and_a_second_stop_is_harmless(starting: Target, launch: LaunchSpec) -> None:
    running = starting.start(launch)
    stop = starting.stop()
    assert (stop.signal, stop.exit_code, stop.forced, stop.left) == ("SIGTERM", 0, False, ())
    assert starting.exit_code() == 0
    assert isinstance(TritonClient(running.url).live(5), NoAnswer)
    again = starting.stop()
    assert (again.signal, again.forced) == ("", False)


def test_stop_before_any_start_is_harmless(target: Target) -> None:
    assert target.exit_code() is None
    assert target.stop().signal == ""


def test_a_stopped_target_starts_again_and_appends_to_the_log(starting: Target, launch: LaunchSpec) -> None:
    starting.start(launch)
    starting.stop()
    first = launch.log_file.read_bytes()
    live = asked(starting, launch, lambda client: client.live(10))
    assert isinstance(live, Answer)
    assert launch.log_file.read_bytes().startswith(first)


def test_a_server_that_ends_at_once_is_not_live(starting: Target, launch: LaunchSpec) -> None:
    with pytest.raises(TargetNotLive) as caught:
        starting.start(replace(launch, flags={"model-repository": "/no/such/folder"}))
    assert caught.value.state == "exited"
    assert caught.value.exit_status not in {0, None}
    assert any("/no/such/folder" in line for line in caught.value.log_lines)
    assert starting.exit_code() == caught.value.exit_status


def test_a_crash_is_an_exit_code(starting: Target, launch: LaunchSpec) -> None:
    running = starting.start(launch)
    if running.pid is None:
        pytest.skip("this target does not know the process")
    ticks = processes.start_ticks(running.pid)
    assert ticks is not None
    assert processes.end(running.pid, ticks, signal.SIGKILL)
    assert wait_for(lambda: starting.exit_code() is not None)
    assert starting.exit_code() == -signal.SIGKILL
    assert starting.stop().signal == ""
