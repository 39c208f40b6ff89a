"""Measures on a real GPU when device memory stands still after an unload, and what reading it costs.

    python -m tests.gpu.settle [CYCLES]

A model of the variant `planted_gpu` holds device memory while it is loaded. It is loaded and unloaded, and NVML is
asked without a pause from before the unload call until long after the index shows the model gone. For each size a line
says when the last change of the reading was seen, counted from the index.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.local_server import LocalServer, start_local_server
from tritonchaos.client import wait_until_gone
from tritonchaos.nvml import Nvml, open_nvml, visible_gpus
from tritonchaos.observations import Answer
from tritonchaos.repository import ModelRepository
from tritonchaos.templates import ServedModel, find_template
from tritonchaos.units import KIB, MIB, format_bytes

SIZES = (64 * KIB, 2 * MIB, 64 * MIB, 1024 * MIB)
WATCHED_AFTER_S = 0.3
COST_READINGS = 2000


@dataclass(frozen=True)
class Unload:
    """Times in seconds since the unload was sent."""

    answered: float
    gone: float
    changes: tuple[float, ...]
    fell_bytes: int


def held(size: int) -> ServedModel:
    plant = [{"what": "device_bytes", "bytes": size, "held": True}]
    parameters = {"datatype": "FP32", "dims": [16], "plant": plant}
    return find_template("identity").serve("held", parameters, "planted_gpu")


class Watch:
    """Asks NVML without a pause, from a thread, and keeps when the reading changed."""

    def __init__(self, nvml: Nvml, uuid: str) -> None:
        self._read: Callable[[], int] = lambda: nvml.memory(uuid).used_bytes
        self._stop = threading.Event()
        self.changes: list[tuple[float, int]] = [(time.monotonic(), self._read())]
        self._thread = threading.Thread(target=self._look, name="watch")
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.is_set():
            value = self._read()
            if value != self.changes[-1][1]:
                self.changes.append((time.monotonic(), value))

    def stop(self) -> list[tuple[float, int]]:
        self._stop.set()
        self._thread.join()
        return self.changes


def unload(server: LocalServer, nvml: Nvml, uuid: str) -> Unload:
    loaded = server.client.load("held", 30)
    if not (isinstance(loaded, Answer) and loaded.status == 200):
        sys.exit(f"the model does not load: {loaded}")
    time.sleep(0.05)  # an unload at once can crash Triton 2.51
    watch = Watch(nvml, uuid)
    sent = time.monotonic()
    server.client.unload("held", 30)
    answered = time.monotonic()
    wait_until_gone(server.client, "held", 30)
    gone = time.monotonic()
    time.sleep(WATCHED_AFTER_S)
    changes = watch.stop()
    times = tuple(at - sent for at, _ in changes[1:])
    return Unload(answered - sent, gone - sent, times, changes[0][1] - changes[-1][1])


def ms(values: Sequence[float]) -> str:
    return f"median {1e3 * statistics.median(values):.2f}, most {1e3 * max(values):.2f} ms"


def measure(size: int, cycles: int, nvml: Nvml, uuid: str) -> None:
    model = held(size)
    with tempfile.TemporaryDirectory() as folder:
        server = start_local_server(Path(folder), backends=model.backends)
        try:
            repository = ModelRepository(server.launch.repository, Path(folder) / "archive")
            repository.add("held", model.files)
            seen = [unload(server, nvml, uuid) for _ in range(cycles)][2:]
        finally:
            server.stop()
    fell = statistics.median(one.fell_bytes for one in seen)
    last = [one.changes[-1] - one.gone for one in seen if one.changes]
    print(f"{format_bytes(size)} held, {len(seen)} unloads: memory fell by {format_bytes(fell)}")
    print(f"  unload answered after {ms([one.answered for one in seen])}")
    print(f"  index shows it gone after {ms([one.gone for one in seen])}")
    if last:
        print(f"  last change of the reading, from the index: {ms(last)}")
        print(f"  readings that changed after the index said gone: {sum(at > 0 for at in last)} of {len(seen)}")
    else:
        print("  the reading never changed (below one page)")


def cost(nvml: Nvml, uuid: str) -> None:
    for name, read in (("memory query", lambda: nvml.memory(uuid)), ("process list", lambda: nvml.processes(uuid))):
        times = []
        for _ in range(COST_READINGS):
            before = time.perf_counter()
            read()
            times.append(time.perf_counter() - before)
        times.sort()
        print(f"{name}: median {1e6 * times[len(times) // 2]:.1f}, p99 {1e6 * times[len(times) * 99 // 100]:.1f} us")


def main() -> None:
    cycles = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    nvml = open_nvml()
    if not isinstance(nvml, Nvml):
        sys.exit(f"no GPU: {nvml.reason}")
    uuid = visible_gpus(nvml.gpus(), {}).uuids[0]
    print(f"driver {nvml.driver_version()}, {nvml.gpus()[0].name}")
    cost(nvml, uuid)
    for size in SIZES:
        measure(size, cycles, nvml, uuid)
    nvml.close()


if __name__ == "__main__":
    main()
