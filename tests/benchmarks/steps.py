"""Steps that only benchmarks use, loaded with `--plugin`: bare loops, and a look at tritonchaos itself."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tritonchaos.client.inference_encoding import encode_request
from tritonchaos.local_server.listening import find_listener
from tritonchaos.open_process import OpenProcess
from tritonchaos.plugins import STEPS, Contract, Workbench

_BARE_LOOP = Path(__file__).with_name("bare_loop.py")


@STEPS.register
@dataclass(frozen=True, slots=True)
class BareCycles:
    """Load and unload a model in a bare loop of raw HTTP calls, in a process of its own."""

    name: ClassVar[str] = "bare_cycles"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str
    count: int
    wait_s: float

    def apply(self, bench: Workbench) -> None:
        bench.observe(
            cycles_ns=_bare(bench, {"do": "cycles", "model": self.model, "count": self.count, "wait_s": self.wait_s})
        )


@STEPS.register
@dataclass(frozen=True, slots=True)
class BareInference:
    """Send one prepared inference request in a bare loop, in a process of its own."""

    name: ClassVar[str] = "bare_inference"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str
    seconds: float

    def apply(self, bench: Workbench) -> None:
        served = bench.models[self.model]
        body, header_bytes = encode_request(served.make_inputs(Random(1)), served.outputs, {})
        job = {"do": "infer", "model": self.model, "seconds": self.seconds, "header_bytes": header_bytes}
        bench.observe(per_second=_bare(bench, {**job, "body": base64.b64encode(body).decode()}))


def _bare(bench: Workbench, job: dict[str, Any]) -> Any:
    job = {**job, **_address(bench.client.url)}
    done = subprocess.run(
        [sys.executable, "-S", str(_BARE_LOOP), json.dumps(job)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def _address(url: str) -> dict[str, Any]:
    """Where another process finds the server of a base URL."""
    parts = urlsplit(url)
    if parts.scheme == "http":
        return {"host": parts.hostname, "port": parts.port, "relay": None}
    return {"host": "localhost", "port": 80, "relay": parts.path.replace("/proc/self/", f"/proc/{os.getpid()}/")}


@STEPS.register
@dataclass(frozen=True, slots=True)
class LookAtTool:
    """Read what tritonchaos itself uses: memory, processor time of its sampling thread, bytes of run.db."""

    name: ClassVar[str] = "look_at_tool"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    def apply(self, bench: Workbench) -> None:
        bench.observe(
            monotonic_ns=time.monotonic_ns(),
            main_ns=_thread_ns("MainThread"),
            sampling_ns=_thread_ns("sampling"),
            rss_bytes=_rss_bytes(),
            rollup_ns=_rollup_ns(_server_pid(bench)),
        )


def _thread_ns(name: str) -> int:
    """Time on a processor of one thread of ours, in nanoseconds (schedstat; proc_pid_stat(5) counts 10 ms ticks)."""
    thread = next(thread for thread in threading.enumerate() if thread.name == name)
    return int(Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[0])


def _rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _server_pid(bench: Workbench) -> int:
    """The process that listens where our client asks, found as the target `remote` finds it."""
    found = find_listener(urlsplit(bench.client.url).port or 0)
    if found.process is None:
        raise RuntimeError(found.why_not)
    return found.process.pid


def _rollup_ns(pid: int) -> int:
    """Median wall time of reading smaps_rollup, 10 ms apart as in a settle window."""
    process, times = OpenProcess(pid), []
    for _ in range(7):
        time.sleep(0.01)
        began = time.monotonic_ns()
        process.memory_rollup()
        times.append(time.monotonic_ns() - began)
    process.close()
    return sorted(times)[len(times) // 2]
