"""The lines of scenario.yaml in which phases and steps stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.errors import ScenarioError
from tritonchaos.observations import Position, StepSpec
from tritonchaos.reporters.archived_edits import read_text
from tritonchaos.scenario.problems import YamlPath
from tritonchaos.scenario.yaml_source import Document, read_yaml

_FILE: Final = "scenario.yaml"


@dataclass(frozen=True, slots=True)
class ScenarioLines:
    """The scenario of a run directory, as text with places; `document` is None where it cannot be read."""

    document: Document | None
    name: str = _FILE

    @classmethod
    def read(cls, folder: Path) -> ScenarioLines:
        """Read the scenario as run."""
        text = read_text(folder, _FILE)
        try:
            return cls(None if text is None else read_yaml(text, _FILE))
        except ScenarioError:
            return cls(None)

    def phase(self, name: str) -> int | None:
        """Return the line in which a phase begins."""
        path = self._phase_path(name)
        return None if path is None or self.document is None else self.document.places[path].line

    def step(self, position: Position, spec: StepSpec) -> int | None:
        """Return the line of a step; of several that look alike, the one at its number within the block."""
        path = self._phase_path(position.phase)
        if path is None or self.document is None:
            return None
        found = list(self._steps_named(path, spec.name))
        if not found:
            return self.document.places[path].line
        best = max(found, key=lambda step: self._likeness(step, position, spec))
        return self.document.places[best].key_line

    def _phase_path(self, name: str) -> YamlPath | None:
        phases = self.document.at(("phases",)) if self.document is not None else None
        for number, phase in enumerate(phases if isinstance(phases, list) else []):
            if isinstance(phase, dict) and phase.get("phase") == name:
                return ("phases", number)
        return None

    def _steps_named(self, below: YamlPath, name: str) -> Iterator[YamlPath]:
        """Yield the paths of the steps of a name: a key within an item of a list."""
        places = self.document.places if self.document is not None else {}
        for path in places:
            is_below = path[: len(below)] == below and len(path) > len(below) + 2
            if is_below and path[-1] == name and isinstance(path[-2], int):
                yield path

    def _likeness(self, path: YamlPath, position: Position, spec: StepSpec) -> tuple[bool, ...]:
        value = self.document.at(path) if self.document is not None else None
        fields = value if isinstance(value, dict) else {}
        model = fields.get("model", value if isinstance(value, str) else None)
        is_in_cycle = "each" in path
        return (
            is_in_cycle == (position.cycle is not None),
            position.arm is None or position.arm.value in path or not ({"control", "treatment"} & set(map(str, path))),
            model == spec.model,
            fields.get("set") == spec.fields.get("set"),
            fields.get("path") == spec.fields.get("path"),
            path[-2] == position.step_number,
        )
