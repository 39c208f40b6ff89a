"""The CPU-only tritonserver image has the official layout and serves."""

from __future__ import annotations

import time
from collections.abc import Iterator

import docker
import pytest
from docker.models.containers import Container

pytestmark = pytest.mark.docker

PROGRAM = "import json,sys,urllib.request as u;print(json.load(u.urlopen('http://127.0.0.1:8000/v2'))['version'])"
LAYOUT = """cd /opt/tritonserver && test -x bin/tritonserver && test -x backends/python/triton_python_backend_stub
ls lib/libtritonserver*.so && cat TRITON_VERSION"""


@pytest.fixture
def client(engine: str) -> Iterator[docker.DockerClient]:
    opened = docker.from_env()
    yield opened
    opened.close()


def test_the_image_has_the_official_layout(client: docker.DockerClient, cpu_image: str) -> None:
    told = client.containers.run(cpu_image, ["sh", "-c", f"set -e; {LAYOUT}"], remove=True)
    assert told.decode().splitlines()[-1] == "2.51.0"


def test_its_server_answers_as_another_user_without_network(client: docker.DockerClient, cpu_image: str) -> None:
    command = ["tritonserver", "--model-repository=/tmp", "--model-control-mode=explicit"]
    rights = {"user": "12345:12345", "read_only": True, "tmpfs": {"/tmp": ""}, "cap_drop": ["ALL"], "init": True}
    container = client.containers.run(cpu_image, command, detach=True, network_mode="none", **rights)
    try:
        assert version_of(container) == "2.51.0"
    finally:
        container.remove(force=True)


def version_of(container: Container) -> str:
    """Ask the server in a container for its version, from inside; it may still be starting."""
    deadline = time.monotonic() + 60
    while True:
        status, told = container.exec_run(["python3", "-c", PROGRAM])
        if status == 0 or time.monotonic() > deadline:
            assert status == 0, f"{told.decode()}\n{container.logs().decode()}"
            return told.decode().strip()
        time.sleep(0.2)
