"""A process whose files in /proc are kept open reads the same as one read by path, and lets go of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tritonchaos import processes
from tritonchaos.open_process import OpenProcess


@pytest.fixture
def ours() -> Iterator[OpenProcess]:
    process = OpenProcess(os.getpid())
    yield process
    process.close()


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def children(process: OpenProcess) -> set[int]:
    return {stat.pid for stat in process.descendants()}


def test_reads_the_same_as_by_path(ours: OpenProcess) -> None:
    stat, rollup = ours.stat(), ours.memory_rollup()
    assert stat is not None
    assert rollup is not None
    by_path = processes.memory_rollup(ours.pid)
    assert by_path is not None
    assert stat == processes.read_stat(ours.pid)
    assert rollup.private_bytes == pytest.approx(by_path.private_bytes, rel=0.05)
    assert ours.rss_bytes() == pytest.approx(rollup.rss_bytes, rel=0.2)


def test_counts_open_files_as_they_are_listed(ours: OpenProcess, tmp_path: Path) -> None:
    before = ours.fd_count()
    assert before == open_fds() - 1, "the listing has a descriptor of its own"
    with (tmp_path / "a").open("w"), (tmp_path / "b").open("w"):
        assert ours.fd_count() == before + 2


def test_counts_threads_as_the_kernel_does(ours: OpenProcess) -> None:
    def threads() -> tuple[int | None, int]:
        stat = processes.read_stat(ours.pid)
        assert stat is not None
        return ours.thread_count(), stat.threads

    counted, told = threads()
    assert counted == told
    ended = threading.Event()
    more = [threading.Thread(target=ended.wait) for _ in range(3)]
    for thread in more:
        thread.start()
    assert threads() == (told + 3, told + 3)
    ended.set()
    for thread in more:
        thread.join()


def test_finds_children_of_threads_that_came_later(ours: OpenProcess) -> None:
    assert ours.descendants() == processes.descendants(ours.pid)
    begun, ended, started = threading.Event(), threading.Event(), []

    def start_child() -> None:
        started.append(subprocess.Popen(["sleep", "60"]))
        begun.set()
        ended.wait()

    thread = threading.Thread(target=start_child)
    thread.start()
    begun.wait()
    assert started[0].pid in children(ours)

    ended.set()
    thread.join()
    assert started[0].pid in children(ours), "a child of an ended thread goes to another thread"
    started[0].kill()
    assert [stat.is_zombie for stat in ours.descendants() if stat.pid == started[0].pid] in ([True], [False])
    started[0].wait()
    assert started[0].pid not in children(ours)


def test_finds_grandchildren(ours: OpenProcess) -> None:
    start = "a = subprocess.Popen(['sleep', '60']); print(a.pid, flush=True)"
    code = f"import subprocess, sys; {start}; sys.stdin.read(); a.kill()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        grandchild = int(child.stdout.readline())
        assert {child.pid, grandchild} <= children(ours)
        child.stdin.close()


def test_an_ended_process_gives_nothing() -> None:
    child = subprocess.Popen(["sleep", "60"])
    process = OpenProcess(child.pid)
    assert process.stat() is not None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    zombie = process.stat()
    assert zombie is not None
    assert zombie.is_zombie
    child.wait()

    assert (process.stat(), process.rss_bytes(), process.memory_rollup()) == (None, None, None)
    assert process.descendants() == []
    process.close()


def test_an_absent_process_gives_nothing() -> None:
    process = OpenProcess(2**22 + 1)  # above the kernel's largest pid
    assert (process.stat(), process.rss_bytes(), process.memory_rollup(), process.fd_count()) == (None,) * 4
    assert process.thread_count() is None
    assert process.descendants() == []
    process.close()


def test_keeps_nothing_once_it_is_closed() -> None:
    before = open_fds()
    process = OpenProcess(os.getpid())
    process.descendants()
    assert open_fds() > before
    process.close()
    process.close()
    assert open_fds() == before
