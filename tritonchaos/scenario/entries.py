"""Entries of a scenario's lists of steps, checks and targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tritonchaos.observations import JsonValue, StepSpec
from tritonchaos.plugins import CHECKERS, STEPS, TARGETS, Registry


@dataclass(frozen=True, slots=True)
class Families:
    """The registries that a scenario's names are looked up in."""

    targets: Registry[Any] = TARGETS
    steps: Registry[Any] = STEPS
    checkers: Registry[Any] = CHECKERS


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """One entry of the ordered `target` list.

    Attributes:
        fields: As written, always as a mapping.
        missing: Why it cannot be used whatever the machine; "" if it may be tried.
    """

    name: str
    fields: Mapping[str, JsonValue] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True, slots=True)
class CheckEntry:
    """One entry of the `check` list; its fields are as written, always as a mapping."""

    name: str
    fields: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepEntry:
    """One step of the scenario, and what it is in plain values.

    Attributes:
        every: It runs only in each cycle (or round of a track) whose number, counted from 1, this divides.
    """

    step: Any
    spec: StepSpec
    every: int = 1


@dataclass(frozen=True, slots=True)
class RepeatEntry:
    """Steps that are done several times, one time after the other."""

    times: int
    steps: tuple[Entry, ...]
    every: int = 1


@dataclass(frozen=True, slots=True)
class TogetherEntry:
    """Steps that are started one `gap_s` after the other without waiting for any."""

    gap_s: float
    steps: tuple[StepEntry, ...]
    every: int = 1


Entry: TypeAlias = StepEntry | RepeatEntry | TogetherEntry


def plain_steps(entries: tuple[Entry, ...]) -> list[StepEntry]:
    """The steps of a list, those inside `repeat` and `together` once each."""
    found: list[StepEntry] = []
    for entry in entries:
        found += [entry] if isinstance(entry, StepEntry) else plain_steps(entry.steps)
    return found
