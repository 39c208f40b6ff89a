"""What makes cycles alike: everything that was seen in them but stamps, times, log offsets and values of readings.

What is left out here must be harmless to everybody who skims (see `observations.skimming`): it is counted without being
looked at. When in doubt it stays in: cycles are then told apart that are alike, which costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from tritonchaos.cycle_reader import BEFORE_NEXT, RECORD
from tritonchaos.observations import (
    Answer,
    CycleFinished,
    CycleStarted,
    Event,
    NoAnswer,
    Position,
    Probe,
    Reading,
    Reply,
    SettleWindow,
    StepFinished,
    StepSpec,
)

# Readings whose values the columns of a cycle hold.
_IN_COLUMNS: Final = frozenset({"loaded", RECORD, BEFORE_NEXT})
# A step outside the main track, or of another cycle: the cycle is like no other.
_NOTHING: Final = None


class Likeness:
    """Tells what of an event of a cycle must be the same in another one.

    Args:
        number: Numbers each different step; the same ones get the same number.
    """

    def __init__(self, number: Callable[[StepSpec], int]) -> None:
        self._number = number

    def of(self, event: Event, cycle: CycleStarted) -> Hashable | None:
        """Return what must be the same; None: no other cycle can be like this one.

        Args:
            cycle: The cycle that it happened in.
        """
        if isinstance(event, StepFinished):
            return self._step(event) if _is_of(event.position, cycle) else _NOTHING
        if isinstance(event, Probe):
            return _probe(event) if _is_of(event.position, cycle) else _NOTHING
        if isinstance(event, Reading):
            return _reading(event) if _is_of(event.position, cycle) else _NOTHING
        if isinstance(event, SettleWindow):
            is_its = (event.phase, event.arm, event.cycle) == (cycle.phase, cycle.arm, cycle.cycle)
            return _window(event) if is_its else _NOTHING
        if isinstance(event, CycleStarted):
            return ("started", event.phase, event.arm, event.is_warm_up)
        if isinstance(event, CycleFinished):
            return ("finished",) if (event.phase, event.cycle) == (cycle.phase, cycle.cycle) else _NOTHING
        return _NOTHING

    def _step(self, step: StepFinished) -> Hashable:
        expect, reply = step.spec.expect, step.reply
        # What is held against a time is alike only if it comes out alike.
        is_in_time = expect.within_s is None or reply is None or reply.elapsed_ns / 1e9 <= expect.within_s
        at, spec = step.position.step_number, self._number(step.spec)
        return ("step", at, spec, _reply(reply), is_in_time, _observed(step.observed))


def _is_of(position: Position | None, cycle: CycleStarted) -> bool:
    if position is None or position.track != "main":
        return False
    return (position.phase, position.arm, position.cycle) == (cycle.phase, cycle.arm, cycle.cycle)


def _reply(reply: Reply | None) -> Hashable:
    if isinstance(reply, Answer):
        return (reply.status, reply.body)
    return ("none", reply.reason) if isinstance(reply, NoAnswer) else None


def _observed(observed: Mapping[str, Any]) -> Hashable:
    """Return what a step saw, without how long anything took; as text, which tells 1 from True and from 1.0."""
    if not observed:
        return ""
    return repr({k: v for k, v in observed.items() if not k.endswith("_ns") or type(v) is not int} | _times(observed))


def _times(observed: Mapping[str, Any]) -> dict[str, str]:
    return {key: "ns" for key, value in observed.items() if key.endswith("_ns") and type(value) is int}


def _probe(probe: Probe) -> Hashable:
    index = None if probe.index is None else tuple((e.name, e.version, e.state, e.reason) for e in probe.index)
    said = (probe.model_ready, probe.metadata, probe.live, probe.ready)
    return ("probe", probe.position.step_number, probe.model, index, said)


def _reading(reading: Reading) -> Hashable | None:
    if reading.name not in _IN_COLUMNS or reading.position is None:
        return _NOTHING
    return ("reading", reading.name, reading.position.step_number, tuple(reading.values))


def _window(window: SettleWindow) -> Hashable:
    return ("window", window.start_number, tuple(window.values), window.settled)
