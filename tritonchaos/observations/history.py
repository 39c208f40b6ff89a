"""The whole run: its facts and everything it has seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tritonchaos.observations.events import Event, EventT
from tritonchaos.observations.following import Follower, FollowerT, of_kinds
from tritonchaos.observations.replies import Arm, JsonValue
from tritonchaos.observations.server_log import ServerLog
from tritonchaos.observations.skimming import HasStretches, Made, Stretches, follow_all, made_by

FoundT = TypeVar("FoundT")


@dataclass(frozen=True, slots=True)
class PhaseFacts:
    """A phase as scheduled: its name, arm (None: coin-ordered pairs or plain steps) and kind ("cycles" or "steps").

    Attributes:
        amplify: Its cycles may do their steps more than once before they are read.
    """

    name: str
    arm: Arm | None
    kind: str
    at_most: int
    amplify: bool = False


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What was fixed before the first step.

    Attributes:
        started_utc: Wall time of the run's start, ISO 8601; recorded once.
        target: Facts of the target: "target", "triton_version", "server_path" or "image", "gpu_uuids", ...
        target_skipped: (name, why) of the targets that were passed over.
        variants: Model name -> variant that was served.
        uses_gpu: A variant that needs a GPU was served, so that device readings are required.
        unavailable: Metric -> why it cannot be read on this target ("not applicable: ..." where it cannot exist).
        sample_count: Number of readings whose median is the post-unload reading.
        checks: The scenario's `check` list, as (checker name, fields).
        known: The scenario's `known` list, as plain mappings with "finding", "server" and "about".
        metrics: Metrics that memory_growth is asked to judge; empty: the checker's own choice.
        accept_known: Known findings do not change the exit code.
        calibration: What an earlier calibration of the machine and target says that they can see; "" without one.
    """

    run_id: str
    tritonchaos_version: str
    scenario: str
    seed: int
    started_utc: str
    target: Mapping[str, str]
    target_skipped: tuple[tuple[str, str], ...]
    variants: Mapping[str, str]
    uses_gpu: bool
    unavailable: Mapping[str, str]
    sample_count: int
    phases: tuple[PhaseFacts, ...]
    checks: tuple[tuple[str, Mapping[str, JsonValue]], ...]
    known: tuple[Mapping[str, str], ...] = ()
    metrics: tuple[str, ...] = ()
    accept_known: bool = False
    calibration: str = ""

    @property
    def amplified(self) -> frozenset[str]:
        """Names of the phases with `amplify`."""
        return frozenset(phase.name for phase in self.phases if phase.amplify)


@dataclass(frozen=True, slots=True)
class History:
    """Everything a run has seen; all that a checker is given.

    Attributes:
        events: In the order in which they were recorded.
        samples: Metric -> (t_ns, value) pairs of the sampling thread, shape [samples, 2]; may be read lazily.
        log: The bytes of server.log, read when they are asked for; b"" where it is missing.
        interrupted: The user ended the run, or it has no proper end (it was killed).
        scenario_text: The scenario as run, or "" where it is missing.
    """

    facts: RunFacts
    events: Sequence[Event]
    samples: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    log: ServerLog = b""
    interrupted: bool = False
    scenario_text: str = ""
    _remembered: dict[str, Any] = field(init=False, default_factory=dict, repr=False, compare=False)

    def once(self, key: str, find: Callable[[History], FoundT]) -> FoundT:
        """Return what `find` makes of this history; it is asked once, as walking a long history takes its time."""
        if key not in self._remembered:
            self._remembered[key] = find(self)
        found: FoundT = self._remembered[key]
        return found

    def of(self, kind: type[EventT]) -> Iterator[EventT]:
        """Yield the events of one kind, in order."""
        found: Iterator[Any] = of_kinds(self.events, (kind,))
        return found

    @property
    def is_long(self) -> bool:
        """There are too many events to keep a record of each in memory."""
        return not isinstance(self.events, tuple | list)

    def followed(self, key: str, make: Callable[[], FollowerT]) -> FollowerT:
        """Return a follower that has seen everything; it walks alone if it did not walk in `follow_all`."""
        self.follow_all({key: make})
        found: FollowerT = self._remembered[key]
        return found

    def follow_all(self, followers: Mapping[str, Callable[[], Follower]]) -> None:
        """Let followers walk over the events together, each under a key of its own."""
        follow_all(self.events, self._remembered, followers)

    @property
    def stretches(self) -> Stretches | None:
        """Which cycles are alike; None where nobody knows."""
        return self.events.stretches if isinstance(self.events, HasStretches) else None

    def made(self, key: str) -> Made | None:
        """Return what a follower made of each stretch; None where it walked over all events, or has not yet."""
        found: Made | None = self._remembered.get(made_by(key))
        return found

    def log_lines(self, start: int, end: int) -> list[str]:
        """Return the log lines between two byte offsets of server.log, undecodable bytes replaced."""
        return self.log[start:end].decode("utf-8", "replace").splitlines()
