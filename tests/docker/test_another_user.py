"""A whole set of runs as another user of the group docker: every file of the run folder is that user's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docker.engine_state import unchanged

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can run as another user"),
]

UID = 12345
ROOT = Path(__file__).resolve().parents[2]
# Exit code and kinds of the findings of each, as on the local target.
EXPECTED = {
    "failed-load": (0, set()),
    "planted-leak": (1, {"leak"}),
    "good-load": (0, set()),
    "failed-reload": (1, {"will_not_stop"}),
}


@pytest.fixture
def users_folder(engine: str) -> Iterator[Path]:
    """A folder of the user, below one that everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="tc-uid-") as name:
        os.chown(name, UID, UID)
        with unchanged(Path(name)):
            yield Path(name)


def as_user(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Call the command line as the user, in a folder that is its home."""
    import grp

    try:
        group = grp.getgrnam("docker").gr_gid
    except KeyError:
        pytest.skip("this machine has no group docker")
    user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", f"--groups={group}"]
    # Only so that a Python below root's home can be read.
    user += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"HOME": str(folder), "PYTHONPATH": path, "TRITONCHAOS_CACHE": str(folder / "cache")}
    return subprocess.run(
        [*user, sys.executable, "-m", "tritonchaos", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, **own},
    )


def test_another_user_of_the_group_docker_runs_a_set_and_owns_every_file_of_it(
    cpu_image: str, users_folder: Path
) -> None:
    done = as_user(users_folder, "run", *EXPECTED, "--image", cpu_image, "--out", users_folder / "runs")
    assert done.returncode == 1, done.stdout + done.stderr
    table = json.loads((users_folder / "runs" / "set.json").read_text())
    assert {one["scenario"]: one["exit_code"] for one in table["runs"]} == {
        name: exit_code for name, (exit_code, _) in EXPECTED.items()
    }, done.stdout + done.stderr
    for name, (_, kinds) in EXPECTED.items():
        results = results_of(users_folder, name)
        assert {finding["kind"] for finding in results["findings"]} == kinds, name
        assert results["target"]["container_user"] == f"{UID}:{UID}"
        assert "in a container of the image" in results["target"]["compiled"]
    # The container's processes are seen as those of the user, so that what is read of them is judged.
    passed = {
        one["metric"] for one in results_of(users_folder, "failed-load")["assessments"] if one["status"] == "pass"
    }
    assert {"host_private_bytes", "server_fds", "shm_bytes", "temp_bytes"} <= passed
    assert owners(users_folder) == {(UID, UID)}


def results_of(folder: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "runs" / name / "results.json").read_text())
    return read


def owners(folder: Path) -> set[tuple[int, int]]:
    found = (path.lstat() for path in [folder, *folder.rglob("*")])
    return {(file.st_uid, file.st_gid) for file in found}
