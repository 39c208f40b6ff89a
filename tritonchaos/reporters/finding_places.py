"""Where a finding belongs: the line of config.pbtxt that an edit had changed, and the lines of the scenario."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.observations import History, Position, StepFinished
from tritonchaos.pbtxt import line_of
from tritonchaos.reporters.archived_edits import ArchivedEdits, read_text
from tritonchaos.reporters.scenario_lines import ScenarioLines
from tritonchaos.summary.stretches import stretches_of
from tritonchaos.verdict import Finding

_EDITS: Final = frozenset({"edit_config", "put_file", "delete_file", "add_version"})


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file of the run directory.

    Attributes:
        path: Relative to the run directory.
        line: From 1.
        what: What is there, in a few words.
    """

    path: str
    line: int
    what: str


def finding_places(
    history: History, findings: tuple[Finding, ...], folder: Path
) -> Mapping[Position, tuple[Place, ...]]:
    """Find the places of all findings that have a position, the most telling first.

    That is the line in config.pbtxt which the last edit before it had set, if the model had not been restored since;
    then the line of the step that the finding is about in the scenario, and that of the edit. What cannot be found is
    left out.

    Args:
        history: Of cycles that are alike one is looked at, and those of the findings.
        folder: Run directory, with `scenario.yaml` and `repository/`.
    """
    wanted = {finding.position for finding in findings if finding.position is not None}
    archive, scenario = ArchivedEdits.read(folder), ScenarioLines.read(folder)
    places: dict[Position, tuple[Place, ...]] = {}
    edits: dict[str, StepFinished] = {}
    for step in _steps(history, wanted) if wanted else ():
        _follow(step, edits, archive)
        if step.position in wanted and step.position not in places:
            edit = edits.get(step.spec.model or "")
            places[step.position] = tuple(_places(step, edit, archive, scenario, folder))
    for position in wanted - places.keys():
        line = scenario.phase(position.phase)
        places[position] = () if line is None else (Place(scenario.name, line, f"phase {position.phase}"),)
    return places


def _steps(history: History, wanted: Collection[Position]) -> Iterator[StepFinished]:
    """Yield the steps that edit or restore a model, and those of the wanted cycles, in order."""
    stretches = stretches_of(history)
    looked_at = {
        at
        for position in wanted
        if position.cycle is not None
        for at in stretches.numbered(position.phase, position.cycle)
    }
    has_edits: dict[int, bool] = {}
    for at, shape in enumerate(stretches.cut.shapes):
        if shape and at not in looked_at and not has_edits.get(shape, True):
            continue
        steps = [event for event in stretches.cut.events(at) if isinstance(event, StepFinished)]
        has_edits.setdefault(shape, any(step.spec.name in (*_EDITS, "restore") for step in steps))
        yield from steps


def _follow(step: StepFinished, edits: dict[str, StepFinished], archive: ArchivedEdits) -> None:
    """Keep the last edit of each model that is still in force, and the state that its files are in."""
    if step.spec.name in _EDITS and step.spec.model:
        edits[step.spec.model] = step
        archive.follow(step.spec.name, step.spec.model)
    elif step.spec.name == "restore":
        for model in [step.spec.model] if step.spec.model else archive.models():
            edits.pop(model, None)
            archive.follow("restore", model)


def _places(
    step: StepFinished, edit: StepFinished | None, archive: ArchivedEdits, scenario: ScenarioLines, folder: Path
) -> Iterator[Place]:
    if edit is not None:
        yield from _edited(edit, archive, folder)
    for one, what in ((step, "the step that it is about"), (edit, "the edit before it")):
        line = scenario.step(one.position, one.spec) if one is not None else None
        if one is not None and line is not None:
            yield Place(scenario.name, line, f"{one.spec.label()}: {what}")


def _edited(edit: StepFinished, archive: ArchivedEdits, folder: Path) -> Iterator[Place]:
    model = edit.spec.model or ""
    state = archive.current(model)
    if state is None:
        return
    if edit.spec.name == "put_file":
        path = f"{state}/{edit.spec.fields.get('path', '')}"
        if read_text(folder, path) is not None:
            yield Place(path, 1, "the file that was put there")
    elif edit.spec.name == "edit_config":
        path = f"{state}/config.pbtxt"
        text = read_text(folder, path)
        changes = edit.spec.fields.get("set")
        if text is None or not isinstance(changes, Mapping):
            return
        for field, value in changes.items():
            line = line_of(text, field)
            if line is not None:
                yield Place(path, line, f"{field} was set to {value}")
