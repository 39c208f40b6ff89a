"""Text for a terminal out of rich's parts, the same whatever terminal this process itself has."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.console import Console, RenderableType


def rendered(parts: Iterable[RenderableType], width: int, color: bool) -> str:
    """Print parts one below the other; no line ends with spaces.

    Args:
        width: Columns of the terminal.
        color: Write ANSI colours.
    """
    console = Console(
        file=StringIO(),
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())
