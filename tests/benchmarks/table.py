"""Writes docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
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


def markdown(rows: Sequence[Row], versions: str, remarks: Sequence[str]) -> str:
    """The whole page."""
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` (`python -m tests.benchmarks`); do not edit.",
        "",
        f"- date: {date}",
        f"- machine: {machine()}",
        f"- versions: {versions}",
        "",
        "| what | found | target | met |",
        "| --- | --- | --- | --- |",
    ]
    met = {True: "yes", False: "**no**", None: ""}
    lines += [f"| {row.what} | {row.found} | {row.target} | {met[row.is_met]} |" for row in rows]
    lines += ["", "## How it is measured", "", *(f"- {remark}" for remark in remarks)]
    return "\n".join(lines) + "\n"
