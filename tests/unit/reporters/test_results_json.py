import json
from dataclasses import replace

import pytest

from tests.finished_runs import LEAK, leaking_run
from tritonchaos.plugins import REPORTERS
from tritonchaos.reporters.results_json import ResultsJson, dump


def test_the_file_is_the_document_and_ends_in_a_line_break(tmp_path):
    finished = leaking_run()
    assert ResultsJson().render(finished, tmp_path) == [tmp_path / "results.json"]
    written = (tmp_path / "results.json").read_text(encoding="utf-8")
    assert json.loads(written) == finished.results
    assert written == dump(finished.results)
    assert written.startswith('{\n  "schema": "tritonchaos.results/1",\n  "run_id": "run-1",\n')
    assert written.endswith("}\n")


def test_other_scripts_are_written_as_they_are_and_undecodable_bytes_replaced(tmp_path):
    finished = leaking_run(finding=replace(LEAK, title="Größe \udcff"))
    ResultsJson().render(finished, tmp_path)
    assert '"title": "Größe ?"' in (tmp_path / "results.json").read_text(encoding="utf-8")


def test_what_cannot_be_written_to_its_end_leaves_the_file_that_was_there(tmp_path):
    finished = leaking_run()
    ResultsJson().render(finished, tmp_path)
    before = (tmp_path / "results.json").read_bytes()
    endless = replace(finished, results={**finished.results, "notes": [float("nan")]})
    with pytest.raises(ValueError, match="JSON"):
        ResultsJson().render(endless, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert (tmp_path / "results.json").read_bytes() == before


def test_it_is_registered_with_help():
    assert REPORTERS["results_json"] is ResultsJson
    assert REPORTERS.help("results_json") == "results.json: everything that was found, for programs."
