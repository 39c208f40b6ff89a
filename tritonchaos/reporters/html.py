"""Writes report.html."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tritonchaos.html_page import render_page
from tritonchaos.plugins import REPORTERS
from tritonchaos.summary import FinishedRun


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class HtmlReport:
    """report.html: verdict, findings, curves, time line and log in one file that opens with no network."""

    name: ClassVar[str] = "html"

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        path = out / "report.html"
        path.write_text(render_page(run), encoding="utf-8")
        return [path]
