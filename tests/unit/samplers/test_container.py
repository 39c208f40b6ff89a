"""Memory of a container, read from cgroup folders as both versions of cgroups lay them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonchaos.containers.outside import times_at_pids_limit
from tritonchaos.plugins import Group, SampleScope
from tritonchaos.samplers.container import ContainerSampler


@pytest.mark.parametrize(
    ("controller", "file"), [("", "memory.current"), ("memory", "memory.usage_in_bytes")], ids=["v2", "v1"]
)
def test_what_the_cgroup_counts_is_read(tmp_path: Path, controller: str, file: str) -> None:
    (tmp_path / file).write_text("73728\n")
    sampler = ContainerSampler()
    assert sampler.open(SampleScope(1, cgroups={controller: tmp_path})) == {}
    assert sampler.read(Group.ALL) == {"container_memory_bytes": 73728}
    assert sampler.read(Group.FAST) == {}


def test_a_server_in_no_container_has_none() -> None:
    sampler = ContainerSampler()
    assert sampler.open(SampleScope(1)) == {}
    assert sampler.read(Group.ALL) == {}
    assert sampler.quanta() == {}


def test_a_container_that_has_gone_is_absent_and_not_zero(tmp_path: Path) -> None:
    file = tmp_path / "memory.current"
    file.write_text("73728\n")
    sampler = ContainerSampler()
    sampler.open(SampleScope(1, cgroups={"": tmp_path}))
    file.unlink()
    assert sampler.read(Group.ALL) == {}


@pytest.mark.parametrize(("told", "times"), [("max 0\n", 0), ("max 3\n", 3), ("", 0)])
def test_processes_that_were_refused_are_counted(tmp_path: Path, told: str, times: int) -> None:
    (tmp_path / "pids.events").write_text(told)
    assert times_at_pids_limit({"pids": tmp_path}) == times
    assert times_at_pids_limit({}) == 0
