"""The `docker run` line that is printed starts a container equal to the one that the target starts."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.docker.engine_state import unchanged
from tests.local_server import new_launch
from tests.server.cli import tritonchaos
from tritonchaos.targets.docker import DockerTarget

pytestmark = pytest.mark.docker

# What belongs to one container: its name and id, when it was, whether someone is attached, and its own ports.
OF_ONE = {"Id", "Name", "Created", "State", "LogPath", "HostnamePath", "HostsPath", "ResolvConfPath", "GraphDriver"}
OF_ONE |= {"NetworkSettings", "Hostname", "AttachStdout", "AttachStderr", "AttachStdin", "StdinOnce", "ConsoleSize"}


@pytest.fixture(autouse=True)
def nothing_stays(engine: str, tmp_path: Path) -> Iterator[None]:
    with unchanged(tmp_path):
        yield


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True, timeout=60).stdout


def comparable(name: str) -> Any:
    found = json.loads(docker("inspect", name))[0]
    assert found["State"]["Running"]
    found["Config"]["Env"].sort()
    found["Mounts"].sort(key=lambda mount: mount["Destination"])
    text = json.dumps(_without(found, OF_ONE))
    text = re.sub(r'"tritonchaos-[0-9a-f]{32}|--id=tritonchaos-[0-9a-f]{32}', "ID", text)
    return json.loads(re.sub(r'"HostPort": "\d+"', '"HostPort": "PORT"', text))


def _without(value: Any, keys: set[str]) -> Any:
    """Empty and absent are the same to the engine."""
    if isinstance(value, dict):
        kept = {key: _without(one, keys) for key, one in value.items() if key not in keys}
        return {key: one for key, one in kept.items() if one not in (None, "", [], {}, False, 0)}
    return [_without(one, keys) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("network", ["publish", "none"])
def test_the_line_starts_an_equal_container(tmp_path: Path, cpu_image: str, network: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    target = DockerTarget(
        cpu_image, network=network, memory=2 << 30, mounts=(f"{data}:/data:rw",), cap_add=("SYS_PTRACE",)
    )
    launch = replace(new_launch(tmp_path), ulimits={"nofile": 5000})
    target.start(launch)
    line = shlex.split(target.run_line(launch))
    line = [part.replace("-server-1", "-by-hand") for part in line]
    try:
        ours = comparable(line[line.index("--name") + 1].replace("-by-hand", "-server-1"))
        docker("run", "--detach", *line[2:])
        theirs = comparable(line[line.index("--name") + 1])
    finally:
        docker("rm", "--force", line[line.index("--name") + 1])
        target.stop()
    assert theirs == ours
    assert ours["HostConfig"]["CapDrop"] == ["ALL"]
    assert ours["HostConfig"]["ReadonlyRootfs"] is True


def test_a_dry_run_prints_it_and_starts_nothing(tmp_path: Path, cpu_image: str) -> None:
    asked = ["run", "failed-load", "--image", cpu_image, "--out", tmp_path / "run", "--dry-run", "--verbose"]
    done = tritonchaos(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    line = shlex.split(done.stdout.splitlines()[-1])
    assert line[:2] == ["docker", "run"]
    assert {"--network=none", "--read-only", "--cap-drop=ALL", "--disable-auto-complete-config"} <= set(line)
    assert not (tmp_path / "run").exists()
