"""The summary of a GitHub step: what is in it, where it goes, and that it never grows past what GitHub takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.finished_runs import LEAK, leaking_run
from tests.in_process import Called, tritonchaos
from tests.kept_runs import FORMAT_1, copy_of
from tritonchaos.reporters.github import text
from tritonchaos.summary import FinishedEntry, FinishedSet, set_of_one


def report(folder: Path, summary: Path | None) -> Called:
    environment = {"GITHUB_STEP_SUMMARY": None if summary is None else str(summary)}
    return tritonchaos("report", folder, "--report", "github", cwd=folder, env=environment)


def test_it_is_appended_to_the_summary_of_the_step_and_kept_in_the_folder(tmp_path: Path) -> None:
    folder = copy_of(FORMAT_1, tmp_path)
    summary = tmp_path / "summary.md"
    summary.write_text("what another tool said\n")
    done = report(folder, summary)
    assert done.returncode == 0, done.stderr
    kept = (folder / "step-summary.md").read_text(encoding="utf-8")
    assert summary.read_text(encoding="utf-8") == "what another tool said\n" + kept
    assert kept.startswith("## ❌ kept-run: FINDINGS: ")
    assert "| ❌ | `memory_growth [host_private_bytes]` | leak: " in kept
    assert "<details><summary>crash: tritonserver died of SIGABRT" in kept


def test_without_a_step_it_is_only_in_the_folder(tmp_path: Path) -> None:
    folder = copy_of(FORMAT_1, tmp_path)
    done = report(folder, None)
    assert "step-summary.md" in done.stdout
    assert (folder / "step-summary.md").exists()


def test_a_summary_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    done = report(copy_of(FORMAT_1, tmp_path), tmp_path / "no" / "folder" / "summary.md")
    assert done.returncode == 2
    assert "cannot write the report github" in done.stderr


def test_a_summary_that_is_nearly_full_takes_what_fits(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_bytes(b"x" * (1024 * 1024 - 4096 - 300))
    assert report(copy_of(FORMAT_1, tmp_path), summary).returncode == 0
    assert summary.stat().st_size < 1024 * 1024 - 4096
    assert "The rest is left out" in summary.read_bytes()[-300:].decode()


def test_hostile_text_stays_text() -> None:
    finding = replace(
        LEAK, title="<script>alert(1)</script> | `x` ](http://evil) @someone", evidence=("```", "</details>")
    )
    shown = text(set_of_one(leaking_run(finding=finding)))
    markup, fence, code = shown.partition("````text")
    assert fence, "a fence that is longer than the one in the text"
    assert "<script>" not in markup
    assert "@someone" not in markup
    assert code.index("</details>") < code.index("\n````\n") < code.rindex("</details>")


def test_a_set_has_a_table_of_its_runs_and_ends_where_there_is_no_room() -> None:
    run = leaking_run()
    entries = [FinishedEntry(f"scenario-{number}", "", f"{number}", run, 1) for number in range(400)]
    entries += [
        FinishedEntry("broken", "", "", None, 2, "s.yaml:1:1: found | nothing"),
        FinishedEntry("late", "", "", None, None),
    ]
    shown = text(FinishedSet("set-1", tuple(entries), 1), 100_000)
    assert shown.startswith("## ❌ tritonchaos: 402 runs, exit code 1\n")
    assert "| ⚠️ | broken | 2 | s.yaml:1:1: found \\| nothing |" in shown
    assert "| ⏭️ | late | - |" in shown
    assert len(shown.encode()) <= 100_000
    assert shown.endswith("it is in the reports of the runs.\n")
