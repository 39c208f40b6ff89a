"""Reads a scenario file: all that is wrong with it in one error, or a Scenario."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from tritonchaos.errors import ScenarioError
from tritonchaos.observations import JsonValue
from tritonchaos.scenario.cells import cell_documents, vary_problems
from tritonchaos.scenario.checks import phase_problems, verdict_problems
from tritonchaos.scenario.entries import Families
from tritonchaos.scenario.entry_reader import EntryReader
from tritonchaos.scenario.expect_fields import PositiveSeconds
from tritonchaos.scenario.ladder import ladder_steps
from tritonchaos.scenario.problems import Problem, YamlPath, shown
from tritonchaos.scenario.records import (
    Scenario,
)
from tritonchaos.scenario.schema import complete_schema
from tritonchaos.scenario.server_checks import metric_problems, model_problems, server_problems
from tritonchaos.scenario.validation import Keys, problems_of, validate
from tritonchaos.scenario.yaml_source import MAX_BYTES, Document, decode, read_yaml

_DEADLINE: Final[TypeAdapter[float]] = TypeAdapter(PositiveSeconds)
_STEP_LISTS: Final = ("before", "each", "after", "steps")


def load_scenario(path: Path, extra_models: Collection[str] = (), families: Families | None = None) -> Scenario:
    """Read a scenario file; plug-ins must be loaded before.

    Args:
        extra_models: Names of further models that steps may use (of a user's own model repository).
        families: Where names of plug-ins are looked up; the registries, if None.

    Raises:
        ScenarioError: All that is wrong with it, each with file, line, column and YAML path.
    """
    return parse_document(load_document(path), extra_models, families)


def load_document(path: Path) -> Document:
    """Read the YAML of a scenario file without judging what it says.

    Raises:
        ScenarioError: It cannot be read, is not UTF-8 or not YAML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ScenarioError(
            f"{path}: found {error.strerror or error}, expected a scenario file",
            hint="`tritonchaos list` shows the scenarios that come with tritonchaos",
        ) from None
    return read_yaml(decode(content, str(path)), str(path))


def parse_scenario(
    text: str, source: str, extra_models: Collection[str] = (), families: Families | None = None
) -> Scenario:
    """Read the text of a scenario file; arguments and errors as of `load_scenario`.

    Args:
        source: Name of the file, for messages.
    """
    return parse_document(read_yaml(text, source), extra_models, families)


def parse_document(
    document: Document, extra_models: Collection[str] = (), families: Families | None = None
) -> Scenario:
    """Make a scenario of a YAML document that was read; arguments and errors as of `load_scenario`."""
    families = families or Families()
    raw = document.value
    if not isinstance(raw, dict):
        raise document.error([*document.problems, _not_a_scenario(raw)])
    models = _model_names(raw) | frozenset(extra_models)
    reader = EntryReader(families, models, _default_deadline_s(raw), Path(document.source).parent)
    filled = _with_entries(raw, reader)
    problems = [*document.problems]
    scenario: Scenario | None = None
    try:
        scenario = Scenario.model_validate(filled)
    except ValidationError as error:
        problems += problems_of(error, filled, (), keys_at)
    problems += reader.problems
    problems += phase_problems(raw.get("phases"))
    problems += verdict_problems(document.at, families.checkers)
    problems += server_problems(raw)
    problems += model_problems(raw, Path(document.source).parent)
    problems += metric_problems(raw)
    problems += vary_problems(raw)
    if problems or scenario is None:
        raise document.error(problems)
    return scenario.with_text(document.text, Path(document.source).parent).with_cells(
        _cells(document, extra_models, families)
    )


def _cells(document: Document, extra_models: Collection[str], families: Families) -> tuple[tuple[str, Scenario], ...]:
    """Make the scenario of every cell now, so that what is wrong in one of them is told before anything starts."""
    if "vary" not in document.value:
        return ()
    cells = []
    for label, cell in cell_documents(document):
        try:
            cells.append((label, parse_document(cell, extra_models, families)))
        except ScenarioError as error:
            raise ScenarioError(error.message, hint=f"this is so in the cell {label} of `vary`") from None
    return tuple(cells)


def json_schema(families: Families | None = None) -> dict[str, JsonValue]:
    """JSON Schema of the scenario file, with every registered step, check and target."""
    return complete_schema(Scenario.model_json_schema(), families or Families())


def _not_a_scenario(raw: JsonValue) -> Problem:
    return Problem((), shown(raw), "a mapping with the keys of a scenario, such as scenario, models, phases, check")


def _model_names(raw: Mapping[str, JsonValue]) -> frozenset[str]:
    models = raw.get("models")
    return frozenset(models) if isinstance(models, dict) else frozenset()


def _default_deadline_s(raw: Mapping[str, JsonValue]) -> float:
    standard: float = Scenario.model_fields["deadline"].default
    deadline_s, problems = validate(_DEADLINE, raw.get("deadline", standard), ("deadline",))
    return standard if problems else deadline_s


# --- entries in place of their written forms -----------------------------------------------------


def _with_entries(raw: Mapping[str, JsonValue], reader: EntryReader) -> dict[str, Any]:
    filled = dict(raw)
    if "target" in raw:
        filled["target"] = reader.targets(raw["target"], ("target",))
    if "check" in raw:
        filled["check"] = reader.checks(raw["check"], ("check",))
    if isinstance(raw.get("phases"), list):
        filled["phases"] = [_phase(phase, ("phases", i), reader) for i, phase in enumerate(raw["phases"])]
    return filled


def _phase(raw: JsonValue, path: YamlPath, reader: EntryReader) -> JsonValue:
    if not isinstance(raw, dict):
        return raw
    filled = _with_steps(raw, path, reader)
    if "ladder" in raw and "steps" not in raw:
        filled |= _ladder(raw, path, reader)
    arms, tracks = raw.get("arms"), raw.get("meanwhile")
    if isinstance(arms, dict):
        filled["arms"] = {
            arm: _with_steps(lists, (*path, "arms", arm), reader) if isinstance(lists, dict) else lists
            for arm, lists in arms.items()
        }
    if isinstance(tracks, list):
        filled["meanwhile"] = [
            _with_steps(track, (*path, "meanwhile", i), reader) if isinstance(track, dict) else track
            for i, track in enumerate(tracks)
        ]
    return filled


def _ladder(raw: Mapping[str, JsonValue], path: YamlPath, reader: EntryReader) -> dict[str, Any]:
    """Steps of a phase with `ladder`, which is climbed after a leak unless it says otherwise."""
    models = raw["ladder"] if isinstance(raw["ladder"], list) else [raw["ladder"]]
    if not models or not all(isinstance(model, str) for model in models):
        return {}
    steps = reader.steps(ladder_steps(models, reader.models), (*path, "ladder"))
    return {"when": raw.get("when", "leak"), "steps": steps}


def _with_steps(raw: Mapping[str, JsonValue], path: YamlPath, reader: EntryReader) -> dict[str, Any]:
    lists = {key: reader.steps(raw[key], (*path, key)) for key in _STEP_LISTS if key in raw}
    return {**raw, **lists}


# --- which keys may stand where ------------------------------------------------------------------


def keys_at(loc: YamlPath) -> Keys:
    """Return the keys that the scenario's records know at a path; none where something else stands."""
    record: Any = Scenario
    for part in loc:
        record = _below(record, part)
    record = _record_in(record)
    return Keys(tuple(record.model_fields), record.later) if record is not None else Keys(())


def _below(annotation: Any, part: str | int) -> Any:
    """Annotation of the value under a key or index of a value with this annotation."""
    record = _record_in(annotation)
    if record is None or not isinstance(part, str):
        return annotation
    field = record.model_fields.get(part)
    return field.annotation if field is not None else annotation


def _record_in(annotation: Any) -> Any:
    """Return the record that an annotation is, or that its collection or union holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_record_in(argument) for argument in get_args(annotation))
    return next((record for record in found if record is not None), None)
