"""A run that looks like failed-load, cycle by cycle; also a program that records cycles until it is killed."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from tritonchaos.observations import (
    Answer,
    Arm,
    CycleFinished,
    CycleStarted,
    Event,
    Expectation,
    ModelState,
    PhaseFacts,
    Position,
    Probe,
    Reading,
    RunFacts,
    SettleWindow,
    StepFinished,
    StepSpec,
)
from tritonchaos.store import RunStore

ERROR = "unexpected datatype TYPE_FP32 for inference output 'OUTPUT', expecting TYPE_INT32"
METRICS = (
    "nvml_device_used_bytes",
    "nvml_device_reserved_bytes",
    "nvml_process_used_bytes",
    "host_private_bytes",
    "host_rss_bytes",
    "host_pss_bytes",
    "stub_private_bytes",
    "stub_rss_bytes",
    "stub_pss_bytes",
    "server_fds",
    "server_threads",
    "server_children",
    "shm_bytes",
    "temp_bytes",
)
SLOW = ("host_pss_bytes", "stub_pss_bytes", "server_children", "host_private_bytes", "stub_private_bytes")


def facts(**changes) -> RunFacts:
    known = {
        "run_id": "20260911T010203Z-failed-load-0a1b",
        "tritonchaos_version": "0.1.0",
        "scenario": "failed-load",
        "seed": 1,
        "started_utc": "2026-09-11T01:02:03Z",
        "target": {"target": "local", "triton_version": "2.51.0"},
        "target_skipped": (("docker", "not in this version"),),
        "variants": {"ident": "planted"},
        "uses_gpu": False,
        "unavailable": {"nvml_device_used_bytes": "not applicable: no driver"},
        "sample_count": 3,
        "phases": (PhaseFacts("baseline", Arm.CONTROL, "cycles", 30), PhaseFacts("after_exit", None, "steps", 1)),
        "checks": (("memory_growth", {}), ("hang", {"deadline_s": 1.5, "list": [1, {"a": None}]})),
        "known": ({"finding": "hang", "server": "<2.60", "about": "https://example.org"},),
        "metrics": ("host_private_bytes",),
    }
    return RunFacts(**{**known, **changes})


class Machine:
    """Memory that wanders as real memory does: mostly flat, with some noise in pages and a leak on the device."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.t_ns = 1_000_000_000
        self.values = {metric: (1 << 30) + 4096 * number for number, metric in enumerate(METRICS)}

    def wait(self, ms: float) -> int:
        self.t_ns += int(ms * 1e6 * self.random.uniform(0.9, 1.1))
        return self.t_ns

    def read(self) -> dict[str, int]:
        for metric in METRICS:
            if self.random.random() < 0.2:
                self.values[metric] += 4096 * self.random.randint(-3, 3)
        return dict(self.values)


def _step(machine: Machine, position: Position, name: str, reply: Answer, observed: dict) -> StepFinished:
    expect = Expectation(kind="fields", error=ERROR) if name == "load" else Expectation()
    spec = StepSpec(name, "ident", {"model": "ident"}, expect, 30.0)
    started_ns = machine.t_ns
    log_start = machine.t_ns // 1000
    return StepFinished(position, started_ns, machine.wait(7), spec, reply, observed, log_start, log_start + 1200)


def _probe(machine: Machine, position: Position, reason: str) -> Probe:
    index = (ModelState("ident", "1", "UNAVAILABLE", reason), ModelState("other", "1", "READY", ""))
    return Probe(position, machine.wait(2), "ident", index, 400, 400, 200, 400)


def _window(machine: Machine, cycle: int) -> SettleWindow:
    times = tuple(machine.wait(10) for _ in range(5))
    readings = [machine.read() for _ in times]
    values = {metric: tuple(reading[metric] for reading in readings) for metric in METRICS}
    return SettleWindow("wrong", Arm.TREATMENT, cycle, 1, times, values, frozenset(METRICS))


def cycle_events(machine: Machine, cycle: int) -> list[Event]:
    """One failed-load cycle: load, probe, loaded, unload, probe, settle window, before_next."""
    machine.values["nvml_device_used_bytes"] += machine.random.choice((0, 2 << 20, 4 << 20))
    load = Position("wrong", Arm.TREATMENT, cycle, "main", 0)
    unload = Position("wrong", Arm.TREATMENT, cycle, "main", 1)
    refused = Answer(400, f'{{"error":"load failed for model \'ident\': {ERROR}"}}'.encode(), 7_123_456 + cycle)
    return [
        CycleStarted(machine.wait(1), "wrong", Arm.TREATMENT, cycle, False),
        _step(machine, load, "load", refused, {"state": "UNAVAILABLE", "reason": ERROR}),
        _probe(machine, load, ERROR),
        Reading(machine.wait(1), "loaded", load, machine.read()),
        _step(machine, unload, "unload", Answer(200, b"", 812_345 + cycle), {"gone_after_ns": 1_234_567 + cycle}),
        _probe(machine, unload, ERROR),
        _window(machine, cycle),
        Reading(machine.wait(1), "before_next", None, machine.read()),
        CycleFinished(machine.wait(1), "wrong", cycle),
    ]


def cycle_samples(machine: Machine, start_ns: int) -> dict[str, list[tuple[int, int]]]:
    """Samples of one cycle's time at 50 Hz, the slow metrics once a second."""
    samples: dict[str, list[tuple[int, int]]] = {metric: [] for metric in METRICS}
    for t_ns in range(start_ns, machine.t_ns, 20_000_000):
        stamp = t_ns + machine.random.randint(0, 100_000)
        reading = machine.read()
        for metric in METRICS:
            if metric not in SLOW or t_ns // 10**9 != (t_ns - 20_000_000) // 10**9:
                samples[metric].append((stamp, reading[metric]))
    return samples


def record_cycles(store: RunStore, cycles: int, seed: int = 1) -> None:
    machine = Machine(seed)
    for cycle in range(cycles):
        start_ns = machine.t_ns
        for event in cycle_events(machine, cycle):
            store.record(event)
        store.add_samples(cycle_samples(machine, start_ns))
        store.commit()


if __name__ == "__main__":
    with RunStore.create(Path(sys.argv[1]), facts(), "scenario: failed-load\n") as endless:
        endless.remember("pid", 4711)
        sys.stdout.write("recording\n")
        sys.stdout.flush()
        record_cycles(endless, int(sys.argv[2]))
