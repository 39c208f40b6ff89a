"""Entries of a scenario's lists of steps, checks and targets, read from their three written forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, WithJsonSchema

from tritonchaos.observations import Expectation, JsonValue, StepSpec
from tritonchaos.plugins import CHECKERS, STEPS, TARGETS, Contract, Registry, Seconds
from tritonchaos.scenario.plugin_forms import field_names, fields_as_json, unknown_name, validate_plugin
from tritonchaos.scenario.problems import Problem, YamlPath, nearest, one_of, shown
from tritonchaos.scenario.validation import NOT_YET, Keys, validate

LATER_TARGETS: Final = frozenset({"docker", "remote", "program"})

_OPTIONS: Final = ("expect", "deadline", "via")
_LATER_OPTIONS: Final = frozenset({"every", "record"})
_LATER_STEPS: Final = frozenset({"request", "put_file", "delete_file", "add_version", "signal", "repeat", "together"})
_LATER_FIELDS: Final[Mapping[str, frozenset[str]]] = {"infer": frozenset({"batch", "shapes", "concurrency"})}


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
    """One step of the scenario, and what it is in plain values."""

    step: Any
    spec: StepSpec


# --- expect --------------------------------------------------------------------------------------


def _one_or_more(value: JsonValue) -> JsonValue:
    # A tuple, as strict validation takes a list for one only straight from JSON.
    return tuple(value) if isinstance(value, list) else (value,)


def _compiled(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"found {shown(text)}, expected a regular expression: {error}") from None
    return text


Regex = Annotated[str, AfterValidator(_compiled), Field(min_length=1)]
HttpStatus = Annotated[int, Field(ge=100, le=599)]
HttpStatuses = Annotated[
    tuple[HttpStatus, ...],
    Field(min_length=1),
    BeforeValidator(_one_or_more),
    WithJsonSchema({"type": ["integer", "array"], "items": {"type": "integer"}}),
]
PositiveSeconds = Annotated[Seconds, Field(gt=0)]


class ExpectFields(BaseModel):
    """What the reply of a step should be; a key that is absent demands nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: HttpStatuses | None = Field(None, description="HTTP status, or a list of those that are accepted.")
    error: Regex | None = Field(None, description="Regular expression, searched in the text of the refusal.")
    within: PositiveSeconds | None = Field(None, description="Longest time the reply may take.")
    state: Mapping[str, Literal["READY", "UNAVAILABLE", "LOADING", "UNLOADING", "ABSENT"]] = Field(
        default_factory=dict, description="Model -> state in the repository index after the step."
    )
    reason: Regex | None = Field(None, description="Regular expression, searched in the index's reason.")
    outputs: Literal["match"] | None = Field(None, description="Every output element equals the expected one.")


_EXPECT: Final = TypeAdapter(ExpectFields)
_EXPECT_KEYS: Final = Keys(
    tuple(ExpectFields.model_fields), frozenset({"version", "log", "not_log", "processes", "live", "ready"})
)


# --- reading the lists ---------------------------------------------------------------------------


@dataclass(slots=True)
class EntryReader:
    """Reads entries and collects what is wrong with them.

    Attributes:
        families: Where names are looked up.
        models: Names that steps may use.
        deadline_s: Of steps that give none.
        problems: What was found wrong so far.
    """

    families: Families
    models: frozenset[str]
    deadline_s: float
    problems: list[Problem] = field(default_factory=list)

    def targets(self, raw: JsonValue, path: YamlPath) -> list[TargetEntry | None]:
        """Read the `target` list; an entry that is wrong is None."""
        return [self._target(entry, where) for entry, where in self._listed(raw, path, "targets")]

    def checks(self, raw: JsonValue, path: YamlPath) -> list[CheckEntry | None]:
        """Read the `check` list; an entry that is wrong is None."""
        return [self._check(entry, where) for entry, where in self._listed(raw, path, "checks")]

    def steps(self, raw: JsonValue, path: YamlPath) -> list[StepEntry | None]:
        """Read a list of steps; an entry that is wrong is None."""
        return [self._step(entry, where) for entry, where in self._listed(raw, path, "steps")]

    def _listed(self, raw: JsonValue, path: YamlPath, what: str) -> list[tuple[JsonValue, YamlPath]]:
        if not isinstance(raw, list) or not raw:
            self.problems.append(Problem(path, shown(raw), f"a list of {what}"))
            return []
        return [(entry, (*path, number)) for number, entry in enumerate(raw)]

    def _named(self, raw: JsonValue, path: YamlPath, what: str) -> tuple[str, JsonValue, YamlPath] | None:
        """Take one entry apart: its name, its fields and where these stand."""
        if isinstance(raw, str) and raw:
            return raw, None, path
        if isinstance(raw, Mapping) and len(raw) == 1:
            name, fields = next(iter(raw.items()))
            return name, fields, (*path, name)
        hint = ""
        if isinstance(raw, Mapping) and any(key in _OPTIONS for key in raw):
            hint = f"indent {', '.join(key for key in raw if key in _OPTIONS)} below the {what}'s name"
        self.problems.append(Problem(path, shown(raw), f"one {what}: NAME, NAME: value or NAME: {{fields}}", hint))
        return None

    def _target(self, raw: JsonValue, path: YamlPath) -> TargetEntry | None:
        named = self._named(raw, path, "target")
        if named is None:
            return None
        name, fields, where = named
        if name in self.families.targets:
            _, problems = validate_plugin(self.families.targets[name], fields, where)
            self.problems += problems
            return TargetEntry(name, _mapping(self.families.targets[name], fields))
        if name not in LATER_TARGETS:
            self._unknown(self.families.targets, name, where, LATER_TARGETS)
        elif fields is not None and not isinstance(fields, Mapping):
            self.problems.append(Problem(where, shown(fields), "a mapping"))
        return TargetEntry(name, fields if isinstance(fields, Mapping) else {}, missing=NOT_YET)

    def _check(self, raw: JsonValue, path: YamlPath) -> CheckEntry | None:
        named = self._named(raw, path, "check")
        if named is None:
            return None
        name, fields, where = named
        if name not in self.families.checkers:
            self._unknown(self.families.checkers, name, where)
            return None
        _, problems = validate_plugin(self.families.checkers[name], fields, where)
        self.problems += problems
        return CheckEntry(name, _mapping(self.families.checkers[name], fields))

    def _step(self, raw: JsonValue, path: YamlPath) -> StepEntry | None:
        named = self._named(raw, path, "step")
        if named is None:
            return None
        name, given, where = named
        if name not in self.families.steps:
            self._unknown_step(name, where)
            return None
        fields, options = self._split(name, given, where)
        step, problems = validate_plugin(self.families.steps[name], fields, where)
        self.problems += problems
        expect = self._expect(options.get("expect", "ok"), (*where, "expect"))
        deadline_s = self._deadline(options, where)
        if step is None:
            return None
        model = getattr(step, "model", None)
        if isinstance(model, str):
            self._known_model(model, where if isinstance(given, str) else (*where, "model"))
        is_undocumented = step.contract is Contract.UNDOCUMENTED
        return StepEntry(step, StepSpec(name, model, fields_as_json(step), expect, deadline_s, is_undocumented))

    def _unknown(self, registry: Registry[Any], name: str, path: YamlPath, more: frozenset[str] = frozenset()) -> None:
        problem = unknown_name(registry, name, path)
        if more:
            names = sorted({*registry.names(), *more})
            problem = Problem(path, problem.found, one_of(names), nearest(name, names), at_key=True)
        self.problems.append(problem)

    def _unknown_step(self, name: str, path: YamlPath) -> None:
        if name in _LATER_STEPS:
            expected = one_of(self.families.steps.names())
            self.problems.append(Problem(path, f"the step {name!r}, which is {NOT_YET}", expected, at_key=True))
        else:
            self._unknown(self.families.steps, name, path)

    def _split(self, name: str, given: JsonValue, path: YamlPath) -> tuple[JsonValue, Mapping[str, JsonValue]]:
        """Split the options that all steps take from a step's own fields, and refuse those of later versions."""
        if not isinstance(given, Mapping):
            return given, {}
        plugin: Any = self.families.steps[name]
        own = field_names(plugin)
        later = (_LATER_OPTIONS | _LATER_FIELDS.get(name, frozenset())) - set(own)
        keys = Keys((*own, *_OPTIONS), later)
        # Unknown keys are told here, where the options are known too.
        self.problems += [keys.problem(path, key) for key in given if key not in keys.known]
        if "via" in given and given["via"] != "http":
            self._refuse_via(given["via"], (*path, "via"))
        return (
            {key: value for key, value in given.items() if key in own},
            {key: value for key, value in given.items() if key in _OPTIONS},
        )

    def _refuse_via(self, via: JsonValue, path: YamlPath) -> None:
        found = f"{via!r}, which is {NOT_YET}" if via in ("grpc", "both") else shown(via)
        self.problems.append(Problem(path, found, "http"))

    def _deadline(self, options: Mapping[str, JsonValue], path: YamlPath) -> float:
        if "deadline" not in options:
            return self.deadline_s
        deadline_s, problems = validate(_DEADLINE, options["deadline"], (*path, "deadline"))
        self.problems += problems
        return deadline_s if isinstance(deadline_s, float) else self.deadline_s

    def _expect(self, raw: JsonValue, path: YamlPath) -> Expectation:
        if raw in ("ok", "any"):
            return Expectation(raw)
        if not isinstance(raw, Mapping) or not raw:
            expected = f"ok, any or a mapping with {', '.join(_EXPECT_KEYS.known)}"
            self.problems.append(Problem(path, shown(raw), expected, nearest(str(raw), ("ok", "any"))))
            return Expectation()
        fields, problems = validate(_EXPECT, raw, path, lambda loc: _EXPECT_KEYS)
        self.problems += problems
        if not isinstance(fields, ExpectFields):
            return Expectation()
        for model in fields.state:
            self._known_model(model, (*path, "state", model))
        return Expectation(
            kind="fields",
            status=fields.status,
            error=fields.error,
            within_s=fields.within,
            state=fields.state,
            reason=fields.reason,
            outputs=fields.outputs,
        )

    def _known_model(self, model: str, path: YamlPath) -> None:
        if model not in self.models:
            names = sorted(self.models)
            hint = nearest(model, names) or "name it under `models`, or give --model-repository"
            self.problems.append(Problem(path, f"the unknown model {shown(model)}", one_of(names), hint))


_DEADLINE: Final[TypeAdapter[float]] = TypeAdapter(PositiveSeconds)


def _mapping(plugin: Any, fields: JsonValue) -> Mapping[str, JsonValue]:
    """Return fields as a mapping: a scalar belongs to the first field."""
    if fields is None:
        return {}
    return fields if isinstance(fields, Mapping) else dict.fromkeys(field_names(plugin)[:1], fields)
