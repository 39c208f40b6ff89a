"""The rules of a set: which exit code is the worst, how folders are named, what set.json holds of what was not run."""

from __future__ import annotations

import pytest

from tritonchaos.errors import ExitCode, ScenarioError
from tritonchaos.running_sets import Entry, Planned, folder_names, set_document, worst
from tritonchaos.scenario import Scenario


def planned(name: str, cell: str = "") -> Planned:
    return Planned(name, cell, Scenario.model_construct(scenario=name))


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 0], 0),
        ([0, 3], 3),
        ([3, 2, 0], 2),
        ([2, 4], 4),
        ([4, 130], 130),
        ([2, 1, 130, 4], 1),
        ([1, 70], 70),
        ([], 3),
    ],
)
def test_the_worst_exit_code_is_the_sets(codes: list[int], expected: int) -> None:
    assert worst(codes) == expected


def test_folders_are_named_after_their_scenarios_and_kept_apart() -> None:
    entries = [
        planned("a"),
        planned("a"),
        planned("v", "x=1"),
        planned("v", "x=2"),
        Planned("odd name/..", error=ScenarioError("no")),
    ]
    assert list(folder_names(entries)) == ["a", "a-2", "v.cell-1", "v.cell-2", "odd-name-.."]


def test_what_was_not_run_is_in_the_document_with_its_reason() -> None:
    entry = Entry(planned("a"), "", None, None, "not run: interrupted")
    document = set_document("set-1", [entry], ExitCode.INTERRUPTED)
    assert document["interrupted"] is True
    assert document["runs"][0]["exit_code"] is None
    assert document["runs"][0]["error"] == "not run: interrupted"


def test_no_folder_of_this_machine_is_in_the_document() -> None:
    entry = Entry(planned("a"), "", None, 4, "/opt/somewhere/tritonserver does not exist")
    assert "/opt" not in str(set_document("set-1", [entry], ExitCode.NO_TARGET))
