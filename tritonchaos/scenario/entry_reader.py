"""Reads the entries of a scenario's lists of steps, checks and targets from their three written forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from tritonchaos.observations import Expectation, JsonValue, StepSpec
from tritonchaos.plugins import Contract, Registry, Seconds, ways_of
from tritonchaos.scenario.entries import (
    CheckEntry,
    Entry,
    Families,
    RepeatEntry,
    StepEntry,
    TargetEntry,
    TogetherEntry,
)
from tritonchaos.scenario.expect_fields import PositiveSeconds, read_expectation
from tritonchaos.scenario.plugin_forms import field_names, fields_as_json, unknown_name, validate_plugin
from tritonchaos.scenario.problems import Problem, YamlPath, nearest, one_of, shown
from tritonchaos.scenario.validation import NOT_YET, Keys, validate

LATER_TARGETS: Final = frozenset({"program"})

CONTROL_STEPS: Final[Mapping[str, tuple[str, str]]] = {
    "repeat": ("times", "Do steps several times, one time after the other."),
    "together": ("gap", "Start steps at the same moment, or one gap after the other, without waiting for any."),
}

# What `via: both` is: one step after the other.
_BOTH_WAYS: Final = ("http", "grpc")
_OPTIONS: Final = ("expect", "deadline", "via", "every", "record")
# Steps that need the track to themselves.
_NOT_TOGETHER: Final = frozenset({"start_server", "stop_server", "restart_server", "sample", "settle", "trim", "rung"})


@dataclass(slots=True)
class EntryReader:
    """Reads entries and collects what is wrong with them.

    Attributes:
        families: Where names are looked up.
        models: Names that steps may use.
        deadline_s: Of steps that give none.
        folder: Of the scenario file; files that it names are looked for from there.
        problems: What was found wrong so far.
    """

    families: Families
    models: frozenset[str]
    deadline_s: float
    folder: Path = Path()
    problems: list[Problem] = field(default_factory=list)

    def targets(self, raw: JsonValue, path: YamlPath) -> list[TargetEntry | None]:
        """Read the `target` list; an entry that is wrong is None."""
        return [self._target(entry, where) for entry, where in self._listed(raw, path, "targets")]

    def checks(self, raw: JsonValue, path: YamlPath) -> list[CheckEntry | None]:
        """Read the `check` list; an entry that is wrong is None."""
        return [self._check(entry, where) for entry, where in self._listed(raw, path, "checks")]

    def steps(self, raw: JsonValue, path: YamlPath) -> list[Entry | None]:
        """Read a list of steps; an entry that is wrong is None, and one with `via: both` is two."""
        return [entry for entry, _ in self._placed_steps(raw, path)]

    def _placed_steps(self, raw: JsonValue, path: YamlPath) -> list[tuple[Entry | None, YamlPath]]:
        listed = self._listed(raw, path, "steps")
        return [(one, where) for entry, where in listed for one in _each_way(self._entry(entry, where))]

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

    def _entry(self, raw: JsonValue, path: YamlPath) -> Entry | None:
        named = self._named(raw, path, "step")
        if named is None:
            return None
        name, given, where = named
        if name in self.families.steps:
            return self._step(name, given, where)
        if name in CONTROL_STEPS:
            return self._control(name, given, where)
        self._unknown(self.families.steps, name, where, frozenset(CONTROL_STEPS))
        return None

    def _step(self, name: str, given: JsonValue, where: YamlPath) -> StepEntry | None:
        fields, options = self._split(name, given, where)
        step, problems = validate_plugin(self.families.steps[name], fields, where)
        self.problems += problems
        expect = self._expect(options.get("expect", "ok"), (*where, "expect"))
        deadline_s = self._option(_DEADLINE, options, "deadline", where, self.deadline_s)
        record = self._option(_RECORD, options, "record", where, "")
        every = self._every(options, where)
        via = self._via(name, options, where)
        if step is None:
            return None
        model = getattr(step, "model", None)
        if isinstance(model, str):
            self._known_model(model, where if isinstance(given, str) else (*where, "model"))
        is_undocumented = step.contract is Contract.UNDOCUMENTED
        spec = StepSpec(name, model, fields_as_json(step), expect, deadline_s, is_undocumented, record, via)
        return StepEntry(self._with_files(step, where), spec, every)

    def _control(self, name: str, given: JsonValue, where: YamlPath) -> Entry | None:
        """Read `repeat: {times, steps}` or `together: {gap, steps}`."""
        own = CONTROL_STEPS[name][0]
        keys = Keys((own, "steps", "every"))
        if not isinstance(given, Mapping):
            self.problems.append(Problem(where, shown(given), f"a mapping with {', '.join(keys.known)}"))
            return None
        self.problems += [keys.problem(where, key) for key in given if key not in keys.known]
        for key in ("steps", *(["times"] if name == "repeat" else [])):
            if key not in given:
                self.problems.append(Problem(where, f"no key {key!r}", "one: it is required"))
        inner = self._placed_steps(given["steps"], (*where, "steps")) if "steps" in given else []
        every = self._every(given, where)
        entries = tuple(entry for entry, _ in inner if entry is not None)
        if name == "repeat":
            return RepeatEntry(self._option(_TIMES, given, "times", where, 1), entries, every)
        gap_s = self._option(_GAP, given, "gap", where, 0.0)
        plain = tuple(entry for entry in entries if isinstance(entry, StepEntry))
        self.problems += _together_problems(inner)
        return TogetherEntry(gap_s, plain, every)

    def _with_files(self, step: Any, where: YamlPath) -> Any:
        """Let a step that names files look for them beside the scenario file."""
        if not hasattr(step, "with_files_from"):
            return step
        try:
            return step.with_files_from(self.folder)
        except ValueError as error:
            found, _, expected = str(error).removeprefix("found ").partition(", expected ")
            self.problems.append(Problem(where, found, expected))
            return step

    def _every(self, options: Mapping[str, JsonValue], where: YamlPath) -> int:
        every: int = self._option(_TIMES, options, "every", where, 1)
        if "every" in options and "each" not in where:
            expected = "no `every`: only steps of `each` are done again and again"
            self.problems.append(Problem((*where, "every"), "every outside `each`", expected, at_key=True))
        return every

    def _option(
        self, adapter: TypeAdapter[Any], options: Mapping[str, JsonValue], key: str, where: YamlPath, standard: Any
    ) -> Any:
        if key not in options:
            return standard
        value, problems = validate(adapter, options[key], (*where, key))
        self.problems += problems
        return standard if problems else value

    def _unknown(self, registry: Registry[Any], name: str, path: YamlPath, more: frozenset[str] = frozenset()) -> None:
        problem = unknown_name(registry, name, path)
        if more:
            names = sorted({*registry.names(), *more})
            problem = Problem(path, problem.found, one_of(names), nearest(name, names), at_key=True)
        self.problems.append(problem)

    def _split(self, name: str, given: JsonValue, path: YamlPath) -> tuple[JsonValue, Mapping[str, JsonValue]]:
        """Split the options that all steps take from a step's own fields."""
        if not isinstance(given, Mapping):
            return given, {}
        plugin: Any = self.families.steps[name]
        own = field_names(plugin)
        keys = Keys((*own, *_OPTIONS))
        # Unknown keys are told here, where the options are known too.
        self.problems += [keys.problem(path, key) for key in given if key not in keys.known]
        return (
            {key: value for key, value in given.items() if key in own},
            {key: value for key, value in given.items() if key in _OPTIONS},
        )

    def _via(self, name: str, options: Mapping[str, JsonValue], where: YamlPath) -> str:
        """Read how the server is to be asked; which ways have a meaning is the step's to say."""
        via, ways = options.get("via", "http"), ways_of(self.families.steps[name])
        if not isinstance(via, str) or via not in ways:
            self.problems.append(self._wrong_way(name, via, ways, (*where, "via")))
            return "http"
        if via == "both" and "record" in options:
            expected = "a step for each way, each with a record of its own"
            self.problems.append(Problem((*where, "record"), "record beside via: both", expected, at_key=True))
        return via

    def _wrong_way(self, name: str, via: JsonValue, ways: Sequence[str], path: YamlPath) -> Problem:
        if via not in ("grpc", "both"):
            return Problem(path, shown(via), one_of(ways), nearest(str(via), ways))
        if "grpc" in ways:
            hint = f"the second {name} would meet what the first has changed; write a step for each way"
            return Problem(path, f"{via!r} for {name}", one_of(ways), hint)
        steps = self.families.steps
        able = [other for other in steps.names() if "grpc" in ways_of(steps[other])]
        hint = f"over gRPC there are {', '.join(able)}" if able else ""
        return Problem(path, f"{via!r} for {name}, which does not ask over gRPC", one_of(ways), hint)

    def _expect(self, raw: JsonValue, path: YamlPath) -> Expectation:
        expect, problems = read_expectation(raw, path)
        self.problems += problems
        for model in expect.state:
            self._known_model(model, (*path, "state", model))
        return expect

    def _known_model(self, model: str, path: YamlPath) -> None:
        if model not in self.models:
            names = sorted(self.models)
            hint = nearest(model, names) or "name it under `models`, or give --model-repository"
            self.problems.append(Problem(path, f"the unknown model {shown(model)}", one_of(names), hint))


_DEADLINE: Final[TypeAdapter[Any]] = TypeAdapter(PositiveSeconds)
_GAP: Final[TypeAdapter[Any]] = TypeAdapter(Seconds)
_TIMES: Final[TypeAdapter[Any]] = TypeAdapter(Annotated[int, Field(ge=1, le=10**9)])
_RECORD: Final[TypeAdapter[Any]] = TypeAdapter(Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")])


def _each_way(entry: Entry | None) -> tuple[Entry | None, ...]:
    if not isinstance(entry, StepEntry) or entry.spec.via != "both":
        return (entry,)
    return tuple(replace(entry, spec=replace(entry.spec, via=way)) for way in _BOTH_WAYS)


def _together_problems(entries: Sequence[tuple[Entry | None, YamlPath]]) -> Iterator[Problem]:
    for entry, path in entries:
        if isinstance(entry, RepeatEntry | TogetherEntry):
            yield Problem(path, "steps within steps", "plain steps")
        elif entry is not None and entry.spec.name in _NOT_TOGETHER:
            yield Problem(path, f"the step {entry.spec.name!r}", "steps that can run beside others")
        elif entry is not None and entry.every != 1:
            yield Problem(path, "every inside together", "it beside `steps`", at_key=True)


def _mapping(plugin: Any, fields: JsonValue) -> Mapping[str, JsonValue]:
    """Return fields as a mapping: a scalar belongs to the first field."""
    if fields is None:
        return {}
    return fields if isinstance(fields, Mapping) else dict.fromkeys(field_names(plugin)[:1], fields)
