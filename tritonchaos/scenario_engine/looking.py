"""Looks at what a step's expectation names beyond its reply: index, health, processes, log lines."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tritonchaos.client import TritonClient, parse_index
from tritonchaos.observations import Answer, Expectation, JsonValue, ModelState, Reply
from tritonchaos.scenario_engine.server import ServerLife, read_log

_ASK_S: Final = 5.0
# The server may answer before the last of its lines is written.
_LOG_WAIT_S: Final = 0.5
_LOG_PAUSE_S: Final = 0.02
# After a reload the stubs of what was replaced end in the background, in about 1.2 s.
_PROCESSES_WAIT_S: Final = 4.0
_PROCESSES_PAUSE_S: Final = 0.05
# One step's lines; more are kept from their end.
_LOG_CHARACTERS: Final = 1 << 20


def look(
    expect: Expectation, model: str | None, client: TritonClient, server: ServerLife, log: tuple[Path, int]
) -> dict[str, JsonValue]:
    """Return what was found under the keys of `StepFinished.observed`; nothing is asked that is not expected.

    Args:
        model: Of the step.
        log: The server's log, and its size before the step.
    """
    seen: dict[str, JsonValue] = {}
    if expect.state or expect.reason is not None or expect.version is not None:
        seen |= _seen_in(parse_index(client.index(_ASK_S)) or (), model)
    if expect.live is not None:
        seen["live"] = status(client.live(_ASK_S))
    if expect.ready is not None:
        seen["ready"] = status(client.ready(_ASK_S))
    if expect.processes:
        seen["processes"] = _process_counts(server, expect.processes)
    if expect.log is not None or expect.not_log is not None:
        seen["log"] = _lines(*log, wanted=expect.log)
    return seen


def status(reply: Reply | None) -> int | None:
    """HTTP status of a reply; None without an answer."""
    return reply.status if isinstance(reply, Answer) else None


def _seen_in(index: tuple[ModelState, ...], model: str | None) -> dict[str, JsonValue]:
    """States and reason as the index has them; with several versions the most alive one counts."""
    order = ("READY", "LOADING", "UNLOADING", "UNAVAILABLE", "")
    states: dict[str, str] = {}
    for entry in sorted(index, key=lambda entry: order.index(entry.state) if entry.state in order else 0, reverse=True):
        states[entry.name] = entry.state or "ABSENT"
    reasons = [entry.reason for entry in index if entry.name == model and entry.reason]
    versions = sorted(entry.version for entry in index if entry.name == model and entry.state == "READY")
    return {"states": states, "reason": "; ".join(reasons), "versions": versions}


def _process_counts(server: ServerLife, wanted: Mapping[str, int]) -> dict[str, int]:
    """Count processes by role; where the count is not the wanted one, it is given time to become it."""
    end = time.monotonic() + _PROCESSES_WAIT_S
    while True:
        found = server.process_counts()
        is_as_wanted = all(found.get(role) == count for role, count in wanted.items())
        if is_as_wanted or not found or time.monotonic() >= end:
            return found
        time.sleep(_PROCESSES_PAUSE_S)


def _lines(log_file: Path, start: int, wanted: str | None) -> str:
    """Text of the log since the step began; where a line is wanted, it is waited for a moment."""
    end = time.monotonic() + _LOG_WAIT_S
    while True:
        text = read_log(log_file, start)
        if wanted is None or re.search(wanted, text) or time.monotonic() >= end:
            return text[-_LOG_CHARACTERS:]
        time.sleep(_LOG_PAUSE_S)
