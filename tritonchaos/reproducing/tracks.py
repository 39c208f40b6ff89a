"""Tracks beside the main one, as repro.py repeats them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tritonchaos.errors import ScenarioError, UsageError
from tritonchaos.reproducing.course import plain_step
from tritonchaos.reproducing.recorded import Recorded
from tritonchaos.scenario import Entry, Phase, RepeatEntry, StepEntry, TrackEntry, parse_scenario

_WRITTEN: Final = frozenset({"load", "unload", "infer", "request", "wait", "wait_for"})
_OTHERWISE: Final = "choose another finding with --finding, or hand on the scenario and the run directory"


def tracks_beside(recorded: Recorded, phase: str) -> list[dict[str, Any]]:
    """Write the tracks of a phase; [] where it has none.

    Raises:
        UsageError: One of them does what repro.py cannot do beside its own steps.
    """
    return [_track(track) for track in _phase(recorded, phase).meanwhile] if _has_tracks(recorded, phase) else []


def _has_tracks(recorded: Recorded, phase: str) -> bool:
    phases = recorded.scenario.get("phases") or []
    return any(isinstance(p, dict) and p.get("phase") == phase and p.get("meanwhile") for p in phases)


def _phase(recorded: Recorded, name: str) -> Phase:
    try:
        scenario = parse_scenario((recorded.folder / "scenario.yaml").read_text(encoding="utf-8"), "scenario.yaml")
    except ScenarioError as error:
        raise UsageError(f"the tracks beside {name} cannot be read: {error.message}", hint=_OTHERWISE) from error
    return next(phase for phase in scenario.phases if phase.phase == name)


def _track(track: TrackEntry) -> dict[str, Any]:
    if track.start is not None or track.stop.after_s is not None or track.stop.times is not None:
        raise UsageError(f"the track {track.track} begins or ends at a moment of its own", hint=_OTHERWISE)
    each = [step for entry in track.each for step in _steps(entry, track.track)]
    pause_s = track.workers / track.rate if track.rate else 0.0
    return {"track": track.track, "workers": track.workers, "pause_s": pause_s, "each": each}


def _steps(entry: Entry, track: str) -> Iterator[dict[str, Any]]:
    if isinstance(entry, RepeatEntry):
        for _ in range(entry.times):
            for inner in entry.steps:
                yield from _steps(inner, track)
    elif isinstance(entry, StepEntry) and entry.spec.name in _WRITTEN and entry.spec.via == "http":
        yield plain_step(entry.spec)
    else:
        name = entry.spec.label() if isinstance(entry, StepEntry) else "together"
        raise UsageError(
            f"the track {track} has {name}, which a bundle does not do beside its own steps", hint=_OTHERWISE
        )
