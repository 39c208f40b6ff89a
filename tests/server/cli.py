"""Runs scenarios through the command line, within this process or, as a user does, in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import in_process


@dataclass(frozen=True)
class Called:
    exit_code: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def results(self) -> dict[str, Any]:
        return json.loads((self.folder / "results.json").read_text())

    def kinds(self) -> set[str]:
        return {finding["kind"] for finding in self.results["findings"]}

    def findings(self, kind: str) -> list[dict[str, Any]]:
        return [finding for finding in self.results["findings"] if finding["kind"] == kind]

    def shown(self) -> str:
        return f"exit {self.exit_code}\n{self.stdout}\n{self.stderr}"


def tritonchaos(*arguments: str | Path, cwd: Path, deadline_s: float = 240) -> subprocess.CompletedProcess[str]:
    """Call the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tritonchaos", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=deadline_s,
    )


def run_scenario(scenario: str | Path, folder: Path, *options: str | Path) -> Called:
    """Run a scenario into `folder`/run within this process; a text with a newline is written to a file first."""
    done = in_process.tritonchaos("run", _file(scenario, folder), "--out", folder / "run", *options, cwd=folder)
    return Called(done.returncode, done.stdout, done.stderr, folder / "run")


def run_as_user(scenario: str | Path, folder: Path, *options: str | Path) -> Called:
    """Do what `run_scenario` does in a process of its own."""
    done = tritonchaos("run", _file(scenario, folder), "--out", folder / "run", *options, cwd=folder)
    return Called(done.returncode, done.stdout, done.stderr, folder / "run")


def _file(scenario: str | Path, folder: Path) -> str | Path:
    if not isinstance(scenario, str) or "\n" not in scenario:
        return scenario
    file = folder / "scenario-under-test.yaml"
    file.write_text(scenario)
    return file
