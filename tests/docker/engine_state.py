"""What is on an engine, to see that a test leaves it as it was."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import docker

from tests.server.cli import tritonchaos

# Others may use the engine of the tests for a moment too, such as to look into an image.
_PATIENCE_S = 10.0


def on_engine() -> set[str]:
    """Containers, networks and volumes of the engine that $DOCKER_HOST names."""
    with closing(docker.from_env().api) as api:
        containers = {f"container {one['Id'][:12]} {one['Names'][0]}" for one in api.containers(all=True)}
        networks = {f"network {one['Name']}" for one in api.networks()}
        volumes = {f"volume {one['Name']}" for one in api.volumes()["Volumes"] or ()}
    return containers | networks | volumes


def ours() -> list[dict[str, str]]:
    """Labels of the containers that tritonchaos made, running or not."""
    with closing(docker.from_env().api) as api:
        return [one["Labels"] for one in api.containers(all=True, filters={"label": "tritonchaos.run"})]


@contextmanager
def unchanged(runs: Path) -> Iterator[None]:
    """See that a test leaves nothing on the engine, and no run below a folder anything on this machine."""
    before = on_engine()
    yield
    end = time.monotonic() + _PATIENCE_S
    new = on_engine() - before
    while new and time.monotonic() < end:
        time.sleep(0.2)
        new = on_engine() - before
    assert not new, new
    left = tritonchaos("clean", "--dry-run", "--runs", runs, cwd=runs)
    assert left.stdout.strip() == "nothing was left behind", left.stdout
