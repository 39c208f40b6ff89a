"""Compares what a step saw with what it must see."""

from __future__ import annotations

import re
from typing import Any


def unmet(step: dict[str, Any], seen: dict[str, Any]) -> tuple[str, str] | None:
    """Return (kind, text) of the first thing that is not as the step's `expect` says; None: all is.

    Args:
        step: With "expect": {"kind": "ok", "any" or "fields", and what is demanded}.
        seen: What `Steps.apply` recorded.
    """
    expect = step["expect"]
    if expect["kind"] == "any":
        return None
    if seen.get("no_answer"):
        return "no_answer", "no answer ({})".format(seen["no_answer"])
    if seen.get("stuck"):
        return "stuck", "the model stayed {}".format(seen["stuck"])
    checks = (unmet_reply, unmet_state, unmet_outputs, unmet_version, unmet_log, unmet_processes, unmet_health)
    return next((found for found in (check(expect, seen) for check in checks) if found is not None), None)


def unmet_reply(expect: dict[str, Any], seen: dict[str, Any]) -> tuple[str, str] | None:
    """Status, text of a refusal, and time."""
    status = seen.get("status")
    if status is None:
        return None
    told = "{} {}".format(status, seen.get("text", ""))[:300].strip()
    wanted = expect.get("status") or ([200] if expect["kind"] == "ok" else None)
    if wanted is not None and status not in wanted:
        return "status", "answered {}, expected {}".format(told, " or ".join(map(str, wanted)))
    if expect.get("error") is not None:
        if status < 400:
            return "status", "answered {}, expected an error with {!r}".format(status, expect["error"])
        if re.search(expect["error"], seen.get("text", "")) is None:
            return "error", "answered {}, expected an error with {!r}".format(told, expect["error"])
    if expect.get("within_s") is not None and seen["took_s"] > expect["within_s"]:
        return "time", "took {:.3g} s, expected at most {:g} s".format(seen["took_s"], expect["within_s"])
    return None


def unmet_state(expect: dict[str, Any], seen: dict[str, Any]) -> tuple[str, str] | None:
    """States in the index, and the reason there."""
    for model, wanted in expect.get("state", {}).items():
        found = seen.get("index", {}).get(model, "ABSENT")
        is_met = found not in ("READY", "LOADING", "UNLOADING") if wanted == "ABSENT" else found == wanted
        if not is_met:
            return "state", "state of {} is {}, expected {}".format(model, found, wanted)
    if expect.get("reason") is not None and re.search(expect["reason"], seen.get("reason", "")) is None:
        return "reason", "reason {!r}, expected {!r}".format(seen.get("reason", ""), expect["reason"])
    return None


def unmet_outputs(expect: dict[str, Any], seen: dict[str, Any]) -> tuple[str, str] | None:
    """Outputs of an inference."""
    if seen.get("match", True) or (expect["kind"] == "fields" and expect.get("outputs") is None):
        return None
    return "outputs", seen.get("why", "outputs differ")


def unmet_version(expect: dict[str, Any], seen: dict[str, Any]) -> tuple[str, str] | None:
    """Versions that are READY, or the one that answered an inference."""
    wanted = expect.get("version")
    if wanted is None:
        return None
    if seen.get("answered_by"):
        found = [seen["answered_by"]]
        return None if found[0] in wanted else ("version", "answered by version {}, expected {}".format(found, wanted))
    found = seen.get("versions", [])
    return None if set(found) == set(wanted) else ("version", "READY: version {}, expected {}".format(found, wanted))


def unmet_log(expect: dict[str, Any], seen: dict[str, Any]) -> tuple[str, str] | None:
    """What the server logged during the step."""
    lines = seen.get("log", "").splitlines()
    wanted, unwanted = expect.get("log"), expect.get("not_log")
    if wanted is not None and not any(re.search(wanted, line) for line in lines):
        return "log", "no line of the {} logged during the step has {!r}".format(len(lines), wanted)
    line = next((line for line in lines if unwanted is not None and re.search(unwanted, line)), None)
    return (
        None if line is None else ("log", "the server logged {!r}, expected nothing with {!r}".format(line, unwanted))
    )


def unmet_processes(expect: dict[str, Any], seen: dict[str, Any]) -> tuple[str, str] | None:
    """Number of processes by role."""
    for role, wanted in expect.get("processes", {}).items():
        found = seen.get("processes", {}).get(role)
        if found != wanted:
            return "processes", "{} {} processes, expected {}".format(found, role, wanted)
    return None


def unmet_health(expect: dict[str, Any], seen: dict[str, Any]) -> tuple[str, str] | None:
    """Live and ready."""
    for name in ("live", "ready"):
        wanted, found = expect.get(name), seen.get(name)
        if wanted is not None and (found == 200) is not wanted:
            return "health", "v2/health/{} answered {}, expected {}".format(name, found, "200" if wanted else "another")
    return None
