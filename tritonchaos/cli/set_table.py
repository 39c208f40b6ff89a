"""The one table at the end of a set: what became of each scenario, and what each cell of `vary` changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from tritonchaos.running_sets import Entry, SetRun
    from tritonchaos.verdict import Assessment

_STYLES: Final = {0: "green", 1: "red", 3: "yellow"}
_WORDS: Final = {
    0: "pass",
    1: "findings",
    2: "usage",
    3: "inconclusive",
    4: "no target",
    70: "own fault",
    130: "interrupted",
}


def set_table(done: SetRun, width: int, color: bool) -> str:
    """Print the table.

    Args:
        width: Columns of the terminal.
        color: Write ANSI colours.
    """
    from tritonchaos.reporters.terminal_text import rendered

    return rendered(_parts(done), width, color)


def _parts(done: SetRun) -> Iterator[RenderableType]:
    from rich.text import Text

    yield _scenarios(done.entries)
    for name in dict.fromkeys(entry.planned.name for entry in done.entries if entry.planned.cell):
        yield Text("")
        yield _cells([entry for entry in done.entries if entry.planned.name == name and entry.planned.cell])
    yield Text("")
    yield Text(f"{_counted(done)}; exit code {done.exit_code}", style="bold")


def _counted(done: SetRun) -> str:
    words = [_word(entry) for entry in done.entries]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    return f"{len(words)} runs: {counts}"


def _word(entry: Entry) -> str:
    return "not run" if entry.exit_code is None else _WORDS.get(entry.exit_code, str(entry.exit_code))


def _scenarios(entries: Sequence[Entry]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("scenario", overflow="fold")
    table.add_column("exit", justify="right")
    table.add_column("verdict", overflow="fold", ratio=1)
    cells: dict[str, int] = {}
    for entry in entries:
        style = _STYLES.get(-1 if entry.exit_code is None else entry.exit_code, "magenta")
        code = "-" if entry.exit_code is None else str(entry.exit_code)
        name = Text(entry.planned.name)
        if entry.planned.cell:
            cells[entry.planned.name] = cells.get(entry.planned.name, 0) + 1
            name.append(f" [{cells[entry.planned.name]}]", style="dim")
        table.add_row(name, Text(code, style=style), _said(entry))
    return table


def _said(entry: Entry) -> RenderableType:
    from rich.text import Text

    from tritonchaos.summary import printable, without_folders

    told = entry.run.finished.headline if entry.run is not None else entry.error.splitlines()[0]
    return Text(printable(without_folders(told)))


def _cells(entries: Sequence[Entry]) -> RenderableType:
    """One row per check and metric, one column per cell; the first is the control."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    legend = [
        Text(f"[{number}] {entry.planned.cell}{' (control)' if number == 1 else ''}")
        for number, entry in enumerate(entries, 1)
    ]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("check", overflow="fold")
    for number in range(1, len(entries) + 1):
        table.add_column(f"[{number}]", overflow="fold")
    columns = [_assessments(entry) for entry in entries]
    for key in dict.fromkeys(key for column in columns for key in column):
        shown = [_shown(column.get(key)) for column in columns]
        table.add_row(Text("\n".join(part for part in key if part)), *shown)
    head = Text(f"cells of {entries[0].planned.name}", style="bold")
    return Group(head, *legend, table)


def _assessments(entry: Entry) -> dict[tuple[str, str], Assessment]:
    if entry.run is None:
        return {}
    judged = entry.run.finished.verdict.assessments
    return {(assessment.checker, assessment.metric or ""): assessment for assessment in judged if assessment.counts}


def _shown(assessment: Assessment | None) -> RenderableType:
    from rich.text import Text

    from tritonchaos.units import format_bytes

    if assessment is None:
        return Text("-", style="dim")
    style = {"pass": "green", "fail": "red"}.get(assessment.status.value, "yellow")
    text = Text(assessment.verdict or assessment.status.value, style=style)
    grows = next((f.bytes_per_cycle for f in assessment.findings if f.bytes_per_cycle is not None), None)
    is_bytes = (assessment.metric or "").partition("@")[0].endswith("_bytes")
    if grows is not None:
        text.append(f"\n{format_bytes(grows) if is_bytes else format(grows, '.3g')} per cycle")
    elif assessment.excluded_bytes_per_cycle is not None and is_bytes:
        text.append(f"\nless than {format_bytes(assessment.excluded_bytes_per_cycle)} per cycle")
    return text
