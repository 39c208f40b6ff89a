"""How the target `local` spells its flags, and what it says without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local_server import new_launch
from tritonchaos.errors import TargetNotLive, TargetUnavailable
from tritonchaos.plugins import TARGETS
from tritonchaos.targets.local import LocalTarget

HELP = """#!/bin/sh
if [ "$1" = --help ]; then
  for flag in model-repository http-port backend-config log-verbose; do echo "  --$flag <value>"; done
  echo '  --disable-auto-complete-config'
  exit 1
fi
printf '%s\\n' "$@"
exit 3
"""


def fake_server(folder: Path) -> Path:
    """A program that answers --help as tritonserver does, else prints its arguments and ends."""
    (folder / "bin").mkdir(parents=True)
    binary = folder / "bin" / "tritonserver"
    binary.write_text(HELP)
    binary.chmod(0o755)
    return binary


def arguments_given(tmp_path: Path, flags: dict[str, str | int | float | bool]) -> list[str]:
    (tmp_path / "run").mkdir()
    launch = new_launch(tmp_path / "run", flags)
    target = LocalTarget(server_path=fake_server(tmp_path / "server"))
    with pytest.raises(TargetNotLive) as caught:
        target.start(launch)
    assert caught.value.exit_status == 3
    assert target.exit_code() == 3
    return launch.log_file.read_text().splitlines()


def test_it_is_registered_by_name() -> None:
    assert TARGETS["local"] is LocalTarget
    assert "tritonserver" in TARGETS.help("local")


def test_our_flags_are_given(tmp_path: Path) -> None:
    given = arguments_given(tmp_path, {})
    assert f"--model-repository={tmp_path / 'run' / 'repository'}" in given
    assert f"--backend-directory={tmp_path / 'run' / 'scratch' / 'backends'}" in given
    assert {
        "--model-control-mode=explicit",
        "--http-address=127.0.0.1",
        "--grpc-address=127.0.0.1",
        "--allow-metrics=false",
        "--exit-timeout-secs=10",
    } <= set(given)


def test_flags_that_were_asked_for_win(tmp_path: Path) -> None:
    given = arguments_given(tmp_path, {"http-port": 8123, "log-verbose": 2})
    assert [flag for flag in given if flag.startswith("--http-port")] == ["--http-port=8123"]
    assert "--log-verbose=2" in given


@pytest.mark.parametrize(("value", "count"), [(True, 1), (False, 0)])
def test_a_flag_without_a_value_is_bare_or_absent(tmp_path: Path, value: bool, count: int) -> None:
    given = arguments_given(tmp_path, {"disable-auto-complete-config": value})
    assert [flag for flag in given if "auto-complete" in flag] == ["--disable-auto-complete-config"] * count


def test_a_backend_config_is_added_to_ours(tmp_path: Path) -> None:
    given = arguments_given(tmp_path, {"backend-config": "python,stub-timeout-seconds=5"})
    configs = [flag for flag in given if flag.startswith("--backend-config=")]
    assert configs[1:] == ["--backend-config=python,stub-timeout-seconds=5"]
    assert configs[0].startswith("--backend-config=python,shm-region-prefix-name=tc_test_")


def test_a_path_that_is_no_server_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(TargetUnavailable, match="does not exist"):
        LocalTarget(server_path=tmp_path / "absent").check()
