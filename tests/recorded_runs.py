"""Run directories with literal events and models, as if a server had been there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.builders import CONTROL, TREATMENT, failed_load, make_facts, make_position, make_step, no_answer, run
from tritonchaos.observations import Event, Expectation, StepFinished, StepSpec
from tritonchaos.repository import ModelRepository
from tritonchaos.store import RunStore
from tritonchaos.units import MIB

HOST = "host_private_bytes"
CONFIG = """name: "ident"
backend: "planted"
input [{ name: "INPUT" data_type: TYPE_FP32 dims: [16] }]
output [{ name: "OUTPUT" data_type: TYPE_FP32 dims: [16] }]
parameters { key: "retain_host_bytes_per_failed_load" value { string_value: "1048576" } }
parameters { key: "plant" value { string_value: "[{\\"what\\": \\"fds\\"}]" } }
"""
TEMPLATE_SCENARIO = """scenario: failed-load
target: [{local: {}}]
server: {flags: {disable-auto-complete-config: true}}
models: {ident: {template: identity, variant: planted}}
phases:
  - {phase: baseline, arm: control, cycles: 8, each: [{load: ident}, {unload: ident}]}
  - {phase: wrong, cycles: 20, each: [{load: ident}, {unload: ident}]}
check: [memory_growth, server_alive, hang, expectations]
"""
CHECKS = (("memory_growth", {}), ("server_alive", {}), ("hang", {}), ("expectations", {}))
MODEL: Mapping[str, bytes | Path] = {"config.pbtxt": CONFIG.encode(), "1/engine.json": b"{}\n"}


def edit_step(name: str = "edit_config", phase: str = "wrong", **fields: Any) -> StepFinished:
    """An edit outside of cycles."""
    at = make_position(phase, TREATMENT, None)
    return StepFinished(at, 0, 1, StepSpec(name, "ident", fields, Expectation(), 30.0), None, {}, 0, 0)


def leaking_events(treatment: int = 20, per_cycle: int = MIB) -> list[Event]:
    """A flat control block, an edit, and failed loads that keep memory."""
    control = [100 * MIB] * 8
    levels = [100 * MIB + per_cycle * (cycle + 1) for cycle in range(treatment)]
    builder = run().start({HOST: 100 * MIB}).phase("baseline", CONTROL, HOST, control)
    builder.add(edit_step(set={"output[0].data_type": "TYPE_INT32"}))
    return builder.phase("wrong", TREATMENT, HOST, levels, **failed_load()).stop().events


def hanging_events(deadline_s: float = 8.0) -> list[Event]:
    """One good cycle, an edit, and a load without an answer."""
    builder = run().start({HOST: 100 * MIB}).phase("baseline", CONTROL, HOST, [100 * MIB])
    hung = make_step(reply=no_answer(), position=make_position("wrong", cycle=0), deadline_s=deadline_s)
    return builder.add(edit_step(set={"output[0].data_type": "TYPE_INT32"}), hung).stop().events


def write_run(
    folder: Path,
    events: Sequence[Event],
    *,
    scenario: str = TEMPLATE_SCENARIO,
    model: Mapping[str, bytes | Path] = MODEL,
    log: str = "I1201 01:12:46.745284 27203 server.cc:604] started\n",
    target: Mapping[str, str] | None = None,
    variant: str = "planted",
) -> Path:
    """Write the run directory; the model is edited once."""
    facts = make_facts(
        checks=CHECKS,
        variants={"ident": variant},
        target={"target": "local", "triton_version": "2.51.0", **(target or {})},
    )
    with RunStore.create(folder, facts, scenario) as store:
        repository = ModelRepository(folder / "scratch" / "models", folder / "repository")
        repository.add("ident", model)
        repository.edit_config("ident", {"output[0].data_type": "TYPE_INT32"})
        for event in events:
            store.record(event)
        store.log_file.write_text(log)
        store.finish(interrupted=False)
    return folder
