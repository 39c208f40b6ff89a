"""A recorded run as a bundle is made from it: judged again, with its scenario and the states of its models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tritonchaos.errors import ScenarioError, StoreError, UsageError
from tritonchaos.judging import judge_history
from tritonchaos.scenario import Scenario, parse_scenario
from tritonchaos.store import open_history
from tritonchaos.summary import FinishedRun
from tritonchaos.verdict import Finding

_INCOMPLETE: Final = "copy the run directory again, whole"
# The worst first: what takes the server down, then what it keeps, then what it says.
_WORST_FIRST: Final = (
    "crash", "hang", "leak", "wrong_output", "collateral", "will_not_stop", "stale_content", "leftover", "retention",
    "wrong_state", "not_recovered", "refused_start", "over_budget", "wrong_error", "misleading_error", "slowdown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Edit:
    """One line of the archive's edits.jsonl: a model's state after an edit.

    Attributes:
        state: Folder of the archive that holds the model as it was then.
    """

    label: str
    model: str
    state: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run directory that was read.

    Attributes:
        scenario: The scenario as run, in plain values.
        edits: The states of models, in the order in which they came about.
    """

    folder: Path
    finished: FinishedRun
    scenario: Mapping[str, Any]
    edits: tuple[Edit, ...]

    def model_folder(self, state: str, model: str) -> Path:
        """Folder with the files of a model in one state."""
        return self.folder / "repository" / state / model

    def added_state(self, model: str) -> str:
        """The state that a model was added in."""
        return next(edit.state for edit in self.edits if edit.model == model)

    def schedule(self) -> Scenario | None:
        """The scenario with all that runs at the same time; None: nothing does.

        Raises:
            UsageError: This tritonchaos does not understand it any more, or not yet.
        """
        text = (self.folder / "scenario.yaml").read_text(encoding="utf-8")
        if "together" not in text and "meanwhile" not in text:
            return None
        try:
            return parse_scenario(text, "scenario.yaml")
        except ScenarioError as error:
            raise UsageError(
                f"the run has steps beside each other, and its scenario cannot be read: {error.message}",
                hint="name its plug-ins with --plugin, or hand on the scenario and the run directory",
            ) from error


def read_recorded(folder: Path) -> Recorded:
    """Read a run directory and judge it again.

    Raises:
        StoreError: It is not a run, damaged, incomplete, still going on, or a newer tritonchaos wrote it.
    """
    _refuse_links(folder)
    history = open_history(folder)
    scenario = _read_scenario(folder / "scenario.yaml")
    return Recorded(folder, judge_history(history), scenario, _read_edits(folder / "repository"))


def _refuse_links(folder: Path) -> None:
    """A link in a run that somebody sent would bring a file of this machine into the bundle."""
    for name in ("run.db", "run.db-wal", "scenario.yaml", "server.log", "repository", "repository/edits.jsonl"):
        if (folder / name).is_symlink():
            raise StoreError(f"{folder / name} is a link, expected a file of the run itself", hint=_INCOMPLETE)


def choose_finding(recorded: Recorded, wanted: str | None) -> Finding:
    """Return the finding with an id (its beginning is enough), or the worst one.

    Raises:
        UsageError: There is none, or none of that id.
    """
    findings = recorded.finished.verdict.findings
    if not findings:
        raise UsageError(
            f"the run {recorded.folder} has no findings, so there is nothing to reproduce",
            hint="its headline: " + recorded.finished.headline,
        )
    if wanted is None:
        return min(findings, key=lambda finding: (not finding.counts, _WORST_FIRST.index(finding.kind)))
    found = [finding for finding in findings if finding.id.startswith(wanted)] if wanted else []
    if len(found) != 1:
        known = "; ".join(f"{finding.id} {finding.kind}: {finding.title}" for finding in findings)
        raise UsageError(f"found {len(found)} findings with the id {wanted!r}, expected one", hint=f"it has {known}")
    return found[0]


def _read_scenario(path: Path) -> Mapping[str, Any]:
    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoreError(f"the run directory is incomplete: found no {path}", hint=_INCOMPLETE) from error
    except (yaml.YAMLError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise StoreError(f"cannot read {path}: {error}", hint=_INCOMPLETE) from error
    if not isinstance(read, Mapping):
        raise StoreError(f"{path} holds no scenario", hint=_INCOMPLETE)
    return read


def _read_edits(archive: Path) -> tuple[Edit, ...]:
    path = archive / "edits.jsonl"
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        edits = tuple(Edit(str(line["label"]), str(line["model"]), str(line["folder"])) for line in lines)
    except FileNotFoundError as error:
        raise StoreError(f"the run directory is incomplete: found no {path}", hint=_INCOMPLETE) from error
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise StoreError(f"{path} is damaged: {error}", hint=_INCOMPLETE) from error
    for edit in edits:
        _check_edit(archive, edit)
    return edits


def _check_edit(archive: Path, edit: Edit) -> None:
    """A damaged or hostile archive must not lead to files outside of it."""
    for name in (edit.state, edit.model):
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise StoreError(f"{archive / 'edits.jsonl'} is damaged: found the name {name!r}", hint=_INCOMPLETE)
    folder = archive / edit.state / edit.model
    if not folder.is_dir() or not folder.resolve().is_relative_to(archive.resolve()):
        raise StoreError(f"the run directory is incomplete: found no {folder}", hint=_INCOMPLETE)
