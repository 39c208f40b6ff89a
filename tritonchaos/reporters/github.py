"""Writes a summary in Markdown for a step of a GitHub workflow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from tritonchaos.plugins import REPORTERS
from tritonchaos.reporters.markdown_text import code, fenced, plain, table
from tritonchaos.summary import (
    Case,
    FinishedEntry,
    FinishedRun,
    FinishedSet,
    Outcome,
    set_of_one,
    variant_sentences,
    without_folders,
)
from tritonchaos.units import MIB

# GitHub drops a summary that is larger (docs.github.com, "Workflow commands": 1 MiB for each step).
_MOST_BYTES: Final = 1 * MIB - 4096
_SHOWN_LINES: Final = 30
_LINE_CHARACTERS: Final = 300
_MARKS: Final = {Outcome.PASSED: "✅", Outcome.FAILED: "❌", Outcome.ERROR: "⚠️", Outcome.SKIPPED: "⏭️"}
_LEFT_OUT: Final = "\n\nThe rest is left out, as the summary of a step has an end; it is in the reports of the runs.\n"


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class GitHub:
    """step-summary.md, appended to $GITHUB_STEP_SUMMARY where that is set; of a set one for all runs."""

    name: ClassVar[str] = "github"
    by_default: ClassVar[bool] = False
    once_per_set: ClassVar[bool] = True

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        return self.render_set(set_of_one(run), out)

    def render_set(self, done: FinishedSet, out: Path) -> list[Path]:
        path = out / "step-summary.md"
        path.write_text(text(done), encoding="utf-8", errors="replace")
        where = os.environ.get("GITHUB_STEP_SUMMARY")
        if where:
            _append(Path(where), done)
        return [path]


def _append(summary: Path, done: FinishedSet) -> None:
    there = summary.stat().st_size if summary.exists() else 0
    with summary.open("a", encoding="utf-8", errors="replace") as file:
        file.write(text(done, _MOST_BYTES - there))


def text(done: FinishedSet, most_bytes: int = _MOST_BYTES) -> str:
    """Print the summary: a table of runs, then each run's checks and findings, as far as there is room.

    Args:
        most_bytes: Length of the result in UTF-8 at most.
    """
    parts = [*_overview(done), *(part for entry in done.entries for part in _entry(entry))]
    kept: list[str] = []
    left = most_bytes - len(_LEFT_OUT.encode())
    if left < 0:
        return ""
    for part in parts:
        left -= len(part.encode("utf-8", "replace")) + 2
        if left < 0:
            return "\n\n".join(kept) + _LEFT_OUT
        kept.append(part)
    return "\n\n".join(kept) + "\n"


def _overview(done: FinishedSet) -> Iterator[str]:
    if len(done.entries) == 1:
        return
    yield f"## {_mark(done.exit_code)} tritonchaos: {len(done.entries)} runs, exit code {done.exit_code}"
    yield table(("", "scenario", "exit", "verdict"), [_row(entry) for entry in done.entries])


def _row(entry: FinishedEntry) -> tuple[str, ...]:
    code_shown = "-" if entry.exit_code is None else str(entry.exit_code)
    return (_mark(entry.exit_code), plain(entry.title), code_shown, plain(_headline(entry)))


def _headline(entry: FinishedEntry) -> str:
    return entry.run.headline if entry.run is not None else entry.cases()[0].message


def _mark(exit_code: int | None) -> str:
    outcome = {0: Outcome.PASSED, 1: Outcome.FAILED, None: Outcome.SKIPPED}.get(exit_code, Outcome.ERROR)
    return _MARKS[outcome]


def _entry(entry: FinishedEntry) -> Iterator[str]:
    yield f"## {_mark(entry.exit_code)} {plain(entry.title)}: {plain(_headline(entry))}"
    if entry.run is not None:
        yield _about(entry.run)
    cases = entry.cases()
    yield table(("", "check", "why"), [(_MARKS[c.outcome], code(c.name), plain(_short(c.message))) for c in cases])
    yield from (_details(case) for case in cases if case.lines and case.outcome is not Outcome.PASSED)


def _about(run: FinishedRun) -> str:
    results = run.results
    target = results["target"]
    server = " ".join(str(target[key]) for key in ("target", "triton_version") if key in target)
    lines = [
        f"run {code(results['run_id'])}, seed {results['seed']}, exit code {run.exit_code}, Triton on {code(server)}",
        *(plain(sentence) for sentence in variant_sentences(results["variants"])),
    ]
    return "\n".join(f"- {line}" for line in lines)


def _details(case: Case) -> str:
    lines = [_short(without_folders(line)) for line in case.lines]
    left_out = len(lines) - _SHOWN_LINES
    shown = [*lines[:_SHOWN_LINES], f"... and {left_out} more lines"] if left_out > 0 else lines
    return f"<details><summary>{plain(_short(case.message))}</summary>\n\n{fenced(shown)}\n\n</details>"


def _short(text: str) -> str:
    return text if len(text) <= _LINE_CHARACTERS else f"{text[:_LINE_CHARACTERS]}…"
