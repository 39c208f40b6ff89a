"""Memory of a container, read from cgroup folders as both versions of cgroups lay them out."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    file.write_text("")  # a cgroup's file tells nothing once the cgroup is gone
    assert sampler.read(Group.ALL) == {}
