"""tritonchaos in a container of its own, against the engine of the machine, as docs/docker.md describes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.long]

ROOT = Path(__file__).parents[2]
BASE = "tritonchaos/debian:bookworm"
IMAGE = "tritonchaos/tritonchaos:latest"
OTHER = 12345


@pytest.fixture(scope="module")
def image(engine_url: str) -> Iterator[str]:
    """The image, built of this checkout without any network but pip's."""
    command = [str(ROOT / "docker" / "build.sh"), "tritonchaos", "--base", BASE]
    env = {"DOCKER_HOST": engine_url, "PIP": f"{sys.executable} -m pip"}
    subprocess.run(command, env={**os.environ, **env}, check=True, timeout=280)
    yield IMAGE


@pytest.mark.parametrize("network", ["none", "publish"])
def test_a_run_from_inside_gives_the_verdict_and_leaves_only_the_callers_files(
    image: str, engine: str, cpu_image: str, tmp_path: Path, network: str
) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)  # the other user must reach it
    runs = tmp_path / "runs"
    runs.mkdir()
    os.chown(runs, OTHER, OTHER)
    socket = Path(engine.removeprefix("unix://"))
    command = [
        *("docker", "run", "--rm", "--network", "host", "--pid", "host"),
        *("--user", f"{OTHER}:{OTHER}", "--group-add", str(socket.stat().st_gid)),
        *("--volume", f"{socket}:/var/run/docker.sock", "--volume", f"{runs}:{runs}", "--workdir", str(runs)),
        *("--env", f"TRITONCHAOS_CACHE={runs}/.cache", "--env", f"TMPDIR={runs}", "--env", f"HOME={runs}"),
        *(image, "run", "failed-load", "--image", cpu_image, "--set", f"target.network={network}", "--json"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stderr
    results = json.loads(ran.stdout)
    assert (results["verdict"], results["target"]["container_network"]) == ("pass", network)
    assert {file.stat(follow_symlinks=False).st_uid for file in runs.rglob("*")} == {OTHER}
