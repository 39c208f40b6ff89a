"""The Docker engine of the tests: only one that was started for them, never one that a person uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import pytest

from tritonchaos.errors import TargetUnavailable
from tritonchaos.local_server.installation import find_installation

CPU_IMAGE: Final = "tritonchaos/tritonserver-cpu:2.51"
_ENGINE: Final = "TRITONCHAOS_TEST_ENGINE"
_WHY_NOT: Final = "TRITONCHAOS_TEST_NO_ENGINE"
_HOW: Final = "tests/docker/engine.sh start FOLDER, then images FOLDER, and its env FOLDER gives the variable"


@pytest.fixture(scope="session")
def engine_url() -> str:
    """Where the engine of the tests listens, such as "unix:///tmp/engine/docker.sock"; skipped where there is none."""
    url = os.environ.get(_ENGINE, "")
    if not url:
        pytest.skip(os.environ.get(_WHY_NOT) or f"${_ENGINE} names no Docker engine ({_HOW})")
    return url


@pytest.fixture
def engine(engine_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The engine of the tests, to which $DOCKER_HOST leads while a test runs; gives its URL."""
    monkeypatch.setenv("DOCKER_HOST", engine_url)
    yield engine_url


@pytest.fixture
def cpu_image(engine: str) -> str:
    """Tag of the CPU-only tritonserver image in the engine of the tests."""
    return CPU_IMAGE


@pytest.fixture
def server_here() -> None:
    """Skip a test that compares with the target `local` where that has no tritonserver."""
    try:
        find_installation(None)
    except TargetUnavailable as error:
        pytest.skip(error.message)
