"""Processes of our own are read, found and ended; absent ones give no answer."""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tritonchaos import processes

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def python_that(code: str) -> tuple[str, ...]:
    """A Python that runs code, says so in one line and waits until it is ended."""
    return (sys.executable, "-c", f"{code}\nprint('ready', flush=True)\nimport sys; sys.stdin.read()")


def absent_pid(start: Start) -> int:
    process = start("true")
    process.wait()
    return process.pid


def test_this_process_is_read_whole() -> None:
    pid = os.getpid()
    stat = processes.read_stat(pid)
    assert stat is not None
    assert (stat.parent_pid, stat.is_zombie, stat.is_stub) == (os.getppid(), False, False)
    rollup = processes.memory_rollup(pid)
    assert rollup is not None
    assert 0 < rollup.private_bytes <= rollup.rss_bytes
    assert processes.command_line(pid) == tuple(sys.orig_argv)


def test_private_bytes_count_what_a_process_takes() -> None:
    pid, size = os.getpid(), 16 * 1024**2
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:  # the heap may hold such a hole
        before = processes.memory_rollup(pid)
        block.write(b"x" * size)
        after = processes.memory_rollup(pid)
    assert before is not None
    assert after is not None
    assert after.private_bytes - before.private_bytes == pytest.approx(size, rel=0.2)


def test_private_bytes_leave_out_what_is_only_mapped(tmp_path: Path) -> None:
    pid, file = os.getpid(), tmp_path / "library"
    with file.open("wb") as stream:
        stream.write(os.urandom(16 * 1024**2))
        stream.flush()
        os.fsync(stream.fileno())  # pages not yet on disk count as dirty
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        before = processes.memory_rollup(pid)
        touched = sum(mapped[at] for at in range(0, len(mapped), 4096))
        after = processes.memory_rollup(pid)
    assert before is not None
    assert after is not None
    assert touched > 0
    assert after.rss_bytes - before.rss_bytes > 8 * 1024**2
    assert after.private_bytes - before.private_bytes < 1024**2


def test_an_absent_process_gives_no_answer(start: Start) -> None:
    pid = absent_pid(start)
    assert processes.read_stat(pid) is None
    assert processes.memory_rollup(pid) is None
    assert processes.command_line(pid) == ()
    assert processes.descendants(pid) == []
    assert not processes.end(pid, 1, signal.SIGKILL)


def test_grandchildren_and_zombies_are_found(start: Start) -> None:
    child = "import subprocess; a = subprocess.Popen(['sleep', '60']); b = subprocess.Popen(['true'])"
    wait_for_zombie = "import os; os.waitid(os.P_PID, b.pid, os.WEXITED | os.WNOWAIT)"
    end_with_us = "import atexit; atexit.register(a.kill)"
    process = start(*python_that(f"{child}; {wait_for_zombie}; {end_with_us}"))
    assert process.stdout is not None
    process.stdout.readline()
    found = processes.descendants(os.getpid())
    ours = [stat for stat in found if stat.parent_pid == process.pid]
    assert {(stat.command, stat.is_zombie) for stat in ours} == {("sleep", False), ("true", True)}
    zombie = next(stat for stat in ours if stat.is_zombie)
    assert processes.memory_rollup(zombie.pid) is None
    process.communicate()


def test_a_process_is_ended_only_if_it_is_the_one_meant(start: Start) -> None:
    process = start("sleep", "60")
    stat = processes.read_stat(process.pid)
    assert stat is not None
    assert not processes.end(process.pid, stat.start_ticks + 1, signal.SIGKILL)
    assert process.poll() is None
    assert processes.end(process.pid, stat.start_ticks, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not processes.is_running(process.pid, stat.start_ticks)


def test_stubs_are_found_by_the_folder_they_were_started_from(start: Start, tmp_path: Path) -> None:
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
        shutil.copy(shutil.which("sleep") or "", tmp_path / folder / processes.STUB)
        start(str(tmp_path / folder / processes.STUB), "60")
    found = processes.stubs_below(tmp_path / "ours")
    assert [stat.is_stub for stat in found] == [True]
    assert processes.command_line(found[0].pid) == (str(tmp_path / "ours" / processes.STUB), "60")


def test_only_shared_memory_with_the_prefix_is_counted_and_removed() -> None:
    ours, theirs = f"tc_test_{uuid.uuid4().hex}_", f"other_{uuid.uuid4().hex}"
    (processes.SHARED_MEMORY / f"{ours}1").write_bytes(b"x" * 5000)
    (processes.SHARED_MEMORY / theirs).write_bytes(b"x")
    try:
        assert processes.shared_memory(ours) == [processes.SharedMemory(f"{ours}1", 8192)]
        assert [memory.name for memory in processes.remove_shared_memory(ours)] == [f"{ours}1"]
        assert processes.shared_memory(ours) == []
        assert (processes.SHARED_MEMORY / theirs).exists()
    finally:
        (processes.SHARED_MEMORY / theirs).unlink()


def test_an_empty_prefix_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        processes.remove_shared_memory("")
