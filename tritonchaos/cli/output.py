"""What commands print: data on standard output, progress on standard error."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonchaos.summary import FinishedRun


def wants_color() -> bool:
    """Whether standard output is a terminal and NO_COLOR is not set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def print_finished(finished: FinishedRun, *, as_json: bool) -> None:
    """Print the results document, or the summary for people."""
    from tritonchaos.reporters.results_json import dump
    from tritonchaos.reporters.terminal import Terminal

    if as_json:
        sys.stdout.write(dump(finished.results))
    else:
        width = shutil.get_terminal_size((100, 40)).columns
        sys.stdout.write(Terminal().text(finished, width, wants_color()))
    sys.stdout.flush()
