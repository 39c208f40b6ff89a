"""When a track beside the main one starts and when it stops, and how often it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from tritonchaos.observations import JsonValue, StepSpec
from tritonchaos.scenario.problems import shown
from tritonchaos.units import parse_rate, parse_seconds

_MOST_WORKERS: Final = 256
_START_KEYS: Final = ("track", "step", "when", "offset")
_WHEN: Final = ("started", "finished")


@dataclass(frozen=True, slots=True)
class StartRule:
    """Wait for a step of another track; a track that has stopped by its own rule waits for the next such step.

    Attributes:
        track: Name of the other track; "main" is the main one.
        step: Number of the step within its cycle or round, or its label such as "load ident via grpc", or the first
            words of it.
        when: The step is about to be applied, or has been.
        offset_s: How long after that.
    """

    track: str
    step: int | str
    when: Literal["started", "finished"] = "started"
    offset_s: float = 0.0

    def is_met_by(self, track: str, step_number: int, spec: StepSpec, when: str) -> bool:
        """Say whether this is the step that is waited for."""
        if (track, when) != (self.track, self.when):
            return False
        if isinstance(self.step, int):
            return step_number == self.step
        return self.step in (spec.name, f"{spec.name} {spec.model}", spec.label())


@dataclass(frozen=True, slots=True)
class StopRule:
    """When a track ends: after a time, after a number of rounds, or (neither) when the main track is done.

    Attributes:
        times: Rounds over all workers.
    """

    after_s: float | None = None
    times: int | None = None


def _start(raw: JsonValue) -> StartRule:
    expected = "{at: {track: NAME, step: NUMBER or LABEL, when: started | finished, offset: TIME}}"
    at = raw.get("at") if isinstance(raw, Mapping) and set(raw) == {"at"} else None
    if not isinstance(at, Mapping) or not set(at) <= set(_START_KEYS) or "step" not in at:
        raise ValueError(f"found {shown(raw)}, expected {expected}")
    step, track, when = at["step"], at.get("track", "main"), at.get("when", "started")
    is_number = isinstance(step, int) and not isinstance(step, bool) and step >= 0
    if not (is_number or (isinstance(step, str) and step)):
        raise ValueError(f"found step {shown(step)}, expected the number of a step or its label such as 'load ident'")
    if not isinstance(track, str) or when not in _WHEN:
        raise ValueError(f"found {shown(raw)}, expected {expected}")
    return StartRule(track, step, when, parse_seconds(at.get("offset", 0)))


def _stop(raw: JsonValue) -> StopRule:
    if raw == {"with": "main"}:
        return StopRule()
    key, value = next(iter(raw.items())) if isinstance(raw, Mapping) and len(raw) == 1 else ("", None)
    if key == "after" and (after_s := parse_seconds(value)) > 0:
        return StopRule(after_s=after_s)
    if key == "times" and isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return StopRule(times=value)
    raise ValueError(f"found {shown(raw)}, expected {{with: main}}, {{after: TIME}} or {{times: NUMBER}}")


def _rate(raw: JsonValue) -> float | None:
    if raw is None:
        return None
    rate = parse_rate(raw)
    if rate <= 0:
        raise ValueError(f'found {shown(raw)}, expected a rate above 0 such as "50/s"')
    return rate


_TIME: Final[dict[str, Any]] = {"type": ["number", "string"]}
_AT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "track": {"type": "string"},
        "step": {"type": ["integer", "string"]},
        "when": {"enum": list(_WHEN)},
        "offset": _TIME,
    },
    "required": ["step"],
    "additionalProperties": False,
}

Workers: TypeAlias = Annotated[int, Field(ge=1, le=_MOST_WORKERS, strict=True)]
Rate = Annotated[float | None, PlainValidator(_rate), WithJsonSchema({"type": "string", "pattern": "/(s|min|h)$"})]
Start = Annotated[
    StartRule | None,
    PlainValidator(_start),
    WithJsonSchema({"type": "object", "properties": {"at": _AT}, "required": ["at"], "additionalProperties": False}),
]
Stop = Annotated[
    StopRule,
    PlainValidator(_stop),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"with": {"const": "main"}, "after": _TIME, "times": {"type": "integer", "minimum": 1}},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }
    ),
]
