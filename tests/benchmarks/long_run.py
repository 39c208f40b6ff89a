"""How long a run of very many cycles takes to judge and to report, in how much memory and disk.

    python -m tests.benchmarks.long_run 1000000 FOLDER

The run is made by the store's own writer and kept in FOLDER, so that it can be measured again. Prints a table with the
targets, which are those of a million cycles.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path

from tests.benchmarks.table import Row, machine
from tritonchaos.observations import (
    Answer,
    Arm,
    CycleFinished,
    CycleStarted,
    Event,
    Expectation,
    ModelState,
    PhaseFacts,
    PhaseStopped,
    Position,
    Probe,
    Reading,
    RunFacts,
    ServerStarted,
    ServerStopped,
    SettleWindow,
    StepFinished,
    StepSpec,
)
from tritonchaos.store import RunStore

ERROR = "unexpected datatype TYPE_FP32 for inference output 'OUTPUT', expecting TYPE_INT32"
METRICS = ("host_private_bytes", "host_rss_bytes", "server_fds", "server_threads")
CHECKS = (
    "memory_growth",
    "returns_to_baseline",
    "server_alive",
    "hang",
    "expectations",
    "index_consistent",
    "leftovers",
)
_CONTROL_CYCLES = 1000
_COMMIT_EVERY = 200
_JUDGE_S, _REPORT_S, _MOST_BYTES = 60.0, 20.0, 500e6
_LOAD = StepSpec("load", "ident", {"model": "ident"}, Expectation("fields", error="unexpected datatype"), 30.0)
_GOOD_LOAD = StepSpec("load", "ident", {"model": "ident"}, Expectation(), 30.0)
_UNLOAD = StepSpec("unload", "ident", {"model": "ident"}, Expectation(), 30.0)
_REFUSED = f'{{"error":"load failed for model \'ident\': {ERROR}"}}'.encode()
_READY = (ModelState("ident", "1", "READY", ""),)
_GONE = (ModelState("ident", "1", "UNAVAILABLE", "unloaded"),)


def facts(cycles: int) -> RunFacts:
    return RunFacts(
        run_id="long-run",
        tritonchaos_version="0.1.0",
        scenario="failed-load",
        seed=1,
        started_utc="2026-01-01T00:00:00Z",
        target={"target": "local", "triton_version": "2.51.0"},
        target_skipped=(),
        variants={"ident": "planted"},
        uses_gpu=False,
        unavailable={},
        sample_count=3,
        phases=(
            PhaseFacts("baseline", Arm.CONTROL, "cycles", _CONTROL_CYCLES),
            PhaseFacts("wrong", Arm.TREATMENT, "cycles", cycles),
        ),
        checks=tuple((name, {}) for name in CHECKS),
    )


def values(cycle: int) -> dict[str, int]:
    """A plateau with a page up or down now and then, as of an allocator that is warm."""
    noise = 4096 * ((cycle * 7919) % 23 == 0)
    return {
        "host_private_bytes": (4 << 20) + min(cycle, 40) * 4096 + noise,
        "host_rss_bytes": (33 << 20) + min(cycle, 40) * 4096 + noise,
        "server_fds": 53,
        "server_threads": 24,
    }


def cycle_events(t_ns: int, cycle: int, phase: str, arm: Arm) -> list[Event]:
    load, unload = (Position(phase, arm, cycle, "main", number) for number in range(2))
    is_good, read = arm is Arm.CONTROL, values(cycle if arm is Arm.CONTROL else cycle + _CONTROL_CYCLES)
    reply = Answer(200, b"", 1_300_000 + cycle % 977) if is_good else Answer(400, _REFUSED, 900_000 + cycle % 977)
    index, ready = (_READY, 200) if is_good else (_GONE, 400)
    times = (t_ns + 3_000_000, t_ns + 13_000_000 + cycle % 101, t_ns + 23_000_000 + cycle % 103)
    window = {metric: (value,) * 3 for metric, value in read.items()}
    spec, at = (_GOOD_LOAD if is_good else _LOAD), cycle * 350
    state = {"state": index[0].state, "reason": index[0].reason}
    return [
        CycleStarted(t_ns, phase, arm, cycle, False),
        StepFinished(load, t_ns, t_ns + reply.elapsed_ns, spec, reply, state, at, at + 200),
        Probe(load, t_ns + 1_500_000, "ident", index, ready, ready, None, None),
        StepFinished(
            unload, t_ns + 1_600_000, t_ns + 2_400_000, _UNLOAD, Answer(200, b"", 800_000 + cycle % 877),
            {"gone_after_ns": 500_000 + cycle % 313}, at + 200, at + 350,
        ),
        Probe(unload, t_ns + 2_500_000, "ident", _GONE, 400, 400, None, None),
        SettleWindow(phase, arm, cycle, 1, times, window, frozenset(read)),
        CycleFinished(t_ns + 23_200_000, phase, cycle),
        Reading(t_ns + 23_300_000, "before_next", unload, {metric: read[metric] for metric in METRICS[1:]}),
    ]  # fmt: skip


def make(folder: Path, cycles: int) -> None:
    with RunStore.create(folder, facts(cycles), "scenario: failed-load\n") as store:
        store.record(ServerStarted(100_000_000, 1, 4711, "http://127.0.0.1:8000", 90_000_000))
        store.record(Reading(110_000_000, "ready", None, values(0)))
        t_ns = 120_000_000
        for number in range(cycles):
            phase, arm = ("baseline", Arm.CONTROL) if number < _CONTROL_CYCLES else ("wrong", Arm.TREATMENT)
            cycle = number if number < _CONTROL_CYCLES else number - _CONTROL_CYCLES
            for event in cycle_events(t_ns, cycle, phase, arm):
                store.record(event)
            if number % _COMMIT_EVERY == 0:
                store.add_samples({m: [(t_ns, value)] for m, value in values(number).items()})
                store.commit()
            t_ns += 23_500_000
        store.record(PhaseStopped(t_ns, "wrong", cycles - _CONTROL_CYCLES, "verdict"))
        store.record(ServerStopped(t_ns + 50_000_000, "SIGTERM", 0, False, False, 44_000_000))
        store.finish(interrupted=False)


@dataclass(frozen=True)
class Used:
    """What a command took.

    Attributes:
        took_s, processor_s: By the clock, and of the processor; the same on a machine that does nothing else.
        most_bytes: Largest resident memory.
    """

    took_s: float
    processor_s: float
    most_bytes: int
    printed: str


def measure(*arguments: str) -> Used:
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        done = subprocess.Popen([sys.executable, "-m", "tritonchaos", *arguments], stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(done.pid, 0)
        done.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        printed = out.read().decode()
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"{arguments} ended with {done.returncode}: {printed[-2000:]}")
    took_s = time.monotonic() - began
    return Used(took_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, printed)


def row(what: str, used: Used, most_s: float) -> Row:
    is_met = used.processor_s < most_s and used.most_bytes < _MOST_BYTES
    found = f"{used.processor_s:.1f} s of processor ({used.took_s:.1f} s by the clock), {used.most_bytes / 1e6:.0f} MB"
    return Row(what, found, f"< {most_s:g} s, < {_MOST_BYTES / 1e6:.0f} MB", is_met)


def judging(folder: Path) -> Iterator[Row]:
    """Judge by growth alone, of one metric and of two; then by all checks."""
    for metrics in (METRICS[:1], METRICS[:2]):
        used = measure("judge", str(folder), "--checks", f"[{{memory_growth: {{metrics: [{', '.join(metrics)}]}}}}]")
        yield row(f"judge {len(metrics)} metric{'s' * (len(metrics) > 1)}", used, _JUDGE_S * len(metrics))
    used = measure("judge", str(folder))
    results = json.loads((folder / "results.json").read_bytes())
    judged = sum(a["cycles_used"] is not None and a["metric"] is not None for a in results["assessments"])
    judged -= sum(a["checker"] == "returns_to_baseline" for a in results["assessments"])
    yield row(
        f"judge by {len(CHECKS)} checks, {judged} metrics judged for growth, and write the default reports",
        used,
        _JUDGE_S * judged + _REPORT_S,
    )


def main(cycles: int, folder: Path) -> None:
    made = ""
    if not (folder / "run.db").exists():
        began = time.process_time()
        make(folder, cycles)
        made = f"; written in {1e6 * (time.process_time() - began) / cycles:.0f} us of processor per cycle"
    size = (folder / "run.db").stat().st_size / cycles
    each = size / len(METRICS)
    print(f"{cycles} cycles, {datetime.now(timezone.utc):%Y-%m-%d}, {machine()}{made}\n")
    print("| what | found | target | met |\n| --- | --- | --- | --- |")
    report = (str(folder), "--report", "html,markdown,junit")
    rows = chain(
        [Row("run.db per cycle and metric", f"{each:.0f} B ({size:.0f} B per cycle)", "< 150 B", each < 150)],
        judging(folder),
        (row("report with the kept verdict", measure("report", *report), _REPORT_S) for _ in range(1)),
    )
    for one in rows:
        print(f"| {one.what} | {one.found} | {one.target} | {'yes' if one.is_met else '**no**'} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
