"""`tritonchaos doctor` beside a real engine."""

from __future__ import annotations

import os

import docker as sdk
import pytest

from tritonchaos.doctor.check import Check
from tritonchaos.doctor.containers import docker

pytestmark = pytest.mark.docker


@pytest.fixture
def checks(engine: str, cpu_image: str) -> dict[str, Check]:
    return {check.name: check for check in docker(os.environ, try_container=True)}


def test_it_says_what_the_engine_is_and_has(checks: dict[str, Check], engine: str, cpu_image: str) -> None:
    assert checks["Docker"].ok
    for part in ("Docker ", "API ", "rootful", "cgroup v", engine, "DOCKER_HOST"):
        assert part in checks["Docker"].found
    assert "built here" in checks[f"image {cpu_image}"].found
    assert "iB" in checks[f"image {cpu_image}"].found
    assert "26.07-py3" in checks["pinned images"].found
    assert "free at" in checks["disk of Docker"].found
    for way in ("toolkit", "cdi", "devices"):
        assert f"{way}: " in checks["GPUs in containers"].found


def test_it_runs_a_container_as_this_user_and_removes_it(checks: dict[str, Check], cpu_image: str) -> None:
    tried = checks["container that was tried"]
    assert tried.ok, tried.found
    assert f"{cpu_image} as user {os.getuid()}, without network" in tried.found
    client = sdk.from_env()
    try:
        assert client.containers.list(all=True, filters={"label": "tritonchaos.role=doctor"}) == []
    finally:
        client.close()


def test_it_starts_nothing_when_told_so(engine: str) -> None:
    names = [check.name for check in docker(os.environ, try_container=False)]
    assert "Docker" in names
    assert "container that was tried" not in names
