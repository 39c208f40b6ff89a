"""junit.xml, read back by another tool than the one that wrote it (junit2html)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import LEAK, leaking_run
from tritonchaos.plugins import REPORTERS
from tritonchaos.reporters.junit import JUnit
from tritonchaos.summary import FinishedEntry, FinishedRun, FinishedSet, finish
from tritonchaos.verdict import Assessment, Status, Verdict

Junit = pytest.importorskip("junit2htmlreport.parser", reason="comes with the extra `dev`").Junit


def read(run: FinishedRun, folder: Path) -> Any:
    assert JUnit().render(run, folder) == [folder / "junit.xml"]
    return Junit(filename=str(folder / "junit.xml"))


def outcomes(report: Any) -> dict[str, str]:
    return {case.name: case.outcome() for suite in report.suites for case in suite.all()}


def test_a_leak_is_a_failure_with_everything_that_is_known_of_it(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("a report")
    report = read(leaking_run(), tmp_path)
    [suite] = report.suites
    assert suite.name == "failed-load"
    assert outcomes(report) == {
        "run": "passed",
        "memory_growth [host_private_bytes]": "failed",
        "memory_growth [host_pss_bytes]": "skipped",
    }
    failure = next(case for case in suite.all() if case.outcome() == "failed")
    assert failure.failure_msg == "leak: host_private_bytes grows with each failed load"
    assert "growth: 1 MiB per cycle (95 % interval 512 KiB to 1.5 MiB)" in failure.failure
    assert "first seen: wrong, cycle 3, step 0 (load ident), 1 in all" in failure.failure
    assert "cycle 5: 107 MiB" in failure.failure
    assert failure.stdout == "[[ATTACHMENT|report.md]]"
    properties = {property.name: property.value for property in suite.properties}
    assert properties["run_id"] == "run-1"
    assert properties["exit_code"] == "1"
    assert properties["target.triton_version"] == "2.51.0"
    assert properties["variant.ident"] == "planted"
    assert properties["attachment"] == "report.md"


def run_with(*assessments: Assessment, interrupted: bool = False, **facts: object) -> FinishedRun:
    leaking = leaking_run()
    history = replace(leaking.history, interrupted=interrupted, facts=replace(leaking.history.facts, **facts))  # type: ignore[arg-type]
    findings = tuple(finding for assessment in assessments for finding in assessment.findings)
    verdict = Verdict(Status.UNKNOWN, assessments, findings)
    accept_known = history.facts.accept_known
    exit_code = 130 if interrupted else verdict.exit_code(accept_known=accept_known)
    return finish(history, verdict, exit_code)


PASSED = Assessment("hang", Status.PASS, "3 calls were answered in time")
UNKNOWN = Assessment("hang", Status.UNKNOWN, "nothing was called")
BESIDE = replace(UNKNOWN, counts=False)
KNOWN = replace(LEAK, known="https://example.org/1")
FAILED = Assessment("memory_growth", Status.FAIL, "steps", findings=(LEAK,))
FAILED_AS_KNOWN = replace(FAILED, findings=(KNOWN,))
NOT_COUNTED = replace(FAILED, findings=(replace(LEAK, counts=False),))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (run_with(PASSED), {"run": "passed", "hang": "passed"}),
        (run_with(PASSED, UNKNOWN), {"run": "passed", "hang": "passed", "hang (2)": "failed"}),
        (run_with(PASSED, BESIDE), {"run": "passed", "hang": "passed", "hang (2)": "skipped"}),
        (run_with(BESIDE), {"run": "failed", "hang": "skipped"}),
        (run_with(), {"run": "failed"}),
        (run_with(FAILED_AS_KNOWN), {"run": "passed", "memory_growth": "failed"}),
        (run_with(FAILED_AS_KNOWN, accept_known=True), {"run": "passed", "memory_growth": "skipped"}),
        (run_with(PASSED, NOT_COUNTED), {"run": "passed", "hang": "passed", "memory_growth": "skipped"}),
        (run_with(PASSED, interrupted=True), {"run": "failed", "hang": "passed"}),
    ],
)
def test_ci_is_red_exactly_where_the_exit_code_is_not_0(
    run: FinishedRun, expected: dict[str, str], tmp_path: Path
) -> None:
    found = outcomes(read(run, tmp_path))
    assert found == expected
    assert ("failed" in found.values()) == (run.exit_code != 0)


def test_what_cannot_be_told_is_an_error_and_no_failure(tmp_path: Path) -> None:
    read(run_with(PASSED, UNKNOWN), tmp_path)
    text = (tmp_path / "junit.xml").read_text()
    assert '<error message="nothing was called" type="unknown">' in text
    assert 'failures="0" errors="1" skipped="0"' in text
    assert "<failure" not in text


def test_what_xml_cannot_hold_is_replaced_and_markup_stays_text(tmp_path: Path) -> None:
    hostile = "a\x00b\x1b[31m \udcff ]]> <script>alert('1')</script> & \"quoted\""
    finding = replace(LEAK, title=hostile, evidence=(hostile,))
    report = read(leaking_run(finding=finding), tmp_path)
    failure = next(case for suite in report.suites for case in suite.all() if case.outcome() == "failed")
    shown = "a\ufffdb\ufffd[31m \ufffd ]]> <script>alert('1')</script> & \"quoted\""
    assert failure.failure_msg == f"leak: {shown}"
    assert shown in failure.failure
    assert "<script>" not in (tmp_path / "junit.xml").read_text(encoding="utf-8")


def test_no_folder_of_this_machine_is_named(tmp_path: Path) -> None:
    finding = replace(LEAK, title="/home/somebody/models/ident is kept", evidence=("from /home/somebody/x.so",))
    read(leaking_run(finding=finding), tmp_path)
    text = (tmp_path / "junit.xml").read_text()
    assert "/home" not in text
    assert str(tmp_path) not in text
    assert "ident is kept" in text


def test_a_set_is_one_file_with_a_suite_for_each_run(tmp_path: Path) -> None:
    (tmp_path / "leaking").mkdir()
    (tmp_path / "leaking" / "server.log").write_text("")
    entries = (
        FinishedEntry("leaking", "", "leaking", leaking_run(), 1),
        FinishedEntry("broken", "a=1", "", None, 2, "s.yaml:1:1: found nothing\nhint: write something"),
        FinishedEntry("broken", "a=1", "", None, 2, "s.yaml:1:1: found nothing\nhint: write something"),
        FinishedEntry("late", "", "", None, None, "not run: interrupted"),
    )
    assert JUnit().render_set(FinishedSet("set-1", entries, 1), tmp_path) == [tmp_path / "junit.xml"]
    report = Junit(filename=str(tmp_path / "junit.xml"))
    assert [suite.name for suite in report.suites] == ["leaking", "broken [a=1]", "broken [a=1]", "late"]
    found = [[case.outcome() for case in suite.all()] for suite in report.suites]
    assert found == [["passed", "failed", "skipped"], ["failed"], ["failed"], ["skipped"]]
    [broken] = report.suites[1].all()
    assert broken.failure_msg == "s.yaml:1:1: found nothing"
    assert "hint: write something" in broken.failure
    assert "[[ATTACHMENT|leaking/server.log]]" in (tmp_path / "junit.xml").read_text()


def test_it_is_written_by_default_and_has_help() -> None:
    assert REPORTERS["junit"] is JUnit
    assert "what cannot be told is an error" in REPORTERS.help("junit")
