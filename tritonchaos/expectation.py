"""Does a reply match what its step expected? Used by the stopping rule, by memory_growth and by expectations."""

from __future__ import annotations

import json
import re

from tritonchaos.observations import Answer, Expectation, NoAnswer, StepFinished

_GONE_STATES = frozenset({"READY", "LOADING", "UNLOADING"})


def error_text(reply: Answer) -> str:
    """Return the text of a refused reply: the JSON member "error" where there is one, else the whole body."""
    text = reply.body.decode("utf-8", "replace")
    try:
        decoded = json.loads(text)
    except ValueError:
        return text
    if isinstance(decoded, dict) and isinstance(decoded.get("error"), str):
        return str(decoded["error"])
    return text


def mismatch(step: StepFinished) -> str | None:
    """Say how a step's outcome differs from its expectation, or None if it matches.

    A step that was skipped, or that asks the server nothing and observed nothing wrong, matches.
    """
    expect = step.spec.expect
    if expect.kind == "any" or "skipped" in step.observed:
        return None
    return (
        _reply_mismatch(step, expect)
        or _time_mismatch(step, expect)
        or _state_mismatch(step, expect)
        or _outputs_mismatch(step, expect)
    )


def _reply_mismatch(step: StepFinished, expect: Expectation) -> str | None:
    reply = step.reply
    if reply is None:
        return None
    if isinstance(reply, NoAnswer):
        return f"no answer ({reply.reason}) after {reply.elapsed_ns / 1e9:.1f} s"
    wanted = _wanted_statuses(expect)
    if wanted is not None and reply.status not in wanted:
        expected = " or ".join(str(status) for status in wanted)
        return f"status {reply.status}, expected {expected}: {error_text(reply)[:400]}"
    if expect.error is None:
        return None
    if reply.status < 400:
        return f"status {reply.status}, expected an error with {expect.error!r}"
    if re.search(expect.error, error_text(reply)) is None:
        return f"error text {error_text(reply)[:400]!r}, expected {expect.error!r}"
    return None


def _wanted_statuses(expect: Expectation) -> tuple[int, ...] | None:
    if expect.status is not None:
        return expect.status
    return None if expect.error is not None else (200,)


def _time_mismatch(step: StepFinished, expect: Expectation) -> str | None:
    if expect.within_s is None or step.reply is None:
        return None
    took_s = step.reply.elapsed_ns / 1e9
    return f"took {took_s:.2f} s, expected at most {expect.within_s:g} s" if took_s > expect.within_s else None


def _state_mismatch(step: StepFinished, expect: Expectation) -> str | None:
    if stuck := step.observed.get("stuck"):
        return f"model stuck in {stuck}"
    if not_reached := step.observed.get("not_reached"):
        return str(not_reached)
    states = step.observed.get("states", {})
    for model, wanted in expect.state.items():
        found = states.get(model, "ABSENT")
        matches = found not in _GONE_STATES if wanted == "ABSENT" else found == wanted
        if not matches:
            return f"state of {model} is {found}, expected {wanted}"
    reason = str(step.observed.get("reason", ""))
    if expect.reason is not None and re.search(expect.reason, reason) is None:
        return f"reason {reason!r}, expected {expect.reason!r}"
    return None


def _outputs_mismatch(step: StepFinished, expect: Expectation) -> str | None:
    if step.observed.get("match", True) or (expect.kind == "fields" and expect.outputs is None):
        return None
    return f"outputs differ: {step.observed.get('first_mismatch', 'no detail')}"
