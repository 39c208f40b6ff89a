"""What is read of a container's cgroups, laid out as both versions of cgroups do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tritonchaos.containers.cgroups import MemoryCount, PidsLimit, find_cgroups


def test_cgroups_of_a_process_are_folders() -> None:
    found = find_cgroups(os.getpid())
    assert all(folder.is_dir() for folder in found.values())
    assert find_cgroups(2**22 + 1) == {}


@pytest.mark.parametrize("controller", ["pids", ""], ids=["v1", "v2"])
def test_processes_that_were_refused_are_counted_as_they_come(tmp_path: Path, controller: str) -> None:
    file = tmp_path / "pids.events"
    file.write_text("max 0\n")
    limit = PidsLimit({controller: tmp_path})
    assert limit.times_reached() == 0
    file.write_text("max 3\n")
    assert limit.times_reached() == 3
    limit.close()
    limit.close()
    assert limit.times_reached() == 0


@pytest.mark.parametrize("told", ["", "low 1\n"])
def test_a_limit_that_tells_nothing_was_not_reached(tmp_path: Path, told: str) -> None:
    (tmp_path / "pids.events").write_text(told)
    limit = PidsLimit({"pids": tmp_path, "": tmp_path / "absent"})
    assert limit.times_reached() == 0
    limit.close()


def test_memory_is_read_where_it_is_counted(tmp_path: Path) -> None:
    """With both versions mounted, one has the processes and the other the memory."""
    v1 = tmp_path / "memory"
    v1.mkdir()
    (v1 / "memory.usage_in_bytes").write_text("4096\n")
    count = MemoryCount({"": tmp_path, "memory": v1})
    assert count.bytes() == 4096
    (v1 / "memory.usage_in_bytes").write_text("8192\n")
    assert count.bytes() == 8192
    count.close()
    assert count.bytes() is None


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_no_file_stays_open(tmp_path: Path) -> None:
    (tmp_path / "memory.current").write_text("nothing known\n")
    (tmp_path / "pids.events").write_text("max 0\n")
    before = open_files()
    count, limit = MemoryCount({"": tmp_path}), PidsLimit({"": tmp_path})
    assert count.bytes() is None
    count.close()
    limit.close()
    assert open_files() == before
