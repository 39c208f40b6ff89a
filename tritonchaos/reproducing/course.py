"""The course of a run: its main-track steps in the order in which they ran, cycle by cycle, as repro.py writes them."""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from tritonchaos.reproducing.together import Group, Groups

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
    _group: Group | None = None
    _numbers: list[int] = field(default_factory=list)

    def add(self, finished: StepFinished, steps: Sequence[dict[str, Any]], group: Group | None) -> None:
        """Add a recorded step; those that were started together are one step of repro.py, in their order there."""
        self.finished.append(finished)
        if group is None or not steps:
            self.steps += steps
            self._group = group if not steps else None
            return
        if group != self._group:
            self.steps.append({"do": "together", "gap_s": group.gap_s, "steps": []})
            self._group, self._numbers = group, []
        at = bisect(self._numbers, finished.position.step_number)
        self._numbers[at:at] = [finished.position.step_number] * len(steps)
        self.steps[-1]["steps"][at:at] = steps


@dataclass(slots=True)
class Course:
    """A run as repro.py has it.

    Attributes:
        parts: Of the main track, in order.
        track_states: (phase, track, number of an edit step there) -> what it brought about, each one once.
    """

    parts: list[Part] = field(default_factory=list)
    track_states: dict[tuple[str, str, int], list[list[tuple[str, str]]]] = field(default_factory=dict)


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


def course(
    events: Iterable[Event], edits: Sequence[Edit], groups: Groups | None = None, *, numbered: bool = False
) -> Course:
    """Return the parts of a run in order; of other tracks only what their edits brought about.

    Args:
        groups: Says which steps were started together; None: none were.
        numbered: Steps carry their number, by which a track may wait for them.
    """
    walk = _Walk(States(edits), groups or Groups(None), numbered)
    for event in events:
        walk.see(event)
    return walk.made


class _Walk:
    """Follows the events of a run from part to part."""

    def __init__(self, states: States, groups: Groups, numbered: bool) -> None:
        self.made = Course()
        self._states, self._groups, self._numbered = states, groups, numbered
        self._start_number, self._warm_up, self._was_restarted = 1, False, False

    def see(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, ServerStarted):
            self._was_restarted = self._start_number != event.start_number
            self._start_number = event.start_number
        elif isinstance(event, CycleStarted):
            self._warm_up = event.is_warm_up
        elif isinstance(event, StepFinished) and event.position.track == "main":
            self._see_step(event)
        elif isinstance(event, StepFinished) and event.spec.name in EDITS:
            at = event.position
            found = self.made.track_states.setdefault((at.phase, at.track, at.step_number), [])
            brought_about = self._states.see(event)
            if brought_about and brought_about not in found:
                found.append(brought_about)

    def _see_step(self, event: StepFinished) -> None:
        at = event.position
        part = self.made.parts[-1] if self.made.parts else None
        if part is None or (part.phase, part.cycle) != (at.phase, at.cycle):
            part = self._next_part(event)
        part.start_number = self._start_number
        steps = written(event, self._states)
        if self._numbered:
            steps = [{**step, "number": at.step_number} for step in steps]
        part.add(event, steps, self._groups.of(at))

    def _next_part(self, event: StepFinished) -> Part:
        at = event.position
        is_warm_up = self._warm_up and at.cycle is not None
        part = Part(at.phase, at.arm, at.cycle, is_warm_up, self._start_number, dict(self._states.now))
        if self._was_restarted and event.spec.name not in _STARTS:
            part.steps.append({"do": "restart_server"})
        self._was_restarted = False
        self.made.parts.append(part)
        return part


def flat(steps: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The steps themselves, those that are started together one by one."""
    for step in steps:
        if step["do"] == "together":
            yield from flat(step["steps"])
        else:
            yield dict(step)


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
    record = {"record": spec.record} if spec.record else {}
    return {**model, **via, **record, "deadline_s": spec.deadline_s, "expect": plain_expectation(spec.expect)}


def plain_expectation(expect: Expectation) -> dict[str, Any]:
    """Write an expectation as repro.py has it: what demands nothing is left out."""
    fields = {name: getattr(expect, name) for name in Expectation.__dataclass_fields__}
    kept = {name: value for name, value in fields.items() if value not in (None, {}, ())}
    return {name: _plain(value) for name, value in kept.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
