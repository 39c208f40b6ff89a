"""What must hold between the parts of a scenario file, beyond the form of each part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tritonchaos.observations import JsonValue
from tritonchaos.plugins import Registry
from tritonchaos.scenario.problems import Problem, YamlPath, one_of, shown

_BODIES: Final = ("each", "arms", "steps", "ladder")
_NOT_BESIDE: Final[Mapping[str, Mapping[str, str]]] = {
    "steps": {
        "arm": "no arm: plain steps belong to none",
        "cycles": "no cycles, or `each` instead of `steps`",
        "amplify": "no amplify: plain steps are not measured",
        "warm_up_cycles": "no cycles, or `each` instead of `steps`",
        "before": "all of them in `steps`",
        "after": "all of them in `steps`",
    },
    "ladder": {
        "arm": "no arm: the ladder belongs to none",
        "cycles": "no cycles, the ladder is climbed once",
        "amplify": "no amplify, the ladder is climbed once",
        "warm_up_cycles": "no cycles, the ladder is climbed once",
        "before": "a phase of its own before it",
        "after": "a phase of its own after it",
    },
    "arms": {
        "arm": "either `arm` or `arms`",
        "before": "it inside arms.control and arms.treatment",
        "after": "it inside arms.control and arms.treatment",
    },
}


def phase_problems(phases: JsonValue) -> Iterator[Problem]:
    """Check the keys that exclude or need each other, and the names of phases and tracks."""
    if not isinstance(phases, list):
        return
    yield from _duplicates(phases, "phase", ("phases",))
    for number, phase in enumerate(phases):
        if isinstance(phase, Mapping):
            path: YamlPath = ("phases", number)
            yield from _body_problems(phase, path)
            yield from _track_problems(phase.get("meanwhile"), (*path, "meanwhile"))


def _body_problems(phase: Mapping[str, JsonValue], path: YamlPath) -> Iterator[Problem]:
    bodies = [key for key in _BODIES if key in phase]
    if len(bodies) != 1:
        found = f"both {' and '.join(bodies)}" if bodies else f"none of {', '.join(_BODIES)}"
        yield Problem(path, found, "exactly one of them")
        return
    for key, expected in _NOT_BESIDE.get(bodies[0], {}).items():
        if key in phase:
            yield Problem((*path, key), f"{key} beside {bodies[0]}", expected, at_key=True)
    if bodies[0] not in ("steps", "ladder") and "cycles" not in phase:
        yield Problem(path, "no key 'cycles'", "how often to run it, such as cycles: 6")
    cycles = phase.get("cycles")
    if phase.get("amplify") is True and isinstance(cycles, Mapping) and cycles.get("until") == "flat":
        yield Problem((*path, "amplify"), "amplify with until: flat", "until: verdict: a flat phase ends at once")


def _track_problems(tracks: JsonValue, path: YamlPath) -> Iterator[Problem]:
    if not isinstance(tracks, list):
        return
    yield from _duplicates(tracks, "track", path)
    yield from _start_problems([track for track in tracks if isinstance(track, Mapping)], path)
    for number, track in enumerate(tracks):
        if isinstance(track, Mapping) and track.get("track") in ("main", "coin"):
            where = (*path, number, "track")
            yield Problem(where, shown(track["track"]), "another name: this one is taken by the schedule itself")


def _start_problems(tracks: list[Mapping[str, JsonValue]], path: YamlPath) -> Iterator[Problem]:
    names = [name for track in tracks if isinstance(name := track.get("track"), str)]
    for number, track in enumerate(tracks):
        start = track.get("start")
        at = start.get("at") if isinstance(start, Mapping) else None
        other = at.get("track", "main") if isinstance(at, Mapping) else None
        choices = ["main", *(name for name in names if name != track.get("track"))]
        if isinstance(other, str) and other not in choices:
            where = (*path, number, "start", "at", "track")
            yield Problem(where, f"the track {shown(other)}", one_of(choices))


def _duplicates(entries: list[JsonValue], key: str, path: YamlPath) -> Iterator[Problem]:
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        name = entry.get(key) if isinstance(entry, Mapping) else None
        if not isinstance(name, str):
            continue
        if name in seen:
            yield Problem((*path, number, key), f"the {key} {shown(name)} a second time", "names that differ")
        seen.add(name)


def verdict_problems(document_at: Callable[[YamlPath], JsonValue], checkers: Registry[Any]) -> Iterator[Problem]:
    """Check that `until: verdict` and `amplify` have exactly one checker that can give it, and see what is flat."""
    phases = document_at(("phases",))
    for number in range(len(phases) if isinstance(phases, list) else 0):
        path: YamlPath = ("phases", number, "cycles", "until")
        word = "verdict"
        if document_at(path) != "verdict":
            path, word = ("phases", number, "amplify"), "amplify"
            if document_at(path) is not True:
                continue
        names = _names(document_at(("check",)))
        watching = [name for name in names if name in checkers and hasattr(checkers[name], "watch")]
        if len(watching) != 1:
            able = [name for name in checkers.names() if hasattr(checkers[name], "watch")]
            found = f"{word} with {' and '.join(watching)} in `check`" if watching else f"{word} with no such check"
            yield Problem(path, found, f"exactly one check that can end a phase: {one_of(able)}")


def _names(entries: JsonValue) -> list[str]:
    names: list[str] = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, str):
            names.append(entry)
        elif isinstance(entry, Mapping):
            names.extend(str(name) for name in entry)
    return names
