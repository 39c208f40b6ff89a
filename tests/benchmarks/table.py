"""Writes docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One line of the table; `is_met` is None where there is no target."""

    what: str
    found: str
    target: str = ""
    is_met: bool | None = None


def machine() -> str:
    """Cores, processor and kernel; nothing that names a host."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    kernel = ".".join(platform.release().split("-")[0].split(".")[:2])
    return f"{os.cpu_count()} cores ({model}), Linux {kernel}, Python {platform.python_version()}"


def section(title: str, rows: Sequence[Row], versions: str, load: float) -> str:
    """One part of the page: when and with what it was measured, and its table.

    Args:
        load: Load average of the last 15 minutes, at the end.
    """
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    met = {True: "yes", False: "**no**", None: ""}
    lines = [f"## {title}", "", f"{date}; {machine()}; {versions}; load average {load:.1f}.", ""]
    lines += ["| what | found | target | met |", "| --- | --- | --- | --- |"]
    lines += [f"| {row.what} | {row.found} | {row.target} | {met[row.is_met]} |" for row in rows]
    return "\n".join(lines) + "\n"


def page(titles: Sequence[str], measured: Mapping[str, str], before: str, remarks: Sequence[str]) -> str:
    """The whole page; a part that was not measured now stays as the page before has it.

    Args:
        titles: Of all parts, in their order.
        measured: Title -> section.
        before: The page as it is.
    """
    kept = {text.partition("\n")[0]: f"## {text.strip()}\n" for text in before.split("\n## ")[1:]}
    parts = [{**kept, **measured}[title] for title in titles if title in kept or title in measured]
    how = f"## {_HOW}\n\n" + "".join(f"- {remark}\n" for remark in remarks)
    return "\n".join([_HEAD, *parts, how])


_HOW = "How it is measured"
_HEAD = """\
# Benchmarks

Written by `make bench` (`python -m tests.benchmarks`); do not edit. `--only PART` measures one part
and leaves the others as they are.
"""
