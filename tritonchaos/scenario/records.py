"""Records of the scenario file, as it is written: one class per mapping, one field per key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_validator,
)

from tritonchaos.observations import Arm
from tritonchaos.scenario.entries import TargetEntry
from tritonchaos.scenario.expect_fields import PositiveSeconds
from tritonchaos.scenario.model_entry import ModelEntry
from tritonchaos.scenario.problems import shown
from tritonchaos.scenario.record import Record
from tritonchaos.scenario.server_options import PhaseServer, ServerOptions
from tritonchaos.scenario.track_rules import Rate, Start, Stop, StopRule, Workers
from tritonchaos.scenario.values import (
    Checks,
    Count,
    FindingKind,
    MetricName,
    ModelName,
    ScenarioName,
    ScheduleName,
    Steps,
    Targets,
    VersionRange,
)


class Cycles(Record):
    """How often a phase runs its steps: a number, or between two numbers until something is known.

    Attributes:
        at_least: Fewest cycles; with `arms`, treatment cycles.
        at_most: Most cycles; with `arms`, treatment cycles.
        until: verdict = the watching check has seen enough; flat = post-unload memory has stopped moving.
    """

    at_least: Count = 1
    at_most: Count
    until: Literal["verdict", "flat"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, raw: Any) -> Any:
        if isinstance(raw, Mapping | Cycles):
            return raw
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise ValueError(f"found {shown(raw)}, expected a number or a mapping with at_least, at_most and until")
        return {"at_least": raw, "at_most": raw}

    @model_validator(mode="after")
    def _in_order(self) -> Cycles:
        if self.at_least > self.at_most:
            raise ValueError(f"found at_least {self.at_least} above at_most {self.at_most}, expected at most as many")
        if self.until is None and self.at_least != self.at_most:
            raise ValueError("found no key 'until', expected until: verdict or until: flat, or one number of cycles")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Allow the number too."""
        return {"anyOf": [{"type": "integer", "minimum": 1}, handler.resolve_ref_schema(handler(core_schema))]}


class ArmSteps(Record):
    """What one arm of coin-ordered pairs does.

    Attributes:
        before: Steps when the arm begins, after the other one.
        each: Steps of every cycle.
        after: Steps when the arm is left.
    """

    before: Steps = ()
    each: Steps
    after: Steps = ()


class Arms(Record):
    """Control and treatment cycles in pairs, a coin deciding which comes first in each.

    Attributes:
        mode: How the arms take turns.
    """

    mode: Literal["coin"] = "coin"
    control: ArmSteps
    treatment: ArmSteps


class TrackEntry(Record):
    """Steps that run again and again beside the phase's main track.

    Attributes:
        track: Its name.
        each: Steps of every round.
        workers: Number of loops at the same time.
        rate: Rounds that are due in a time, such as 50/s, however long they take; absent: one after the other.
        start: {at: {track, step, when, offset}}: the step of another track that it waits for; absent: with the phase.
        stop: {with: main}, {after: 30s} or {times: 10} rounds.
    """

    track: ScheduleName
    each: Steps
    workers: Workers = 1
    rate: Rate = None
    start: Start = None
    stop: Stop = StopRule()


def _one_or_more(raw: Any) -> Any:
    return [raw] if isinstance(raw, str) else raw


_NAMES_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
LadderModels = Annotated[
    tuple[ModelName, ...], Field(min_length=1), BeforeValidator(_one_or_more), WithJsonSchema(_NAMES_SCHEMA)
]


class Phase(Record):
    """A part of the run: cycles of one arm (`each`), of two (`arms`), or plain `steps`.

    Attributes:
        phase: Its name.
        when: Run only if this was seen before.
        arm: Which side of the comparison its cycles are on; absent: treatment.
        cycles: How many.
        warm_up_cycles: Cycles in front that are not judged and do not count.
        before: Steps once before the cycles.
        each: Steps of every cycle.
        after: Steps once after the cycles.
        arms: Control and treatment cycles in coin-ordered pairs.
        amplify: When 12 cycles were flat, their steps are done twice as often before the next reading, up to 32 times.
        steps: Plain steps, once.
        ladder: Models to load once more after a leak, then to take everything down step by step: who holds the memory?
        meanwhile: Tracks beside the main one.
        server: How the server is started for this phase, where that differs from the rest of the run.
    """

    later = frozenset({"gap", "faults", "ledger", "localise", "measure", "flaky", "vary"})

    phase: ScheduleName
    when: Literal["leak", "crash", "hang"] | None = None
    arm: Arm | None = None
    cycles: Cycles | None = None
    warm_up_cycles: Annotated[StrictInt, Field(ge=0, le=10**9)] = 0
    before: Steps = ()
    each: Steps = ()
    after: Steps = ()
    arms: Arms | None = None
    amplify: StrictBool = False
    steps: Steps = ()
    ladder: LadderModels = ()
    meanwhile: tuple[TrackEntry, ...] = ()
    server: PhaseServer = Field(default_factory=PhaseServer)


class SettleOptions(Record):
    """When memory counts as settled after an unload.

    Attributes:
        at_most: Longest time to wait for it.
    """

    at_most: PositiveSeconds = 2.0


class SampleOptions(Record):
    """How post-unload memory is read.

    Attributes:
        count: Number of readings whose median counts; they must lie within one quantum.
        metrics: Metrics to judge; absent: the checks' own choice.
        settle: The settle window.
    """

    count: Annotated[StrictInt, Field(ge=1, le=100)] = 3
    metrics: tuple[MetricName, ...] = ()
    settle: SettleOptions = Field(default_factory=SettleOptions)

    @property
    def settle_at_most_s(self) -> float:
        """Longest settle window, in seconds."""
        return self.settle.at_most


class KnownEntry(Record):
    """A finding that is reported already.

    Attributes:
        server: Triton versions that have it, such as "<2.60"; absent: all.
        finding: Kind of the finding.
        about: Address of the report.
    """

    server: VersionRange = ""
    finding: FindingKind
    about: Annotated[StrictStr, Field(min_length=1)]


class Scenario(Record):
    """What is done to a server, in which order, and what is checked.

    Attributes:
        scenario: Its name.
        about: Address of the report or page it goes back to.
        seed: All randomness of the run comes from it.
        deadline: How long a step may take that gives no deadline of its own.
        target: Where a server can be had; the first that can be used is taken.
        server: How the server is started.
        models: The models of the repository, by name.
        phases: What is done, in order.
        sample: How memory is read.
        known: Findings that are reported already.
        check: What is judged.
        vary: Path of a field -> values; each combination is a run of its own, the first is the control.
    """

    later = frozenset({"faults", "ledger", "localise", "measure", "flaky", "gap"})

    scenario: ScenarioName
    about: StrictStr = ""
    seed: StrictInt = 0
    deadline: PositiveSeconds = 30.0
    target: Targets = (TargetEntry("local"),)
    server: ServerOptions = Field(default_factory=ServerOptions)
    models: Mapping[ModelName, ModelEntry] = Field(default_factory=dict)
    phases: Annotated[tuple[Phase, ...], Field(min_length=1)]
    sample: SampleOptions = Field(default_factory=SampleOptions)
    known: tuple[KnownEntry, ...] = ()
    check: Checks = ()
    vary: Mapping[StrictStr, tuple[Any, ...]] = Field(default_factory=dict)
    _text: str = PrivateAttr("")
    _folder: Path = PrivateAttr(Path())
    _cells: tuple[tuple[str, Scenario], ...] = PrivateAttr(())

    @property
    def text(self) -> str:
        """The YAML text that the scenario was read from."""
        return self._text

    @property
    def folder(self) -> Path:
        """Folder of the scenario file: files and models that it names are looked for from there."""
        return self._folder

    def with_text(self, text: str, folder: Path = Path()) -> Scenario:
        """Remember the YAML text and where it came from."""
        copy = self.model_copy()
        copy._text = text
        copy._folder = folder
        return copy

    def cells(self) -> list[tuple[str, Scenario]]:
        """Scenarios to run instead of this one, each with its label: one per combination of `vary`, the control first.

        Without `vary` the only one is the scenario itself, with an empty label.
        """
        return list(self._cells) or [("", self)]

    def with_cells(self, cells: tuple[tuple[str, Scenario], ...]) -> Scenario:
        """Remember the scenarios of the cells."""
        copy = self.model_copy()
        copy._cells = cells
        return copy

    def known_entries(self) -> list[dict[str, str]]:
        """The `known` list in plain values, as it is recorded."""
        return [entry.model_dump() for entry in self.known]
