"""`tritonchaos judge --series`: one line of JSON per series, or a table with a small plot of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tritonchaos.cli.output import columns, wants_color, write
from tritonchaos.errors import ExitCode, UsageError
from tritonchaos.growth import Growth
from tritonchaos.post_unload import Channel
from tritonchaos.series import BUDGET, Expected, SeriesVerdict, judge_series, read_series
from tritonchaos.units import format_bytes, parse_bytes

if TYPE_CHECKING:
    from rich.text import Text

_COLORS = {Growth.LEAK: "red", Growth.STABLE: "green", Growth.INCONCLUSIVE: "yellow"}
_PLOT_COLUMNS = 40


def judge_file(
    file: str, column: str | None, channel: str | None, quantum: str | None, budget: int | None, *, as_json: bool
) -> ExitCode:
    """Judge all series of a file, or of standard input ("-"); print what was found as it is found.

    Returns:
        1 if one is LEAK, else 3 if one is INCONCLUSIVE, else 0.

    Raises:
        UsageError: The file cannot be read or holds no series, or an option is wrong.
    """
    expected = Expected(column, _channel(channel), _quantum(quantum))
    verdicts: list[Growth] = []
    with _lines(file) as (stream, name):
        for series in read_series(stream, name, expected):
            judged = judge_series(series, BUDGET if budget is None else budget)
            verdicts.append(judged.verdict)
            write(json.dumps(judged.document()) + "\n" if as_json else _shown(judged, series.channel))
    if not as_json and len(verdicts) > 1:
        write(_total(verdicts))
    if Growth.LEAK in verdicts:
        return ExitCode.FINDINGS
    return ExitCode.INCONCLUSIVE if Growth.INCONCLUSIVE in verdicts else ExitCode.PASS


def _channel(name: str | None) -> Channel | None:
    try:
        return None if name is None else Channel(name)
    except ValueError:
        raise UsageError(f"--channel: found {name!r}, expected device, host or count") from None


def _quantum(text: str | None) -> int | None:
    try:
        quantum = None if text is None else parse_bytes(text)
    except ValueError as error:
        raise UsageError(f"--quantum: {error}") from None
    if quantum == 0:
        raise UsageError("--quantum: found 0, expected at least 1 byte")
    return quantum


@contextmanager
def _lines(file: str) -> Iterator[tuple[TextIO, str]]:
    if file == "-":
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        yield sys.stdin, "standard input"
        return
    path = Path(file)
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as stream:
            yield stream, path.name
    except OSError as error:
        raise UsageError(f"cannot read the series {file}: {error.strerror}") from error


def _shown(judged: SeriesVerdict, channel: Channel) -> str:
    """Print a series for people: verdict, cycles and rate in one line, the curve and the reason below."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(width=max(40, columns()), color_system="standard" if wants_color() else None, highlight=False)
    with console.capture() as capture:
        console.print(_head(judged, channel))
        if judged.curve:
            console.print(_plot(judged.curve, channel), style="dim")
        console.print(Padding(Text(judged.reason), (0, 0, 0, 2)))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def _head(judged: SeriesVerdict, channel: Channel) -> Text:
    from rich.text import Text

    state = judged.state
    head = Text(f"{judged.id}  ", style="bold")
    head.append(judged.verdict.value, style=f"bold {_COLORS[judged.verdict]}")
    head.append(f"  {judged.cycles} {'cycle' if judged.cycles == 1 else 'cycles'}")
    if judged.verdict is Growth.LEAK and state.bytes_per_cycle is not None:
        head.append(f"  {_amount(state.bytes_per_cycle, channel)} per cycle")
    return head.append(f"  ({state.rule}, {state.shape})" if state.rule else "")


def _plot(curve: Sequence[int], channel: Channel) -> str:
    from tritonchaos.reporters.terminal import sparkline

    line = sparkline(curve, min(curve), max(curve), _PLOT_COLUMNS)
    return f"  {line}  {_amount(curve[0], channel)} to {_amount(curve[-1], channel)}"


def _amount(number: float, channel: Channel) -> str:
    return f"{number:.3g}" if channel is Channel.COUNT else format_bytes(number)


def _total(verdicts: Sequence[Growth]) -> str:
    counts = [f"{verdicts.count(verdict)} {verdict.value}" for verdict in Growth if verdict in verdicts]
    return f"{len(verdicts)} series: {', '.join(counts)}\n"
