"""Events, in the order of their time stamps: CLOCK_MONOTONIC nanoseconds since the run's start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from tritonchaos.observations.replies import Arm, JsonValue, Position, Reply, StepSpec


@dataclass(frozen=True, slots=True)
class ServerStarted:
    """A tritonserver answered live. `start_number` counts from 1; a restart breaks every series."""

    t_ns: int
    start_number: int
    pid: int | None
    url: str
    boot_ns: int


@dataclass(frozen=True, slots=True)
class ServerStopped:
    """We stopped the server, or took our leave of one that is not ours.

    Attributes:
        signal: The last signal that was sent, such as "SIGTERM" or "SIGKILL".
        exit_code: Exit code, or minus the signal number that ended it; None if not knowable.
        forced: SIGKILL was needed.
        exit_timeout_expired: The log says that the server gave up waiting for its own stop.
    """

    t_ns: int
    signal: str
    exit_code: int | None
    forced: bool
    exit_timeout_expired: bool
    elapsed_ns: int

    @property
    def is_left_running(self) -> bool:
        """It was not ours to stop: no signal was sent, and nothing is known of an end."""
        return self.signal == "" and self.exit_code is None


@dataclass(frozen=True, slots=True)
class ServerExited:
    """The server ended although nobody asked it to. `exit_code` is minus the signal number after a signal."""

    t_ns: int
    position: Position | None
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class CycleStarted:
    """A cycle of a phase begins."""

    t_ns: int
    phase: str
    arm: Arm
    cycle: int
    is_warm_up: bool


@dataclass(frozen=True, slots=True)
class CycleFinished:
    """A cycle ran to its end, its settle window included. A cycle without this event is not judged."""

    t_ns: int
    phase: str
    cycle: int


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step was applied, with what came back.

    Attributes:
        reply: None for steps that ask the server nothing.
        observed: What the step saw beyond the reply. Keys in use: "gone_after_ns" (unload: time until the index
            showed the model gone), "state" and "reason" (index entry of the step's model at the end),
            "stuck" (state that did not change before the deadline), "states" (model -> state, where the expectation
            names one), "not_reached" (what was waited or asked for in vain), "match" (inference: outputs equal),
            "first_mismatch" (text), "sha256" (of the outputs), "skipped" (why the step did nothing), "late_ns" (how
            long after it was due its round began), "answered_by" (inference: versions that answered), "at"
            (inference: where in its sweep it ended), "signalled" (number of processes), and where the expectation asks
            for them "versions" (READY versions of the step's model), "log" (lines logged during the step), "processes"
            (role -> number), "live", "ready" (HTTP statuses, None: no answer).
        log_start, log_end: Byte offsets in server.log before and after the step.
    """

    position: Position
    started_ns: int
    t_ns: int
    spec: StepSpec
    reply: Reply | None
    observed: Mapping[str, JsonValue]
    log_start: int
    log_end: int


@dataclass(frozen=True, slots=True)
class TrafficSummary:
    """Requests of one step of a track, within one second, that are not recorded one by one.

    Attributes:
        t_ns, started_ns: When the last of them ended, and the first began.
        count: How many there were.
        ok: How many of them did what their step expects.
        late: Begun more than 10 ms after they were due (tracks with a rate).
        latency_ns: Median, 90 %, 99 % and longest time from when a request was due (without a rate: begun) to its end.
    """

    t_ns: int
    started_ns: int
    phase: str
    track: str
    spec: StepSpec
    count: int
    ok: int
    late: int
    latency_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelState:
    """One entry of the repository index. `state` and `reason` are "" where the entry has none."""

    name: str
    version: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What the server says of one model and of itself after a load or unload.

    Attributes:
        position: Of the step after which it was asked.
        index: None when the index did not answer well.
        model_ready, metadata: HTTP statuses; None when there was no answer.
        live, ready: The same; asked only where the index did not answer, as a server whose index answers is live, and
            after one failed load strict readiness says no until that model loads well.
    """

    position: Position
    t_ns: int
    model: str
    index: tuple[ModelState, ...] | None
    model_ready: int | None
    metadata: int | None
    live: int | None
    ready: int | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Text collected at the moment of a hang, a crash or a refused stop.

    Attributes:
        kind: "hang", "stacks" (threads that did not move while it hung), "crash" or "stop".
        facts: Short named facts, such as {"live_http": "200", "live_grpc": "no answer", "index": "ident LOADING"}.
        lines: Log lines or stacks, oldest first.
    """

    t_ns: int
    position: Position | None
    kind: str
    facts: Mapping[str, str]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """Something that the server left behind after it had ended.

    Attributes:
        kind: "process", "shm" or "temp".
        name: Process command, shared memory name or path below the scratch folder.
        certain: It carries this run's mark; otherwise it appeared during the run and may be somebody else's.
    """

    t_ns: int
    kind: str
    name: str
    bytes: int
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader should know that is neither a defect nor a reading."""

    t_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class PhaseSkipped:
    """A phase was not run (its `when` did not happen, or the run ended before it)."""

    t_ns: int
    phase: str
    reason: str


@dataclass(frozen=True, slots=True)
class PhaseStopped:
    """A phase ended before its last possible cycle.

    Attributes:
        reason: "verdict", "flat", "crash", "hang", "interrupted", "time" (its longest time was over) or "memory".
    """

    t_ns: int
    phase: str
    cycles: int
    reason: str


@dataclass(frozen=True, slots=True)
class MetricLost:
    """A metric that was being read can no longer be read; everything it could have shown is unknown."""

    t_ns: int
    metric: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of all metrics at a named moment.

    Attributes:
        name: "idle" (before the server), "ready" (server live, no model loaded: the baseline), "after_exit", "loaded"
            (after a load that succeeded), "before_next" (just before the next cycle), "record" (of a step's `record`:
            only latency_<NAME>_ns), or a name from the scenario.
        values: Metric name with unit -> value; a metric that could not be read is absent, never zero.
    """

    t_ns: int
    name: str
    position: Position | None
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SettleWindow:
    """The readings taken at the end of a cycle, when its models are gone from the index.

    Attributes:
        cycle: None for an explicit `settle` step outside a cycle.
        start_number: Which start of the server was read (see `ServerStarted`).
        times_ns: Stamps of the readings, shape [readings].
        values: Metric -> one value per reading, shape [readings]; None where that reading had none.
        settled: Metrics whose last readings lay within one quantum.
    """

    phase: str
    arm: Arm | None
    cycle: int | None
    start_number: int
    times_ns: tuple[int, ...]
    values: Mapping[str, tuple[int | None, ...]]
    settled: frozenset[str]


Event: TypeAlias = (
    ServerStarted
    | ServerStopped
    | ServerExited
    | CycleStarted
    | CycleFinished
    | StepFinished
    | TrafficSummary
    | Probe
    | Evidence
    | Left
    | Note
    | PhaseSkipped
    | PhaseStopped
    | MetricLost
    | Reading
    | SettleWindow
)
EventT = TypeVar("EventT")
