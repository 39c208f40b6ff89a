"""Replies, positions in the schedule, and what a step was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

# What JSON can carry: str, int, float, bool, None, lists and string-keyed mappings of these.
JsonValue: TypeAlias = Any


class Arm(str, Enum):
    """Which side of the comparison a cycle belongs to."""

    CONTROL = "control"
    TREATMENT = "treatment"


# --- replies -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered: HTTP status, body bytes, and the time from first byte sent to last byte read.

    An answer over gRPC has the status that the same answer has over HTTP, and a body with the text of its error.
    """

    status: int
    body: bytes
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The server did not answer; what it did with the request is unknown.

    Attributes:
        reason: "deadline", "refused", "reset", "closed" or "garbage", optionally followed by ": detail".
    """

    reason: str
    elapsed_ns: int


Reply: TypeAlias = Answer | NoAnswer


# --- where something happened --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the schedule something happened.

    Attributes:
        arm: None in phases that are plain steps.
        cycle: Number of the cycle within its phase, from 0, over both arms; None outside cycles
            (`before`, `after` and `steps` blocks).
        track: "main", or the name of a `meanwhile` track.
        step_number: From 0 within the cycle or block.
    """

    phase: str
    arm: Arm | None
    cycle: int | None
    track: str
    step_number: int

    def __str__(self) -> str:
        parts = [self.phase]
        if self.cycle is not None:
            parts.append(f"cycle {self.cycle}")
        if self.track != "main":
            parts.append(f"track {self.track}")
        parts.append(f"step {self.step_number}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a step's reply should be. A field that is None (or empty) demands nothing.

    Attributes:
        kind: "ok" (status 200 and, for an inference, outputs equal to the expected ones), "any" (nothing is
            demanded, not even an answer), or "fields" (only the fields below).
        status: HTTP statuses that are accepted.
        error: Regular expression searched in the text of a refused reply (status 400 or more).
        within_s: Longest time the reply may take, in seconds.
        state: Wanted states in the repository index after the step, by model name; "ABSENT" = not READY,
            LOADING or UNLOADING.
        reason: Regular expression searched in the index's reason for the step's model.
        outputs: "match" (every element equals the template's expected value) or None.
        version: Versions of the step's model that are READY in the index after the step, all of them and no other; for
            an inference, the versions that may answer it.
        log, not_log: Regular expressions; one line (or no line) that the server logged during the step has it.
        processes: Number of running processes by role after the step: "stub", "server" or "other".
        live, ready: What the server's health endpoints say after the step.
    """

    kind: str = "ok"
    status: tuple[int, ...] | None = None
    error: str | None = None
    within_s: float | None = None
    state: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    outputs: str | None = None
    version: tuple[str, ...] | None = None
    log: str | None = None
    not_log: str | None = None
    processes: Mapping[str, int] = field(default_factory=dict)
    live: bool | None = None
    ready: bool | None = None


@dataclass(frozen=True, slots=True)
class StepSpec:
    """What a step was, in plain values, so that a stored run can be judged without its scenario file.

    Attributes:
        name: The step's registered name, such as "load".
        model: The model it is about, if any.
        fields: Its YAML fields, as JSON values.
        undocumented: It goes outside Triton's documented rules; its findings are reported apart.
        record: Its latency is the metric latency_<record>_ns; "": it is not one.
        via: How the server was asked: "http" or "grpc".
    """

    name: str
    model: str | None
    fields: Mapping[str, JsonValue]
    expect: Expectation
    deadline_s: float
    undocumented: bool = False
    record: str = ""
    via: str = "http"

    def label(self) -> str:
        """Print the step at a glance: "load ident", or "load ident via grpc"."""
        parts = [self.name, self.model or "", "" if self.via == "http" else f"via {self.via}"]
        return " ".join(part for part in parts if part)
