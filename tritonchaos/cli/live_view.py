"""Draws the state of a run: a few lines that renew themselves on a terminal, one line elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tritonchaos.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

    from tritonchaos.cli.run_state import RunState

_BARS: Final = "▁▂▃▄▅▆▇█"
_MOST_CURVES: Final = 3
_MOST_SIGHTINGS: Final = 3
_NAME_COLUMNS: Final = 26
# The columns of a curve's line that are not the curve: its metric's name, last value and change.
_BESIDE_CURVE: Final = _NAME_COLUMNS + 34
_QUIET_S: Final = 5.0


def sparkline(values: Sequence[int], columns: int) -> str:
    """Draw values as bars between their smallest and largest, the largest of those that share a column."""
    low, high = min(values, default=0), max(values, default=0)
    span = max(high - low, 1)
    shares = min(columns, len(values))
    tops = [max(values[i * len(values) // shares : (i + 1) * len(values) // shares]) for i in range(shares)]
    return "".join(_BARS[(top - low) * (len(_BARS) - 1) // span] for top in tops)


def draw(state: RunState, now_s: float, columns: int, max_time_s: float | None = None) -> Group:
    """Draw the live view; no line is longer than the terminal is wide."""
    from rich.console import Group

    return Group(*_lines(state, now_s, columns, max_time_s))


def _lines(state: RunState, now_s: float, columns: int, max_time_s: float | None) -> Iterator[Text]:
    elapsed = format_seconds(now_s - state.began_s)
    clock = elapsed if max_time_s is None else f"{elapsed} of at most {format_seconds(max_time_s)}"
    yield _line(f"{state.scenario}  seed {state.seed}  {state.target}  {clock}", "bold")
    yield _line("  ".join(_place(state, now_s)))
    for verdict in state.verdicts():
        metric, _, said = verdict.partition(": ")
        style = "red" if said.startswith("LEAK") else "green" if said.startswith("STABLE") else ""
        yield _line(f"so far {said}" + ("" if len(state.verdicts()) == 1 else f" [{metric}]"), style)
    for metric, values in list(state.curves.items())[:_MOST_CURVES]:
        yield _line(_curve(metric, list(values), columns), "cyan")
    for seen in state.last_sightings(_MOST_SIGHTINGS):
        yield _line(f"seen {seen}", "yellow")


def _line(text: str, style: str = "") -> Text:
    from rich.text import Text

    from tritonchaos.summary import printable

    return Text(" ".join(printable(text).splitlines()), style=style, no_wrap=True, overflow="ellipsis")


def _place(state: RunState, now_s: float) -> Iterator[str]:
    if not state.phase:
        yield f"before the first cycle of {state.phase_count} phases"
    else:
        yield f"phase {state.phase_number}/{state.phase_count}"
        yield f"{state.phase} ({state.arm})"
        yield f"cycle {state.cycles_done}/{state.at_most}" if state.at_most else f"cycle {state.cycles_done}"
        left_s = state.left_s(now_s)
        if left_s:
            yield f"at most {format_seconds(left_s)} left"
    if now_s - state.last_event_s >= _QUIET_S:
        yield f"in one step for {format_seconds(now_s - state.last_event_s)}"


def _curve(metric: str, values: Sequence[int], columns: int) -> str:
    wide = max(8, columns - _BESIDE_CURVE)
    drawn = sparkline(values[-4 * wide :], wide)
    change = values[-1] - values[0]
    name = f"{metric:<{_NAME_COLUMNS}.{_NAME_COLUMNS}}"
    changed = f"({'+' if change > 0 else ''}{_amount(metric, change)})"
    return f"{name} {drawn:<{wide}} {_amount(metric, values[-1])} {changed}"


def _amount(metric: str, value: int) -> str:
    return format_bytes(value) if metric.partition("@")[0].endswith("_bytes") else str(value)


def heartbeat(state: RunState, now_s: float) -> str:
    """Say where the run is in one line, for a log."""
    parts = [f"[{format_seconds(now_s - state.began_s)}]", *_place(state, now_s)]
    curve = next(iter(state.curves.items()), None)
    if curve is not None:
        metric, values = curve
        parts.append(f"{metric} {_amount(metric, values[-1])}")
    parts += [f"so far {verdict.partition(': ')[2]}" for verdict in state.verdicts()[:1]]
    parts += [f"seen {seen}" for seen in state.last_sightings(1)]
    return ", ".join(parts)
