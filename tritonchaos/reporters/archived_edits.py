"""The states of the model repository that a run directory keeps, followed edit by edit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from tritonchaos.units import MIB

_MOST_BYTES: Final = 1 * MIB


@dataclass(slots=True)
class ArchivedEdits:
    """`repository/edits.jsonl`: for each model its states in order, and which one is reached.

    Attributes:
        states: Model -> (label of the edit, folder of the state), the first being the model as it was added.
        reached: Model -> index into its states.
    """

    states: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    reached: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> ArchivedEdits:
        """Read the edits of a run directory; of what is missing or damaged nothing is known."""
        edits = cls()
        text = read_text(folder, "repository/edits.jsonl") or ""
        for line in text.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                break
            if not _is_edit(entry):
                break
            edits.states.setdefault(entry["model"], []).append((entry["label"], entry["folder"]))
        return edits

    def models(self) -> list[str]:
        """Return the models that the run had."""
        return list(self.states)

    def follow(self, step: str, model: str) -> None:
        """Go on to the state after a step; one that changed nothing has none of its own."""
        at = self.reached.get(model, 0) + 1
        states = self.states.get(model, [])
        if at < len(states) and states[at][0] == f"{step}-{model}":
            self.reached[model] = at

    def current(self, model: str) -> str | None:
        """Return the folder of a model's files as they are now, relative to the run directory."""
        states = self.states.get(model)
        return f"repository/{states[self.reached.get(model, 0)][1]}/{model}" if states else None


def _is_edit(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(key), str) for key in ("label", "model", "folder"))
        and all(PurePosixPath(entry[key]).name == entry[key] != ".." for key in ("model", "folder"))
    )


def read_text(folder: Path, path: str) -> str | None:
    """Read a small file of a run directory; None for what is missing, not text, large, or leads out of the folder."""
    file = folder / path
    try:
        if ".." in PurePosixPath(path).parts or not file.resolve().is_relative_to(folder.resolve()):
            return None
        if not file.is_file() or file.stat().st_size > _MOST_BYTES:
            return None
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
