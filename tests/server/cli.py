"""Calls the command line as a user does, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
    return subprocess.run(
        [sys.executable, "-m", "tritonchaos", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=deadline_s,
    )


def run_scenario(scenario: str | Path, folder: Path, *options: str | Path) -> Called:
    """Run a scenario into `folder`/run; a text with a newline is written to a file first."""
    if isinstance(scenario, str) and "\n" in scenario:
        file = folder / "scenario-under-test.yaml"
        file.write_text(scenario)
        scenario = file
    done = tritonchaos("run", scenario, "--out", folder / "run", *options, cwd=folder)
    return Called(done.returncode, done.stdout, done.stderr, folder / "run")
