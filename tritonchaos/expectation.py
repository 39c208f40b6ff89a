"""Does a reply match what its step expected? Used by the stopping rule, by memory_growth and by expectations."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple

from tritonchaos.observations import Answer, Expectation, NoAnswer, Reply, StepFinished

# How the client begins the reason for a 200 whose tensors do not have the size or form that it declares itself.
UNREADABLE_OUTPUTS = "garbage: inference response: "
_GONE_STATES = frozenset({"READY", "LOADING", "UNLOADING"})


def error_text(reply: Answer) -> str:
    """Return the text of a refused reply: the JSON member "error" where there is one, else the whole body."""
    return _text_of(reply.body)


@lru_cache(maxsize=256)  # the same refusal comes back cycle after cycle
def _text_of(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(decoded, dict) and isinstance(decoded.get("error"), str):
        return str(decoded["error"])
    return text


def reply_text(reply: Reply | None) -> str:
    """Print a reply at a glance: "200", "400: unexpected datatype ...", "no answer (deadline)"."""
    if reply is None:
        return "skipped"
    if not isinstance(reply, Answer):
        return f"no answer ({reply.reason})"
    if reply.status < 400:
        return str(reply.status)
    return _refusal(reply.status, reply.body)


@lru_cache(maxsize=256)
def _refusal(status: int, body: bytes) -> str:
    return f"{status}: {' '.join(_text_of(body).split())}"


class Unmet(NamedTuple):
    """How a step's outcome differs from its expectation.

    Attributes:
        kind: "no_answer", "status", "error", "time", "stuck", "no_process", "not_reached", "state", "reason",
            "version", "outputs", "log", "processes" or "health".
        text: What was found and what was expected.
    """

    kind: str
    text: str


def mismatch(step: StepFinished) -> str | None:
    """Say how a step's outcome differs from its expectation, or None if it matches."""
    found = unmet(step)
    return None if found is None else found.text


def unmet(step: StepFinished) -> Unmet | None:
    """Return the first demand of its expectation that a step does not meet, or None if it meets all.

    A step that was skipped, or that asks the server nothing and observed nothing wrong, matches.
    """
    expect = step.spec.expect
    if expect.kind == "any" or "skipped" in step.observed:
        return None
    return (
        _unmet_reply(step, expect)
        or _unmet_time(step, expect)
        or _unmet_state(step, expect)
        or _unmet_version(step, expect)
        or _unmet_outputs(step, expect)
        or _unmet_log(step, expect)
        or _unmet_processes(step, expect)
        or _unmet_health(step, expect)
    )


def _unmet_reply(step: StepFinished, expect: Expectation) -> Unmet | None:
    reply = step.reply
    if reply is None:
        return None
    if isinstance(reply, NoAnswer) and reply.reason.startswith(UNREADABLE_OUTPUTS):
        return Unmet("outputs", f"its outputs cannot be read: {reply.reason.removeprefix(UNREADABLE_OUTPUTS)}")
    if isinstance(reply, NoAnswer):
        return Unmet("no_answer", f"no answer ({reply.reason}) after {reply.elapsed_ns / 1e9:.1f} s")
    wanted = _wanted_statuses(expect)
    if wanted is not None and reply.status not in wanted:
        expected = " or ".join(str(status) for status in wanted)
        return Unmet("status", f"status {reply.status}, expected {expected}: {error_text(reply)[:400]}")
    if expect.error is None:
        return None
    if reply.status < 400:
        return Unmet("status", f"status {reply.status}, expected an error with {expect.error!r}")
    if re.search(expect.error, error_text(reply)) is None:
        return Unmet("error", f"error text {error_text(reply)[:400]!r}, expected {expect.error!r}")
    return None


def _wanted_statuses(expect: Expectation) -> tuple[int, ...] | None:
    if expect.status is not None:
        return expect.status
    return None if expect.error is not None else (200,)


def _unmet_time(step: StepFinished, expect: Expectation) -> Unmet | None:
    if expect.within_s is None or step.reply is None:
        return None
    took_s = step.reply.elapsed_ns / 1e9
    if took_s <= expect.within_s:
        return None
    return Unmet("time", f"took {took_s:.2f} s, expected at most {expect.within_s:g} s")


def _unmet_state(step: StepFinished, expect: Expectation) -> Unmet | None:
    if stuck := step.observed.get("stuck"):
        return Unmet("stuck", f"model stuck in {stuck}")
    if step.observed.get("signalled") == 0:
        return Unmet("no_process", "there was no process to signal")
    if why_not := step.observed.get("not_reached"):
        return Unmet("not_reached", str(why_not))
    states = step.observed.get("states", {})
    for model, wanted in expect.state.items():
        found = states.get(model, "ABSENT")
        matches = found not in _GONE_STATES if wanted == "ABSENT" else found == wanted
        if not matches:
            return Unmet("state", f"state of {model} is {found}, expected {wanted}")
    reason = str(step.observed.get("reason", ""))
    if expect.reason is not None and re.search(expect.reason, reason) is None:
        return Unmet("reason", f"reason {reason!r}, expected {expect.reason!r}")
    return None


def _unmet_outputs(step: StepFinished, expect: Expectation) -> Unmet | None:
    if step.observed.get("match", True) or (expect.kind == "fields" and expect.outputs is None):
        return None
    return Unmet("outputs", f"outputs differ: {step.observed.get('first_mismatch', 'no detail')}")


def _unmet_version(step: StepFinished, expect: Expectation) -> Unmet | None:
    if expect.version is None:
        return None
    wanted = ", ".join(expect.version)
    if "answered_by" in step.observed:
        others = [version for version in step.observed["answered_by"] if version not in expect.version]
        return Unmet("version", f"answered by version {', '.join(others)}, expected {wanted}") if others else None
    found = step.observed.get("versions", [])
    if set(found) == set(expect.version):
        return None
    return Unmet("version", f"READY in the index: version {', '.join(found) or 'none'}, expected {wanted}")


def _unmet_log(step: StepFinished, expect: Expectation) -> Unmet | None:
    lines = str(step.observed.get("log", "")).splitlines()
    if expect.log is not None and not any(re.search(expect.log, line) for line in lines):
        return Unmet("log", f"no line of the {len(lines)} logged during the step has {expect.log!r}")
    if expect.not_log is not None:
        line = next((line for line in lines if re.search(expect.not_log, line)), None)
        if line is not None:
            return Unmet("log", f"the server logged {line[:400]!r}, expected nothing with {expect.not_log!r}")
    return None


def _unmet_processes(step: StepFinished, expect: Expectation) -> Unmet | None:
    found = step.observed.get("processes", {})
    for role, wanted in expect.processes.items():
        if found.get(role) != wanted:
            count = found.get(role, "an unknown number of")
            return Unmet("processes", f"{count} {role} processes, expected {wanted}")
    return None


def _unmet_health(step: StepFinished, expect: Expectation) -> Unmet | None:
    for name, wanted in (("live", expect.live), ("ready", expect.ready)):
        status = step.observed.get(name)
        if wanted is not None and (status == 200) is not wanted:
            found = "not answered" if status is None else f"answered {status}"
            return Unmet("health", f"v2/health/{name} was {found}, expected {'200' if wanted else 'another status'}")
    return None
