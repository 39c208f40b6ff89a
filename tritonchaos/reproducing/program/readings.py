"""Readings of memory and handles, and the settle window that gives one post-unload reading of each."""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

from tritonchaos.reproducing.program.gpu import MIB

INTERVAL_S = 0.01
# Prefixes that programs like this one, and tritonchaos, give to their servers.
SHM_OF_TESTERS = ("/dev/shm/repro_", "/dev/shm/tc_")
GOVERNS = (
    "nvml_",
    "host_private",
    "host_rss",
    "stub_private",
    "stub_rss",
    "server_fds",
    "server_threads",
    "shm_bytes",
    "temp_",
)


class Readings:
    """Reads one server process and what it leaves in /dev/shm and in its temp folder."""

    def __init__(self, pid: int, gpu: Any, shm_prefix: str, temp: str, shm_before: frozenset[str]) -> None:
        self.pid, self.gpu, self.shm_prefix, self.temp = pid, gpu, shm_prefix, temp
        self.shm_before = shm_before
        self.is_known_to_gpu = False

    def read(self) -> dict[str, int]:
        """Every metric that can be read now, by name; sizes are bytes."""
        values = self.host_memory()
        values.update(self.handles())
        values["shm_bytes"] = sum(taken_bytes(path) for path in shared_memory(self.shm_prefix))
        values["shm_other_bytes"] = sum(taken_bytes(path) for path in self.other_shared_memory())
        values["temp_bytes"] = sum(taken_bytes(path) for path in files_below(self.temp))
        devices = self.gpu.read(self.pid) if self.gpu is not None else {}
        self.is_known_to_gpu = self.is_known_to_gpu or any("process" in read for read in devices.values())
        for uuid, read in devices.items():
            if self.is_known_to_gpu:  # a process that was listed and is not any more holds nothing there
                read.setdefault("process", 0)
            mark = "@" + uuid if len(devices) > 1 else ""
            for whose, used in read.items():
                values["nvml_{}_used_bytes{}".format(whose, mark)] = used
        return values

    def other_shared_memory(self) -> list[str]:
        """Regions of this user that appeared since the start under other names; another program's may be among them."""
        others = (path for path in shared_memory("") if path not in self.shm_before)
        return [path for path in others if not path.startswith(SHM_OF_TESTERS) and owner_of(path) == os.geteuid()]

    def host_memory(self) -> dict[str, int]:
        """Private bytes are what only this process has written: Private_Dirty of smaps_rollup."""
        server = rollup(self.pid)
        values = {"host_" + name: size for name, size in server.items()}
        if server:
            stubs = [rollup(pid) for pid in descendants(self.pid) if is_stub(pid)]
            for name in server:
                values["stub_" + name] = sum(stub.get(name, 0) for stub in stubs)
        return values

    def handles(self) -> dict[str, int]:
        """File descriptors, threads and children."""
        values = {}
        for metric, folder in (("server_fds", "fd"), ("server_threads", "task")):
            try:
                values[metric] = len(os.listdir("/proc/{}/{}".format(self.pid, folder)))
            except OSError:
                continue
        below = descendants(self.pid)
        dead = sum(state_of(pid) in ("Z", "X", "") for pid in below)
        values["server_children"], values["server_zombies"] = len(below) - dead, dead
        return values

    def settle(self, count: int, at_most_s: float) -> tuple[dict[str, int], list[str]]:
        """Read at 0, 10, 20 ms and so on until the last `count` readings lie within one quantum.

        Returns:
            Metric -> median of the last readings, and the metrics that had not settled when the time was over.
        """
        began = time.monotonic()
        readings: list[dict[str, int]] = []
        while True:
            due = began + INTERVAL_S * len(readings)
            time.sleep(max(0.0, due - time.monotonic()))
            readings.append(self.read())
            last = readings[-count:]
            moving = [metric for metric in last[-1] if not has_settled(metric, last, count)]
            is_over = time.monotonic() - began > at_most_s
            if not any(metric.startswith(GOVERNS) for metric in moving) or is_over:
                return medians(last), moving


def medians(readings: list[dict[str, int]]) -> dict[str, int]:
    """Median of each metric; median_low is a value that was really read."""
    values = {}
    for metric in readings[-1]:
        values[metric] = statistics.median_low([reading[metric] for reading in readings if metric in reading])
    return values


def has_settled(metric: str, last: list[dict[str, int]], count: int) -> bool:
    """Say whether the last readings exist and lie within one quantum of the metric."""
    values = [reading[metric] for reading in last if metric in reading]
    return len(values) == count and max(values) - min(values) <= quantum(metric)


def quantum(metric: str) -> int:
    """2 MiB on the device (page size of the driver), 16 KiB of host memory, 4096 of files, 1 for counts."""
    if metric.startswith("nvml_"):
        return 2 * MIB
    if metric.startswith(("host_", "stub_")):
        return 16 * 1024
    return 4096 if metric.endswith("_bytes") else 1


def rollup(pid: int) -> dict[str, int]:
    """Memory of a process from /proc/PID/smaps_rollup, in bytes; {} if it cannot be read."""
    names = {"Rss": "rss_bytes", "Pss": "pss_bytes", "Private_Dirty": "private_bytes"}
    values = {}
    for line in read_text("/proc/{}/smaps_rollup".format(pid)).splitlines()[1:]:
        name, _, size = line.partition(":")
        if name in names:
            values[names[name]] = int(size.split()[0]) * 1024
    return values


def descendants(pid: int) -> list[int]:
    """Children of a process and their children."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        try:
            tasks = os.listdir("/proc/{}/task".format(parent))
        except OSError:
            continue
        for task in tasks:
            children = read_text("/proc/{}/task/{}/children".format(parent, task)).split()
            found += [int(child) for child in children]
            waiting += [int(child) for child in children]
    return found


def state_of(pid: int) -> str:
    """State letter of a process, "" if it is gone."""
    fields = read_text("/proc/{}/stat".format(pid)).rpartition(")")[2].split()
    return fields[0] if fields else ""


def is_stub(pid: int) -> bool:
    """Say whether a process is a stub of the python backend."""
    return read_text("/proc/{}/comm".format(pid)).strip() == "triton_python_b" and state_of(pid) not in ("Z", "X", "")


def shared_memory(prefix: str) -> list[str]:
    """Paths in /dev/shm that begin with the prefix that was given to the server."""
    try:
        return ["/dev/shm/" + name for name in sorted(os.listdir("/dev/shm")) if name.startswith(prefix)]
    except OSError:
        return []


def files_below(folder: str) -> list[str]:
    """All files below a folder."""
    return [os.path.join(here, name) for here, _, names in os.walk(folder) for name in names]


def taken_bytes(path: str) -> int:
    """Bytes that a file really takes; 0 if it is gone. A block is 512 bytes here on every file system."""
    try:
        return os.stat(path).st_blocks * 512
    except OSError:
        return 0


def owner_of(path: str) -> int:
    """User that a file belongs to; -1 if it is gone."""
    try:
        return os.stat(path).st_uid
    except OSError:
        return -1


def read_text(path: str) -> str:
    """Content of a small file, "" if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
