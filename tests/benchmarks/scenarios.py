"""The scenarios that are measured, as YAML text."""

from __future__ import annotations

import json
from typing import Any

WAIT_S = 0.02
_CHECKS = [
    "memory_growth",
    "returns_to_baseline",
    "server_alive",
    "hang",
    "expectations",
    "index_consistent",
    "leftovers",
]
# At once after a load, an unload can crash Triton 2.51; a bare loop waits as long.
CYCLE = [{"load": "ident"}, {"wait": f"{round(WAIT_S * 1000)}ms"}, {"unload": "ident"}]


def cycles_beside_bare_loop(rounds: int, count: int) -> str:
    """Rounds of `count` cycles of tritonchaos and as many of the bare loop, one after the other, on one server."""
    phases: list[dict[str, Any]] = [{"phase": "begin", "cycles": 30, "each": CYCLE}]
    for number in range(rounds):
        phases.append({"phase": f"bare_{number}", "steps": [_bare_cycles(count)]})
        looked = {"before": ["look_at_tool"], "after": ["look_at_tool"]}
        phases.append({"phase": f"ours_{number}", "cycles": count, "each": CYCLE, **looked})
    return _scenario("bench-cycles", phases)


def cycles_on(target: dict[str, Any], count: int) -> str:
    """Cycles of the bare loop and of tritonchaos on a target, after some to warm up."""
    phases = [
        {"phase": "begin", "cycles": 30, "each": CYCLE},
        {"phase": "bare_0", "steps": [_bare_cycles(count)]},
        {"phase": "ours_0", "cycles": count, "each": CYCLE},
    ]
    return _scenario("bench-target", phases, target=target)


def _bare_cycles(count: int) -> dict[str, Any]:
    return {"bare_cycles": {"model": "ident", "count": count, "wait_s": WAIT_S, "deadline": "600s"}}


def many_cycles(count: int, parts: int) -> str:
    """Many cycles, with a look at tritonchaos itself after each part."""
    phases: list[dict[str, Any]] = [{"phase": "look_0", "steps": ["look_at_tool"]}]
    for number in range(1, parts + 1):
        phases.append({"phase": f"part_{number}", "cycles": count // parts, "each": CYCLE})
        phases.append({"phase": f"look_{number}", "steps": ["look_at_tool"]})
    return _scenario("bench-many-cycles", phases)


def first_cycle() -> str:
    """One cycle, with a look at the clock just before it."""
    return _scenario("bench-first-cycle", [{"phase": "one", "before": ["look_at_tool"], "cycles": 1, "each": CYCLE}])


def sampling_beside_stub(seconds: float) -> str:
    """A server with one stub of the python backend, left alone while the sampling thread reads."""
    steps = [{"load": "ident"}, {"wait": "2s"}, "look_at_tool", {"wait": f"{seconds:g}s"}, "look_at_tool"]
    return _scenario("bench-sampling", [{"phase": "idle", "steps": steps}], variant="python")


def inference_beside_bare_loop(rounds: int, seconds: float) -> str:
    """Rounds of verified inference on a track and of a bare loop with one prepared request."""
    bare = {"bare_inference": {"model": "ident", "seconds": seconds, "deadline": "600s"}}
    phases: list[dict[str, Any]] = [{"phase": "begin", "steps": [{"load": "ident"}, {"infer": "ident"}]}]
    for number in range(rounds):
        phases.append({"phase": f"bare_{number}", "steps": [bare]})
        track = {"track": "infer", "each": [{"infer": "ident"}]}
        phases.append({"phase": f"ours_{number}", "steps": [{"wait": f"{seconds:g}s"}], "meanwhile": [track]})
    return _scenario("bench-inference", phases)


def _scenario(
    name: str, phases: list[dict[str, Any]], variant: str = "planted", target: dict[str, Any] | None = None
) -> str:
    return json.dumps(
        {
            "scenario": name,
            "seed": 1,
            "target": [target or {"local": {}}],
            "server": {"flags": {"disable-auto-complete-config": True}},
            "models": {
                "ident": {"template": "identity", "variant": variant, "parameters": {"datatype": "FP32", "dims": [16]}}
            },
            "phases": phases,
            "check": _CHECKS,
        },
        indent=1,
    )
