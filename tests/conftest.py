"""Shared fixtures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.local_server import LocalServer, start_local_server

# In CI the same examples each time, however slow the machine is: a red run must mean a defect. At home they vary, and
# there are twice as many.
settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile(
    "home", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
settings.load_profile("ci" if os.environ.get("CI") else "home")


@pytest.fixture
def local_server(tmp_path: Path) -> Iterator[LocalServer]:
    """A real tritonserver with an empty model repository, of this test alone; skipped where there is none."""
    folder = tmp_path / "server"
    folder.mkdir()
    server = start_local_server(folder)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """One real tritonserver for all tests of a module; each uses a model name of its own and leaves it healthy."""
    server = start_local_server(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()
