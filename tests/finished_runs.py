"""A finished run in a few lines, for tests of reporters."""

from __future__ import annotations

from tests.builders import CONTROL, TREATMENT, failed_load, make_position, run
from tritonchaos.observations import Note, PhaseFacts, Reading
from tritonchaos.summary import FinishedRun, finish
from tritonchaos.units import MIB
from tritonchaos.verdict import Assessment, Finding, Status, Verdict

HOST = "host_private_bytes"
LEAK = Finding(
    "leak",
    "memory_growth",
    "host_private_bytes grows with each failed load",
    metric=HOST,
    step="load ident",
    bytes_per_cycle=float(MIB),
    interval_bytes_per_cycle=(0.5 * MIB, 1.5 * MIB),
    position=make_position("wrong", cycle=3),
    evidence=tuple(f"cycle {cycle}: {102 + cycle} MiB" for cycle in range(6)),
)
PHASES = (PhaseFacts("baseline", CONTROL, "cycles", 3), PhaseFacts("wrong", TREATMENT, "cycles", 200))


def leaking_run(treatment_cycles: int = 3, finding: Finding = LEAK, note: str = "nobody else uses it") -> FinishedRun:
    treatment = [(102 + cycle) * MIB for cycle in range(treatment_cycles)]
    history = (
        run()
        .start({HOST: 100 * MIB})
        .phase("baseline", CONTROL, HOST, [101 * MIB])
        .phase("wrong", TREATMENT, HOST, treatment, **failed_load())
        .add(Reading(5, "after_exit", None, {"nvml_device_used_bytes": 3 * MIB, "server_fds": 0}), Note(5, note))
        .history(phases=PHASES)
    )
    failed = Assessment("memory_growth", Status.FAIL, "steps of 1 MiB", HOST, "LEAK", "steps", 3, None, (finding,))
    other = Assessment("memory_growth", Status.UNKNOWN, "not read", "host_pss_bytes", "INCONCLUSIVE", counts=False)
    return finish(history, Verdict(Status.FAIL, (failed, other), (finding,)), 1)
