"""Host sampler on real processes, with a child of ours in the server's place."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tritonchaos.plugins import Group, SampleScope
from tritonchaos.samplers.host import HostSampler, allocated_bytes
from tritonchaos.units import MIB

SHM = Path("/dev/shm")

# Answers each line on its input after running it, so that a test decides when the process changes.
OBEDIENT = """
import os, subprocess, sys, threading, time
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Process:
    """A child that does what it is told, line by line."""

    def __init__(self):
        self.child = subprocess.Popen(
            [sys.executable, "-c", OBEDIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.child.pid
        self.do("pass")

    def do(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        assert self.child.stdout.readline() == "done\n"

    def end(self):
        self.child.stdin.close()
        self.child.wait(60)
        self.child.stdout.close()


@pytest.fixture
def process():
    process = Process()
    yield process
    if process.child.poll() is None:
        process.end()


@pytest.fixture
def prefix():
    prefix = f"tc_test{uuid.uuid4().hex[:8]}_"
    yield prefix
    for left in SHM.glob(f"*{prefix[3:]}*"):
        left.unlink()


def opened(process, **scope):
    sampler = HostSampler()
    sampler.open(SampleScope(pid=process.pid, **scope))
    return sampler


def grown(sampler, metric, change, group=Group.ALL):
    before = sampler.read(group)[metric]
    change()
    return sampler.read(group)[metric] - before


def test_allocated_memory_is_seen_as_private_resident_and_proportional(process):
    sampler = opened(process)
    before = sampler.read(Group.ALL)

    process.do("kept = b'x' * (32 << 20)")

    after = sampler.read(Group.ALL)
    for metric in ("host_private_bytes", "host_rss_bytes", "host_pss_bytes"):
        assert 32 * MIB <= after[metric] - before[metric] < 34 * MIB, metric
    assert sampler.read(Group.FAST)["host_rss_bytes"] > before["host_rss_bytes"] + 24 * MIB


def test_fast_group_leaves_out_what_is_slow_to_read(process, tmp_path, prefix):
    sampler = opened(process, temp=tmp_path, shm_prefix=prefix)

    assert set(sampler.read(Group.FAST)) == {"host_rss_bytes", "server_fds", "server_threads", "shm_bytes"}


def test_fds_and_threads_are_counted(process):
    sampler = opened(process)

    assert grown(sampler, "server_fds", lambda: process.do("ends = os.pipe()"), Group.FAST) == 2
    start = "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    assert grown(sampler, "server_threads", lambda: process.do(start), Group.FAST) == 1


def test_children_and_zombies_are_told_apart(process):
    sampler = opened(process)
    assert (sampler.read(Group.ALL)["server_children"], sampler.read(Group.ALL)["server_zombies"]) == (0, 0)

    process.do("child = subprocess.Popen(['sleep', '600'])")
    assert sampler.read(Group.ALL)["server_children"] == 1

    process.do("child.kill(); os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)")
    after = sampler.read(Group.ALL)
    assert (after["server_children"], after["server_zombies"]) == (0, 1)
    process.do("child.wait()")


def test_memory_of_stubs_is_kept_apart_from_the_servers(process, tmp_path):
    stub = tmp_path / "triton_python_backend_stub"
    stub.symlink_to(sys.executable)
    sampler = opened(process)
    before = sampler.read(Group.ALL)
    assert before["stub_private_bytes"] == 0, "a server without stubs has nothing in stubs"

    script = "kept = b'x' * (16 << 20); print(1, flush=True); import sys; sys.stdin.read()"
    process.do(
        f"stub = subprocess.Popen([{str(stub)!r}, '-c', {script!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE); "
        "stub.stdout.readline()"
    )

    after = sampler.read(Group.ALL)
    assert after["stub_private_bytes"] > 16 * MIB
    assert after["stub_rss_bytes"] >= after["stub_pss_bytes"] > 16 * MIB
    assert after["host_private_bytes"] - before["host_private_bytes"] < 4 * MIB
    process.do("stub.stdin.close(); stub.wait()")
    assert sampler.read(Group.ALL)["stub_rss_bytes"] == 0


def test_shared_memory_of_this_run_is_counted_by_its_prefix(process, prefix):
    sampler = opened(process, shm_prefix=prefix)

    assert grown(sampler, "shm_bytes", lambda: (SHM / f"{prefix}a").write_bytes(b"x" * MIB), Group.FAST) == MIB
    assert sampler.read(Group.ALL)["shm_other_bytes"] == 0


def test_shared_memory_without_a_prefix_is_found_and_named(process, prefix):
    name = f"model_{prefix[3:]}"
    (SHM / f"early_{prefix[3:]}").write_bytes(b"x" * MIB)
    sampler = opened(process, shm_prefix=prefix)
    assert sampler.notes() == ()

    (SHM / name).write_bytes(b"x" * 2 * MIB)
    (SHM / f"tc_another{prefix[3:]}").write_bytes(b"x" * MIB)

    assert sampler.read(Group.ALL)["shm_other_bytes"] == 2 * MIB, "neither an earlier name nor another run's"
    assert [f"{name} (2 MiB)" in note for note in sampler.notes()] == [True]

    sampler.open(SampleScope(pid=process.pid, shm_prefix=prefix))
    assert sampler.read(Group.ALL)["shm_other_bytes"] == 2 * MIB, "it stays new after a restart of the server"


def test_temp_files_count_what_they_take(tmp_path, process):
    sampler = opened(process, temp=tmp_path)
    folder = tmp_path / "deep" / "deeper"
    folder.mkdir(parents=True)

    def leave():
        (folder / "full").write_bytes(os.urandom(MIB))
        os.link(folder / "full", folder / "same")
        (folder / "link").symlink_to(sys.executable)
        with (folder / "sparse").open("wb") as sparse:
            sparse.truncate(64 * MIB)

    assert MIB <= grown(sampler, "temp_bytes", leave) < MIB + 64 * 1024

    with (tmp_path / "deleted").open("wb") as deleted:
        deleted.write(os.urandom(MIB))
        deleted.flush()
        (tmp_path / "deleted").unlink()
        assert allocated_bytes(tmp_path) < 2 * MIB


def test_a_temp_folder_that_is_gone_takes_nothing(tmp_path):
    assert allocated_bytes(tmp_path / "absent") == 0


def test_metrics_of_an_ended_process_are_absent_but_what_it_left_is_read(process, tmp_path, prefix):
    sampler = opened(process, temp=tmp_path, shm_prefix=prefix)
    (SHM / f"{prefix}left").write_bytes(b"x" * 4096)

    process.child.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    left = {"shm_bytes": 4096, "shm_other_bytes": 0, "temp_bytes": 0}
    assert sampler.read(Group.ALL) == left, "a zombie"
    process.end()
    assert sampler.read(Group.ALL) == left, "reaped"


def test_reasons_are_given_for_what_cannot_be_read():
    sampler = HostSampler()

    why = sampler.open(SampleScope(pid=None))

    assert why["host_private_bytes"] == "not applicable: no server process is known on this machine"
    assert why["temp_bytes"].startswith("not applicable:")
    assert sampler.read(Group.ALL) == {"shm_other_bytes": 0}
    assert "has ended" in sampler.open(SampleScope(pid=2**22 + 1))["server_fds"]
