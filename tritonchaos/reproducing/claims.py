"""What a finding claims, in the form in which repro.py compares it with what it sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tritonchaos.checkers.server_alive import signal_name
from tritonchaos.errors import UsageError
from tritonchaos.observations import (
    Answer,
    Arm,
    History,
    Left,
    Position,
    Probe,
    ServerExited,
    ServerStopped,
    StepFinished,
)
from tritonchaos.post_unload import cycle_readings
from tritonchaos.reproducing.course import plain_expectation
from tritonchaos.reproducing.differences import label_of
from tritonchaos.reproducing.latencies import slow_steps
from tritonchaos.reproducing.program.expecting import unmet
from tritonchaos.verdict import Finding

# The same defect keeps between half and twice as much: page sizes and allocators differ from machine to machine.
FACTOR: Final = 2.0
_LEFT_WORDS: Final = {"process": "processes", "shm": "shared memory", "temp": "temp files"}
_FIRST_CYCLES: Final = 3  # as `returns_to_baseline`
_LEAST_CYCLES: Final = 6


def claim_of(finding: Finding, history: History) -> dict[str, Any]:
    """Return the claim of a finding.

    Raises:
        UsageError: repro.py has no rule for it.
    """
    made = _claim(finding, history)
    if made is None:
        raise UsageError(
            f"the finding {finding.id} ({finding.kind} by {finding.checker}) cannot be put into a bundle yet",
            hint="choose another one with --finding, or hand on the scenario and the run directory",
        )
    return made


def _claim(finding: Finding, history: History) -> dict[str, Any] | None:
    if finding.kind in ("leak", "leftover") and finding.metric and finding.bytes_per_cycle:
        return _growth(finding)
    if finding.kind == "retention" and finding.metric:
        return _retained(finding, history)
    if finding.kind == "hang":
        return _no_answer(finding, history)
    if finding.kind == "crash":
        return _crash(finding, history)
    if finding.kind == "will_not_stop":
        return {"by": "will_not_stop"}
    if finding.kind == "leftover" and finding.checker == "leftovers":
        return _left(finding, history)
    if finding.checker == "index_consistent":
        return _inconsistent(finding, history)
    if finding.checker == "latency":
        return slow_steps(finding, history)
    return _unmet(finding, history)


def _growth(finding: Finding) -> dict[str, Any]:
    arm = finding.position.arm if finding.position is not None and finding.position.arm else Arm.TREATMENT
    return {
        "by": "growth",
        "metric": finding.metric,
        "arm": arm.value,
        "bytes_per_cycle": round(float(finding.bytes_per_cycle or 0.0), 3),
        "interval_bytes_per_cycle": [round(float(end), 3) for end in finding.interval_bytes_per_cycle or ()],
        "factor": FACTOR,
        "least_cycles": _LEAST_CYCLES,
    }


def _retained(finding: Finding, history: History) -> dict[str, Any]:
    metric = finding.metric or ""
    levels = [r.values[metric] for r in cycle_readings(history) if r.is_judged and metric in r.values]
    return {
        "by": "retained",
        "metric": metric,
        "retained_bytes": levels[-1] - levels[:_FIRST_CYCLES][-1],
        "first_cycles": _FIRST_CYCLES,
        "factor": FACTOR,
        "least_cycles": _FIRST_CYCLES + 1,
    }


def _no_answer(finding: Finding, history: History) -> dict[str, Any] | None:
    step = step_at(history, finding.position)
    if step is None:
        return None
    return {"by": "no_answer", **_place(step), "deadline_s": step.spec.deadline_s}


def _crash(finding: Finding, history: History) -> dict[str, Any]:
    exited = next((e for e in history.of(ServerExited) if e.position == finding.position), None)
    stopped = next((s for s in history.of(ServerStopped) if signal_name(s.exit_code)), None)
    survived = finding.title.endswith("and went on")
    exit_code = exited.exit_code if exited is not None else stopped.exit_code if stopped is not None else None
    if survived and finding.evidence:
        exit_code = -int(finding.evidence[0].partition("(")[2].partition(")")[0] or 0)
    step = step_at(history, finding.position)
    return {
        "by": "crash",
        "exit_code": exit_code,
        "survived": survived,
        "step": "" if step is None or step.position.track != "main" else _label(step),
        # What a data race kills is seen by whichever call comes next.
        "any_step": True,
    }


def _left(finding: Finding, history: History) -> dict[str, Any] | None:
    kind = next((kind for kind, words in _LEFT_WORDS.items() if words in finding.title), None)
    count = sum(event.kind == kind for event in history.of(Left))
    return {"by": "left", "kind": kind, "count": count} if kind is not None and count else None


def _inconsistent(finding: Finding, history: History) -> dict[str, Any] | None:
    step = step_at(history, finding.position)
    probe = _probe_of(history, step) if step is not None else None
    if step is None or probe is None or not isinstance(step.reply, Answer):
        return None
    ready = any(entry.name == probe.model and entry.state == "READY" for entry in probe.index or ())
    said = [step.reply.status == 200, ready, probe.model_ready == 200, probe.metadata == 200]
    return {"by": "inconsistent", **_place(step), "model": probe.model, "said": said}


def _probe_of(history: History, step: StepFinished) -> Probe | None:
    """What the server said of the model after the step; of an inference, what it had said before."""
    last: Probe | None = None
    for event in history.events:
        if isinstance(event, Probe):
            if event.position == step.position:
                return event
            last = event if event.model == step.spec.model else last
        elif isinstance(event, StepFinished) and event.position == step.position and step.spec.name == "infer":
            return last
    return None


def _unmet(finding: Finding, history: History) -> dict[str, Any] | None:
    step = step_at(history, finding.position)
    if step is None:
        return None
    found = unmet({"expect": plain_expectation(step.spec.expect)}, seen_of(step))
    if found is None:
        return None
    kind, text = found
    return {"by": "unmet", **_place(step), "kind": kind, "text": text}


def _place(step: StepFinished) -> dict[str, Any]:
    """The step by which repro.py finds it again; "track" is "" on the main one."""
    track = "" if step.position.track == "main" else step.position.track
    return {"step": _label(step), "phase": step.position.phase, "track": track}


def step_at(history: History, position: Position | None) -> StepFinished | None:
    """The step that was recorded at a position."""
    return next((step for step in history.of(StepFinished) if step.position == position), None)


def seen_of(step: StepFinished) -> dict[str, Any]:
    """What a recorded step saw, in the form of repro.py."""
    observed: Mapping[str, Any] = step.observed
    seen: dict[str, Any] = {"took_s": (step.t_ns - step.started_ns) / 1e9}
    if isinstance(step.reply, Answer):
        from tritonchaos.expectation import error_text

        seen |= {"status": step.reply.status, "took_s": step.reply.elapsed_ns / 1e9}
        seen |= {"text": error_text(step.reply)} if step.reply.status >= 400 else {}
    elif step.reply is not None:
        seen["no_answer"] = step.reply.reason
    names = {"stuck": "stuck", "states": "index", "reason": "reason", "versions": "versions", "log": "log"}
    names |= {"processes": "processes", "live": "live", "ready": "ready", "match": "match"}
    seen |= {ours: observed[theirs] for theirs, ours in names.items() if theirs in observed}
    if not observed.get("match", True):
        seen["why"] = str(observed.get("first_mismatch", ""))
    if observed.get("answered_by"):
        seen["answered_by"] = str(observed["answered_by"][0])
    return seen


def _label(step: StepFinished) -> str:
    return label_of({"do": step.spec.name, "model": step.spec.model, "path": step.spec.fields.get("path")})
