"""The course of a run: its main-track steps in the order in which they ran, cycle by cycle, as repro.py writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tritonchaos.observations import (
    Arm,
    CycleStarted,
    Event,
    Expectation,
    ServerStarted,
    StepFinished,
    StepSpec,
)
from tritonchaos.reproducing.recorded import Edit

EDITS: Final = frozenset({"edit_config", "put_file", "delete_file", "add_version", "restore"})
_STARTS: Final = frozenset({"start_server", "restart_server"})
_ASKS_NOTHING: Final = frozenset({"wait", "settle", "signal", "stop_server", *_STARTS})


@dataclass(slots=True)
class Part:
    """One cycle, or the steps of a phase outside of its cycles.

    Attributes:
        cycle: None outside cycles.
        start_number: Which start of the server it ran on.
        before: Model -> state of its files when the part began.
        steps: As repro.py writes them.
        finished: What was recorded of the steps, shape [steps of the run].
    """

    phase: str
    arm: Arm | None
    cycle: int | None
    is_warm_up: bool
    start_number: int
    before: Mapping[str, str]
    steps: list[dict[str, Any]] = field(default_factory=list)
    finished: list[StepFinished] = field(default_factory=list)


class States:
    """Follows the states of the models' files through the run's edits.

    The archive has a line for each edit that changed something. Which edits did not is seen by their label, and by what
    the same edit did to the same state before.
    """

    def __init__(self, edits: Sequence[Edit]) -> None:
        first = {edit.model: edit.state for edit in edits if edit.label.startswith(("add-", "copy_from"))}
        self.now: dict[str, str] = first
        self._waiting = [edit for edit in edits if not edit.label.startswith(("add-", "copy_from"))]
        self._known: dict[tuple[str, str, str], str] = {}

    def see(self, step: StepFinished) -> list[tuple[str, str]]:
        """Take an edit step; return the (model, state) pairs that it brought about."""
        models = [step.spec.model] if step.spec.model is not None else sorted(self.now)
        return [(model, state) for model in models if (state := self._see(step, model)) is not None]

    def _see(self, step: StepFinished, model: str) -> str | None:
        key = (model, self.now.get(model, ""), json.dumps([step.spec.name, dict(step.spec.fields)], sort_keys=True))
        is_next = bool(self._waiting) and self._waiting[0].label == _label(step.spec.name, model)
        if key in self._known:
            is_next = is_next and self._known[key] != self.now.get(model)
        if not is_next:
            self._known[key] = self.now.get(model, "")
            return None
        self.now[model] = self._known[key] = self._waiting.pop(0).state
        return self.now[model]


def _label(name: str, model: str) -> str:
    return f"{name}-{model}"


def course(events: Sequence[Event], edits: Sequence[Edit]) -> list[Part]:
    """Return the parts of a run in order; steps of other tracks are left out."""
    return list(_parts(events, States(edits)))


def _parts(events: Sequence[Event], states: States) -> Iterator[Part]:
    part: Part | None = None
    start_number, warm_up = 1, False
    was_restarted = False
    for event in events:
        if isinstance(event, ServerStarted):
            was_restarted, start_number = start_number != event.start_number, event.start_number
        elif isinstance(event, CycleStarted):
            warm_up = event.is_warm_up
        elif isinstance(event, StepFinished) and event.position.track == "main":
            at = event.position
            if part is None or (part.phase, part.cycle) != (at.phase, at.cycle):
                if part is not None:
                    yield part
                part = Part(
                    at.phase, at.arm, at.cycle, warm_up and at.cycle is not None, start_number, dict(states.now)
                )
                if was_restarted and event.spec.name not in _STARTS:
                    part.steps.append({"do": "restart_server"})
                was_restarted = False
            part.start_number = start_number
            part.finished.append(event)
            part.steps += written(event, states)
    if part is not None:
        yield part


def written(step: StepFinished, states: States) -> list[dict[str, Any]]:
    """Write a recorded step as repro.py has it; [] for one that it does without."""
    spec = step.spec
    if "skipped" in step.observed:
        return []
    if spec.name in EDITS:
        return [{"do": "use", "model": model, "state": state} for model, state in states.see(step)]
    if spec.name in ("sample", "rung", "trim"):
        return []
    return [plain_step(spec)]


def plain_step(spec: StepSpec) -> dict[str, Any]:
    """Write a step that asks the server, or waits, as repro.py has it."""
    own = {name: value for name, value in spec.fields.items() if value not in (None, [], {}, False, "")}
    return {"do": spec.name, **own, **({} if spec.name in _ASKS_NOTHING else _asked(spec))}


def _asked(spec: StepSpec) -> dict[str, Any]:
    model = {} if spec.model is None else {"model": spec.model}
    via = {} if spec.via == "http" else {"via": spec.via}
    return {**model, **via, "deadline_s": spec.deadline_s, "expect": plain_expectation(spec.expect)}


def plain_expectation(expect: Expectation) -> dict[str, Any]:
    """Write an expectation as repro.py has it: what demands nothing is left out."""
    fields = {name: getattr(expect, name) for name in Expectation.__dataclass_fields__}
    kept = {name: value for name, value in fields.items() if value not in (None, {}, ())}
    return {name: _plain(value) for name, value in kept.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
