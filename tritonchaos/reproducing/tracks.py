"""Tracks beside the main one, as repro.py repeats them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tritonchaos.observations import StepSpec
from tritonchaos.reproducing.course import EDITS, Course, plain_step
from tritonchaos.reproducing.differences import as_done
from tritonchaos.scenario import Entry, RepeatEntry, Scenario, StepEntry, TrackEntry

_ASKS_NOTHING: Final = frozenset({"sample", "rung", "trim"})


def waits_for_numbers(scenario: Scenario | None) -> bool:
    """Say whether a track waits for a step by its number."""
    phases = scenario.phases if scenario is not None else ()
    return any(isinstance(t.start.step, int) for p in phases for t in p.meanwhile if t.start is not None)


def tracks_beside(scenario: Scenario | None, phase: str, course: Course, notes: list[str]) -> list[dict[str, Any]]:
    """Write the tracks of a phase; [] where it has none.

    Args:
        course: Says what the tracks' edits brought about.
        notes: Takes what repro.py does otherwise.
    """
    phases = scenario.phases if scenario is not None else ()
    found = next((one for one in phases if one.phase == phase), None)
    return [_track(track, phase, course, notes) for track in found.meanwhile] if found is not None else []


def _track(track: TrackEntry, phase: str, course: Course, notes: list[str]) -> dict[str, Any]:
    number = 0
    written: list[dict[str, Any]] = []
    for entry in _repeated(track.each):
        alone = isinstance(entry, StepEntry)
        specs = [entry.spec] if isinstance(entry, StepEntry) else [inner.spec for inner in _inner(entry)]
        steps = [step for at, spec in enumerate(specs, number) for step in _step(spec, phase, track.track, at, course)]
        number += len(specs)
        steps = as_done(steps, notes)
        steps = steps if alone or not steps else [{"do": "together", "gap_s": _gap_s(entry), "steps": steps}]
        written += [{**step, "every": entry.every} for step in steps] if entry.every > 1 else steps
    start, stop = track.start, track.stop
    begins = {"track": start.track, "step": start.step, "when": start.when, "offset_s": start.offset_s} if start else {}
    ends = {"after_s": stop.after_s, "times": stop.times}
    return {
        "track": track.track,
        "workers": track.workers,
        "rate": track.rate,
        "start": begins,
        "stop": {name: value for name, value in ends.items() if value is not None},
        "each": written,
    }


def _repeated(entries: tuple[Entry, ...]) -> Iterator[Entry]:
    """The entries with every `repeat` written out."""
    for entry in entries:
        if isinstance(entry, RepeatEntry):
            for _ in range(entry.times):
                yield from _repeated(entry.steps)
        else:
            yield entry


def _inner(entry: Entry) -> tuple[StepEntry, ...]:
    return tuple(step for step in getattr(entry, "steps", ()) if isinstance(step, StepEntry))


def _gap_s(entry: Entry) -> float:
    return float(getattr(entry, "gap_s", 0.0))


def _step(spec: StepSpec, phase: str, track: str, number: int, course: Course) -> list[dict[str, Any]]:
    """Write one step; an edit becomes the state that it brought about, if that was always the same."""
    if spec.name in EDITS:
        states = course.track_states.get((phase, track, number), [])
        if len(states) == 1:
            return [{"do": "use", "model": model, "state": state, "number": number} for model, state in states[0]]
    if spec.name in _ASKS_NOTHING:
        return []
    return [{**plain_step(spec), "number": number}]
