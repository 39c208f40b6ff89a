"""`clean` lists first, asks on a terminal, and removes what killed runs left, in sets too."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.synthetic_runs import facts
from tritonchaos.store import RunStore


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run that was killed and a set with another, each with its scratch folder; and a folder of somebody else's."""
    for folder in ("one", "set/two"):
        store = RunStore.create(tmp_path / "runs" / folder, facts(), "scenario: a\n")
        store.close()
        (tmp_path / "runs" / folder / "scratch").mkdir()
    (tmp_path / "runs" / "other" / "scratch").mkdir(parents=True)
    return tmp_path / "runs"


def clean(runs: Path, *options: str, answer: str | None = None) -> str:
    command = [sys.executable, "-m", "tritonchaos", "clean", "--runs", str(runs), *options]
    if answer is None:
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60).stdout
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, text=True)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    said, _ = process.communicate(timeout=60)
    os.close(ours)
    return said


def scratches(runs: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(runs)) for path in runs.rglob("scratch"))


def test_a_dry_run_lists_and_removes_nothing(runs: Path) -> None:
    said = clean(runs, "--dry-run")
    assert [line.split()[0] for line in said.splitlines()] == ["scratch", "scratch"]
    assert scratches(runs) == ["one", "other", "set/two"]


def test_without_a_terminal_it_removes_what_is_ours(runs: Path) -> None:
    assert "removed 2" in clean(runs)
    assert scratches(runs) == ["other"]
    assert "nothing was left behind" in clean(runs)


@pytest.mark.parametrize(("answer", "left"), [("n", 3), ("", 3), ("y", 1)])
def test_on_a_terminal_it_asks(runs: Path, answer: str, left: int) -> None:
    said = clean(runs, answer=answer)
    assert "Remove these 2?" in said
    assert len(scratches(runs)) == left


def test_yes_is_an_answer_in_advance(runs: Path) -> None:
    assert "removed 2" in clean(runs, "--yes", answer="")
    assert scratches(runs) == ["other"]
