"""Writes report.md: the verdict, what shows it, and the post-unload readings cycle by cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from tritonchaos.plugins import REPORTERS
from tritonchaos.reporters.markdown_text import code, fenced, plain, table
from tritonchaos.summary import (
    FinishedRun,
    TableBlock,
    TableRow,
    finding_facts,
    is_memory,
    variant_sentences,
    without_folders,
)
from tritonchaos.units import MIB
from tritonchaos.verdict import Assessment

_REPLY_CHARACTERS: Final = 120
_EVIDENCE_LINES: Final = 40


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class Markdown:
    """report.md: verdict, findings with evidence, post-unload readings per phase and cycle, for people."""

    name: ClassVar[str] = "markdown"

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        path = out / "report.md"
        path.write_text(text(run), encoding="utf-8", errors="replace")
        return [path]


def text(run: FinishedRun) -> str:
    """Print the report."""
    sections = (_verdict, _findings, _assessments, _post_unload, _counts, _readings, _facts, _notes, _reproduce)
    return "\n\n".join(part for section in sections for part in section(run)) + "\n"


def _verdict(run: FinishedRun) -> Iterator[str]:
    yield f"# {plain(run.headline)}"
    results = run.results
    yield (
        f"Scenario {code(results['scenario'])}, run {code(results['run_id'])}, seed {results['seed']}, "
        f"exit code {run.exit_code}."
    )
    yield "\n".join(f"- {plain(sentence)}" for sentence in variant_sentences(run.results["variants"]))


def _findings(run: FinishedRun) -> Iterator[str]:
    if not run.verdict.findings:
        return
    yield "## Findings"
    for number, finding in enumerate(run.verdict.findings, 1):
        yield f"### {number}. {finding.kind}: {plain(without_folders(finding.title))}"
        yield "\n".join(f"- {line}" for line in finding_facts(finding, code, plain, folder="."))
        if finding.evidence:
            yield fenced([without_folders(line) for line in _shortened(finding.evidence)])
        if finding.details:
            yield f"<details><summary>{plain(without_folders(finding.details[0]))}</summary>"
            yield fenced([without_folders(line) for line in _shortened(finding.details[1:])])
            yield "</details>"


def _shortened(lines: Sequence[str]) -> list[str]:
    left_out = len(lines) - _EVIDENCE_LINES
    return [*lines[:_EVIDENCE_LINES], f"... and {left_out} more lines"] if left_out > 0 else list(lines)


def _assessments(run: FinishedRun) -> Iterator[str]:
    yield "## Checks"
    rows = [_assessment_row(assessment) for assessment in run.verdict.assessments]
    yield table(("check", "metric", "status", "verdict", "cycles", "why"), rows)
    told = [a for a in run.verdict.assessments if a.counts and a.plain_words]
    if told:
        yield "### In plain words"
        yield "\n".join(f"- {code(a.metric or a.checker)}: {plain(a.plain_words)}" for a in told)


def _assessment_row(assessment: Assessment) -> tuple[str, ...]:
    return (
        code(assessment.checker),
        code(assessment.metric) if assessment.metric else "",
        assessment.status.value + ("" if assessment.counts else " (does not count)"),
        plain(assessment.verdict),
        "" if assessment.cycles_used is None else str(assessment.cycles_used),
        plain(without_folders(assessment.reason)),
    )


def _post_unload(run: FinishedRun) -> Iterator[str]:
    if not run.rows:
        return
    yield "## Post-unload readings"
    yield (
        f"Each reading is the median of the last {run.history.facts.sample_count} samples of a cycle, when its models "
        "are gone. The baseline is the reading with the server ready and no model loaded."
    )
    for metric in run.metrics:
        unit = "MiB" if is_memory(metric) else "count"
        yield f"### {code(metric)}"
        header = ("phase", "arm", "cycle", "load", "unload", f"used ({unit})", f"delta to baseline ({unit})", "")
        yield table(header, [row for block in run.blocks for row in _block_rows(block, metric)])
    if any(block.left_out for block in run.blocks):
        yield "All measured cycles are in `results.json`."


def _block_rows(block: TableBlock, metric: str) -> Iterator[tuple[str, ...]]:
    yield from (_row(row, metric) for row in block.first)
    if block.left_out is not None:
        left_out = block.left_out
        least, most = (_number(metric, bound.get(metric)) for bound in (left_out.least, left_out.most))
        yield (code(block.phase), block.arm.value, f"… {left_out.rows} more", "", "", f"{least} to {most}", "", "")
    yield from (_row(row, metric) for row in block.last)


def _row(row: TableRow, metric: str) -> tuple[str, ...]:
    return (
        code(row.phase),
        row.arm.value,
        str(row.cycle),
        _reply(row.load_reply),
        _reply(row.unload_reply),
        _number(metric, row.used.get(metric)),
        _number(metric, row.delta.get(metric), signed=True),
        ", ".join(_remarks(row, metric)),
    )


def _remarks(row: TableRow, metric: str) -> Iterator[str]:
    if row.is_warm_up:
        yield "warm-up"
    if row.mismatch is not None:
        yield "excluded"
    if metric in row.unsettled:
        yield "unsettled"


def _reply(reply: str) -> str:
    reply = without_folders(reply)
    return code(reply if len(reply) <= _REPLY_CHARACTERS else f"{reply[:_REPLY_CHARACTERS]}…") if reply else ""


def _number(metric: str, number: int | None, *, signed: bool = False) -> str:
    if number is None:
        return "not read"
    sign = "+" if signed else ""
    return f"{number / MIB:{sign}.3f}" if is_memory(metric) else f"{number:{sign}d}"


def _counts(run: FinishedRun) -> Iterator[str]:
    if not run.counts:
        return
    yield "## Cycles that did what they should"
    rows = [
        (
            code(count.phase),
            count.arm.value,
            str(count.warm_up),
            str(count.cycles),
            str(count.matched),
            plain(without_folders(count.first_mismatch or "")),
        )
        for count in run.counts
    ]
    yield table(("phase", "arm", "warm-up", "cycles", "as expected", "first that was not"), rows)


def _readings(run: FinishedRun) -> Iterator[str]:
    names: dict[str, dict[str, int]] = {}
    for reading in run.results["readings"]:
        names.setdefault(reading["name"], {}).setdefault(reading["metric"], reading["bytes"])
    metrics = sorted({metric for values in names.values() for metric in values})
    if not metrics:
        return
    yield "## Named readings"
    yield "Memory in MiB, everything else as a count; of several readings of one name the first."
    rows = [(code(metric), *(_named(metric, values) for values in names.values())) for metric in metrics]
    yield table(("metric", *(plain(name) for name in names)), rows)


def _named(metric: str, values: Mapping[str, int]) -> str:
    return _number(metric, values[metric]) if metric in values else ""


def _facts(run: FinishedRun) -> Iterator[str]:
    yield "## Server and machine"
    facts = {
        **run.results["target"],
        "server starts": run.results["server_starts"],
        "run started": run.history.facts.started_utc,
        "tritonchaos": run.results["tritonchaos_version"],
    }
    yield table(("fact", "value"), [(plain(name), code(str(value))) for name, value in facts.items()])


def _notes(run: FinishedRun) -> Iterator[str]:
    if run.results["notes"]:
        yield "## Notes"
        yield "\n".join(f"- {plain(note)}" for note in run.results["notes"])


def _reproduce(run: FinishedRun) -> Iterator[str]:
    yield "## How to reproduce"
    yield "In this folder, which holds the scenario as it was run:"
    yield fenced([f"tritonchaos run scenario.yaml --seed {run.results['seed']}"])
