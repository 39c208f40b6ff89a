"""The engine of the tests: two at once do not meet, and one that was stopped leaves nothing but its folder."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.docker

SCRIPT = Path(__file__).with_name("engine.sh")


def call(verb: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(SCRIPT), verb, str(folder)], capture_output=True, text=True, timeout=200)


@pytest.fixture
def folder(engine_url: str) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("an engine needs root")
    # Not pytest's own folder: the paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="tc-engine-", dir="/tmp", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)
        call("stop", Path(temporary))


def bridges() -> set[str]:
    return {path.parent.name for path in Path("/sys/class/net").glob("tc*/bridge")}


def mounts(below: Path) -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if f" {below}/" in line]


def test_a_second_engine_is_apart_from_the_first_and_leaves_nothing(folder: Path, engine_url: str) -> None:
    before = bridges()
    started = call("start", folder)
    assert started.returncode == 0, started.stderr
    pid = int((folder / "dockerd.pid").read_text())
    assert len(bridges() - before) == 1
    assert call("start", folder).returncode == 0  # it runs already
    assert int((folder / "dockerd.pid").read_text()) == pid

    told = call("env", folder).stdout
    assert told.startswith("export TRITONCHAOS_TEST_ENGINE=unix://")
    assert engine_url not in told

    assert call("stop", folder).returncode == 0
    status = Path(f"/proc/{pid}/status")
    assert not status.exists() or "State:\tZ" in status.read_text()
    assert bridges() == before
    assert mounts(folder) == []
    assert call("stop", folder).returncode == 0


def test_images_of_an_engine_that_was_not_started_are_refused(folder: Path) -> None:
    refused = call("images", folder)
    assert refused.returncode == 3
    assert "it was not started" in refused.stderr


def test_a_folder_whose_sockets_would_have_too_long_paths_is_refused(folder: Path) -> None:
    refused = call("start", folder / ("x" * 60))
    assert refused.returncode == 3
    assert "too long for sockets" in refused.stderr


def test_wrong_usage_shows_how(folder: Path) -> None:
    wrong = call("begin", folder)
    assert wrong.returncode == 2
    assert "Usage: tests/docker/engine.sh start FOLDER" in wrong.stderr
