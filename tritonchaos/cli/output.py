"""What commands print: data on standard output, progress on standard error."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonchaos.running_sets import SetRun
    from tritonchaos.summary import FinishedRun


def wants_color() -> bool:
    """Whether standard output is a terminal and NO_COLOR is not set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def print_finished(finished: FinishedRun, *, as_json: bool) -> None:
    """Print the results document, or the summary for people."""
    from tritonchaos.reporters.results_json import dump
    from tritonchaos.reporters.terminal import Terminal

    write(dump(finished.results) if as_json else Terminal().text(finished, columns(), wants_color()))


def print_set(done: SetRun, *, as_json: bool) -> None:
    """Print set.json, or the table for people."""
    from tritonchaos.cli.set_table import set_table

    if as_json:
        write(json.dumps(done.document, indent=2, ensure_ascii=False) + "\n")
    else:
        write(set_table(done, columns(), wants_color()))


def write(text: str) -> None:
    """Write to standard output; what its encoding lacks (a sparkline in a C locale) is replaced."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def columns() -> int:
    """Return how wide the terminal is."""
    return shutil.get_terminal_size((100, 40)).columns
