"""What was seen during a run: replies, events, readings, and the history they make up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias, TypeVar

# What JSON can carry: str, int, float, bool, None, lists and string-keyed mappings of these.
JsonValue: TypeAlias = Any


class Arm(str, Enum):
    """Which side of the comparison a cycle belongs to."""

    CONTROL = "control"
    TREATMENT = "treatment"


# --- replies -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered: HTTP status, body bytes, and the time from first byte sent to last byte read."""

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
    """

    name: str
    model: str | None
    fields: Mapping[str, JsonValue]
    expect: Expectation
    deadline_s: float
    undocumented: bool = False
    record: str = ""

    def label(self) -> str:
        """Print the step at a glance: "load ident"."""
        return f"{self.name} {self.model}" if self.model else self.name


# --- events, in the order of their time stamps ---------------------------------------------------
# All stamps are CLOCK_MONOTONIC nanoseconds since the run's start.


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
            names one), "not_reached" (what `wait_for` waited for in vain), "match" (inference: outputs equal),
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
        model_ready, metadata, live, ready: HTTP statuses; None when there was no answer.
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


# --- the whole run -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PhaseFacts:
    """A phase as scheduled: its name, arm (None: coin-ordered pairs or plain steps) and kind ("cycles" or "steps")."""

    name: str
    arm: Arm | None
    kind: str
    at_most: int


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


@dataclass(frozen=True, slots=True)
class History:
    """Everything a run has seen; all that a checker is given.

    Attributes:
        events: In the order in which they were recorded.
        samples: Metric -> (t_ns, value) pairs of the sampling thread, shape [samples, 2]; may be read lazily.
        log: The bytes of server.log, or b"" where it is missing.
        interrupted: The user ended the run, or it has no proper end (it was killed).
    """

    facts: RunFacts
    events: Sequence[Event]
    samples: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    log: bytes = b""
    interrupted: bool = False

    def of(self, kind: type[EventT]) -> Iterator[EventT]:
        """Yield the events of one kind, in order."""
        return (event for event in self.events if isinstance(event, kind))

    def log_lines(self, start: int = 0, end: int | None = None) -> list[str]:
        """Return the log lines between two byte offsets of server.log, undecodable bytes replaced."""
        return self.log[start:end].decode("utf-8", "replace").splitlines()
