"""What repro.py does otherwise than the recorded run, since it has only HTTP and only its own process tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

# What program/steps.py can do.
DONE: Final = frozenset(
    {
        *("load", "unload", "infer", "request", "wait", "wait_for", "settle", "signal", "use", "together"),
        *("start_server", "stop_server", "restart_server", "pause", "unpause"),
    }
)
_CONTAINER: Final = frozenset({"limit_memory", "cut_network", "join_network", "fill_scratch", "free_scratch"})


def as_done(steps: Sequence[Mapping[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """Write steps as repro.py can do them; what differs from the recorded run is added to `notes`, each thing once."""
    return list(_as_done(steps, notes))


def _as_done(steps: Sequence[Mapping[str, Any]], notes: list[str]) -> Iterator[dict[str, Any]]:
    for step in steps:
        if step["do"] == "together":
            if inner := as_done(step["steps"], notes):
                yield {**step, "steps": inner}
            continue
        label = label_of(step)
        if step["do"] not in DONE:
            _note(notes, _why_not(label, step["do"]))
            continue
        if step["do"] == "pause":
            _note(notes, "the container was frozen; here the server and its children are sent SIGSTOP and SIGCONT")
        way = step.get("via", "http")
        if way != "http":
            went = "over HTTP and gRPC by turns" if way == "both" else "over gRPC"
            _note(notes, f"{label} went {went}; here it goes over HTTP")
        yield {name: value for name, value in step.items() if name != "via"}


def _why_not(label: str, name: str) -> str:
    if name in _CONTAINER:
        return f"{label} is left out: it is done to a container from outside"
    return f"{label} is left out: repro.py has no such step"


def _note(notes: list[str], text: str) -> None:
    if text not in notes:
        notes.append(text)


def label_of(step: Mapping[str, Any]) -> str:
    """A step at a glance, such as "load ident" or "request /v2/health/live"."""
    return f"{step['do']} {step.get('model') or step.get('path') or ''}".strip()
