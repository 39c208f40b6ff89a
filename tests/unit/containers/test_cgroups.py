"""What is read of a container's cgroups, laid out as both versions of cgroups do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tritonchaos.containers.cgroups import MemoryCount, MemoryKills, PidsLimit, find_cgroups


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


# As kernel 6.12 and Docker 26.1 laid them out, cgroup v2 alone (cgroup driver systemd, then cgroupfs).
ID = "f40648f0321d3fad285ee0ee91506fbfa546fa71eba3ad634232046c7fbfe9d1"
SYSTEMD, CGROUPFS = f"/system.slice/docker-{ID}.scope", f"/tc4084549716/{ID}"
PODMAN = f"/machine.slice/libpod-{ID}.scope/container"
EVENTS = "low 0\nhigh 0\nmax {max}\noom {oom}\noom_kill {kills}\noom_group_kill 0\n"


def laid_out(root: Path, path: str) -> dict[str, Path]:
    """A machine of cgroup v2 alone, on which process 7 is in a container."""
    folder = root / "sys" / "fs" / "cgroup" / path.lstrip("/")
    folder.mkdir(parents=True)
    (folder / "memory.current").write_text("5410816\n")
    (folder / "pids.events").write_text("max 0\n")
    process = root / "proc" / "7"
    process.mkdir(parents=True)
    (process / "cgroup").write_text(f"0::{path}\n")
    return find_cgroups(7, root)


@pytest.mark.parametrize("path", [SYSTEMD, CGROUPFS, PODMAN])
def test_with_cgroup_v2_alone_all_is_in_one_folder(tmp_path: Path, path: str) -> None:
    cgroups = laid_out(tmp_path, path)
    assert cgroups == {"": tmp_path / "sys" / "fs" / "cgroup" / path.lstrip("/")}
    count, limit = MemoryCount(cgroups), PidsLimit(cgroups)
    assert count.bytes() == 5410816
    assert limit.times_reached() == 0
    count.close()
    limit.close()


@pytest.mark.parametrize(
    ("path", "above"), [(SYSTEMD, "system.slice"), (CGROUPFS, "tc4084549716"), (PODMAN, "machine.slice")]
)
def test_a_kill_for_memory_is_seen_from_the_cgroup_that_stays(tmp_path: Path, path: str, above: str) -> None:
    cgroups = laid_out(tmp_path, path)
    file = tmp_path / "sys" / "fs" / "cgroup" / above / "memory.events"
    file.write_text(EVENTS.format(max=70, oom=2, kills=2))  # of others, before
    kills = MemoryKills(cgroups, ID)
    assert not kills.is_new()
    file.write_text(EVENTS.format(max=90, oom=2, kills=3))  # the whole machine was short of memory
    assert not kills.is_new()
    file.write_text(EVENTS.format(max=90, oom=3, kills=3))
    assert kills.is_new()
    kills.close()
    kills.close()
    assert not kills.is_new()


def test_without_a_count_above_nothing_is_said(tmp_path: Path) -> None:
    cgroups = laid_out(tmp_path, f"/{ID}")
    (cgroups[""] / "memory.events").write_text(EVENTS.format(max=0, oom=0, kills=0))
    kills = MemoryKills(cgroups, ID)
    (cgroups[""] / "memory.events").write_text(EVENTS.format(max=1, oom=1, kills=1))
    assert not kills.is_new()
    assert not MemoryKills({"memory": tmp_path}, ID).is_new()
    kills.close()
