"""A comparison on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from tritonchaos.comparing import Comparison, Row

_STYLES: Final = {
    "new": "red",
    "worse": "red",
    "cannot tell": "yellow",
    "better": "green",
    "fixed": "green",
    "same": "default",
}


def compare_table(comparison: Comparison, width: int, color: bool, *, all_rows: bool = False) -> str:
    """Print the table.

    Args:
        width: Columns of the terminal.
        color: Write ANSI colours.
        all_rows: Also those times and peaks that are the same, which are counted otherwise.
    """
    from tritonchaos.reporters.terminal_text import rendered

    return rendered(_parts(comparison, all_rows), width, color)


def _parts(comparison: Comparison, all_rows: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    style = {1: "red", 3: "yellow"}.get(int(comparison.exit_code), "green")
    yield _shown(comparison.headline, f"bold {style}")
    yield Text("")
    rows = [row for row in comparison.rows if all_rows or not _is_plain(row)]
    yield _table(rows)
    if len(rows) < len(comparison.rows):
        yield Text(f"{len(comparison.rows) - len(rows)} checks, times and peaks are the same (--all shows them)", "dim")
    for note in comparison.notes:
        yield _shown(f"- {note}", "dim")
    for title, diff in comparison.differences.items():
        yield _shown(f"\n{title}:\n{diff.rstrip()}", "")


def _is_plain(row: Row) -> bool:
    return row.outcome.value == "same" and row.kind.value in ("check", "time", "memory")


def _table(rows: Sequence[Row]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from tritonchaos.comparing.html import difference_text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in ("outcome", "about", "base", "candidate", "difference"):
        table.add_column(name, overflow="fold")
    scenarios = len({row.scenario for row in rows}) > 1
    for row in rows:
        outcome = row.outcome.value if row.decides else f"{row.outcome.value} (does not decide)"
        about = _shown(f"{row.scenario}: {row.about}" if scenarios else row.about, "")
        if row.why:
            about.append_text(_shown(f"\n{row.why}", "dim"))
        texts = (row.base, row.candidate, difference_text(row))
        table.add_row(Text(outcome, style=_STYLES[row.outcome.value]), about, *(_shown(text, "") for text in texts))
    return table


def _shown(text: str, style: str) -> Text:
    from rich.text import Text

    from tritonchaos.summary import printable, without_folders

    return Text(printable(without_folders(text)), style=style)
