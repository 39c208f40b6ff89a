"""Prints a finished run on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tritonchaos.observations import Arm
from tritonchaos.plugins import REPORTERS
from tritonchaos.post_unload import cycle_table
from tritonchaos.reporters.terminal_text import rendered
from tritonchaos.summary import FinishedRun, printable, variant_sentences, without_folders
from tritonchaos.units import format_bytes
from tritonchaos.verdict import Assessment, Finding

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BARS: Final = "▁▂▃▄▅▆▇█"
_GAP: Final = " "
_COLORS: Final = {"pass": "green", "fail": "red", "findings": "red", "unknown": "yellow", "inconclusive": "yellow"}
_EVIDENCE_LINES: Final = 4
# The columns of a sparkline's line that are not the sparkline: arm, first and last value.
_BESIDE_SPARKLINE: Final = 42
_LONGEST_SPARKLINE: Final = 60


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class Terminal:
    """A summary on the terminal: verdict, findings, checks and post-unload curves; writes no file."""

    name: ClassVar[str] = "terminal"

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        return []

    def text(self, run: FinishedRun, width: int, color: bool) -> str:
        """Print the summary.

        Args:
            width: Columns of the terminal.
            color: Write ANSI colours.
        """
        return rendered(_parts(run, width), width, color)


def _parts(run: FinishedRun, width: int) -> Iterator[RenderableType]:
    yield _shown(run.headline, f"bold {_COLORS[run.results['verdict']]}")
    yield _shown(_where(run), "dim")
    yield from (_shown(sentence, "dim") for sentence in variant_sentences(run.results["variants"]))
    yield from _findings(run.verdict.findings)
    yield from _section("Checks", _checks(run.verdict.assessments))
    words = [_shown(a.plain_words) for a in run.verdict.assessments if a.counts and a.plain_words]
    if words:
        yield from _section("In plain words", *words)
    for metric in run.metrics:
        curves = list(_curves(run, metric, width))
        if curves:
            yield from _section(f"Post-unload {metric}", *curves)
    told = set(variant_sentences(run.results["variants"]))
    other_notes = [_shown(f"- {note}") for note in run.results["notes"] if note not in told]
    if other_notes:
        yield from _section("Notes", *other_notes)


def _shown(text: str, style: str = "") -> Text:
    return Text(printable(without_folders(text)), style=style)


def _section(title: str, *parts: RenderableType) -> Iterator[RenderableType]:
    yield Text("")
    yield Text(printable(title), style="bold")
    yield from (Padding(part, (0, 0, 0, 2)) for part in parts)


def _where(run: FinishedRun) -> str:
    results = run.results
    target = results["target"].get("target", "unknown target")
    version = results["target"].get("triton_version", "of unknown version")
    return f"{results['scenario']}, seed {results['seed']}, {target} Triton {version}, exit code {run.exit_code}"


def _findings(findings: Sequence[Finding]) -> Iterator[RenderableType]:
    if not findings:
        return
    yield from _section("Findings")
    for finding in findings:
        yield Padding(_finding_title(finding), (0, 0, 0, 2))
        yield from (Padding(_shown(line), (0, 0, 0, 4)) for line in _finding_lines(finding))
        shown, more = finding.evidence[:_EVIDENCE_LINES], len(finding.evidence) - _EVIDENCE_LINES
        yield from (Padding(_shown(f"| {line}", "dim"), (0, 0, 0, 4)) for line in shown)
        if more > 0:
            lines = "line" if more == 1 else "lines"
            yield Padding(Text(f"| ... {more} more {lines} in report.md", style="dim"), (0, 0, 0, 4))


def _finding_title(finding: Finding) -> Text:
    title = Text(f"{finding.kind}: ", style="bold red" if finding.counts else "bold")
    return title.append_text(_shown(finding.title))


def _finding_lines(finding: Finding) -> Iterator[str]:
    if finding.bytes_per_cycle is not None:
        yield _growth(finding)
    if finding.position is not None:
        times = f", {finding.occurrences} times" if finding.occurrences > 1 else ""
        yield f"first at {finding.position}{f' ({finding.step})' if finding.step else ''}{times}"
    if finding.known:
        yield f"already known: {finding.known}"
    if finding.undocumented:
        yield "led to by a step outside Triton's documented rules"
    if not finding.counts:
        yield "does not count for the exit code"


def _growth(finding: Finding) -> str:
    line = f"{_amount(finding.metric, finding.bytes_per_cycle or 0)} per {finding.per}"
    if finding.interval_bytes_per_cycle is not None:
        low, high = (_amount(finding.metric, bound) for bound in finding.interval_bytes_per_cycle)
        line += f", 95 % interval {low} to {high}"
    if finding.footprints is not None:
        line += f", {finding.footprints:.2g} of a loaded model"
    return f"{line}, {finding.metric}" if finding.metric else line


def _amount(metric: str | None, number: float) -> str:
    is_count = metric is not None and not metric.partition("@")[0].endswith("_bytes")
    return f"{number:.3g}" if is_count else format_bytes(number)


def _checks(assessments: Sequence[Assessment]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    table.add_column("status", no_wrap=True)
    table.add_column("check", overflow="fold", max_width=26)
    table.add_column("why", overflow="fold", ratio=1)
    for assessment, metrics in _alike(assessments):
        status = Text(assessment.status.value, style=_COLORS[assessment.status.value] if assessment.counts else "dim")
        name = Text(assessment.checker)
        name.append("".join(f"\n{printable(metric)}" for metric in metrics), style="dim")
        table.add_row(status, name, _shown(_why(assessment)))
    return table


def _alike(assessments: Sequence[Assessment]) -> list[tuple[Assessment, list[str]]]:
    """Put together what a checker says of several metrics in the same words."""
    groups: dict[tuple[str, ...], tuple[Assessment, list[str]]] = {}
    for assessment in assessments:
        key = (assessment.checker, assessment.status.value, str(assessment.counts), _why(assessment))
        _, metrics = groups.setdefault(key, (assessment, []))
        if assessment.metric:
            metrics.append(assessment.metric)
    return list(groups.values())


def _why(assessment: Assessment) -> str:
    head = [assessment.verdict] if assessment.verdict else []
    if assessment.cycles_used is not None:
        head.append(f"{assessment.cycles_used} cycles")
    if not assessment.counts:
        head.append("does not count")
    return f"{', '.join(head)}: {assessment.reason}" if head else assessment.reason


def _curves(run: FinishedRun, metric: str, width: int) -> Iterator[Text]:
    """Draw the readings of each arm; a cycle without one is a gap."""
    import numpy

    table = cycle_table(run.history)
    column = table.values(metric)
    values = numpy.asarray(column.values)
    has = numpy.ones(len(values), bool) if column.has is None else numpy.frombuffer(column.has, bool)
    if not has.any():
        return
    lowest, highest = int(values[has].min()), int(values[has].max())
    columns = max(8, min(_LONGEST_SPARKLINE, width - _BESIDE_SPARKLINE))
    for arm in Arm:
        of_arm = numpy.array([kind.arm is arm for kind in table.kind_list])[numpy.asarray(table.kinds)]
        read = values[of_arm & has]
        if len(read):
            line = sparkline(_shares(values[of_arm], has[of_arm], columns), lowest, highest, columns)
            yield Text(f"{arm.value:<10}{line}  {_amount(metric, int(read[0]))} to {_amount(metric, int(read[-1]))}")


def _shares(values: NDArray[Any], has: NDArray[Any], columns: int) -> list[int | None]:
    """Return the largest of the readings that share a column; None where nothing was read."""
    shares = min(columns, len(values))
    parts = (slice(at * len(values) // shares, (at + 1) * len(values) // shares) for at in range(shares))
    return [int(values[part][has[part]].max()) if has[part].any() else None for part in parts]


def sparkline(values: Sequence[int | None], lowest: int, highest: int, columns: int) -> str:
    """Draw values from left to right, the largest of those that share a column; a gap where nothing was read."""
    shares = min(columns, len(values))
    bars = []
    for column in range(shares):
        part = values[column * len(values) // shares : (column + 1) * len(values) // shares]
        read = [value for value in part if value is not None]
        bars.append(_bar(max(read), lowest, highest) if read else _GAP)
    return "".join(bars)


def _bar(value: int, lowest: int, highest: int) -> str:
    if highest == lowest:
        return _BARS[0]
    return _BARS[min(len(_BARS) - 1, (value - lowest) * len(_BARS) // (highest - lowest))]
