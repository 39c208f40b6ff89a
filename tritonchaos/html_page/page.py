"""Puts the page together: markup for readers with no script, data and script for the rest, and what may run at all."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from tritonchaos.html_page import sections
from tritonchaos.html_page.charts import charts_data, samples_data
from tritonchaos.html_page.log_lines import LogLines
from tritonchaos.html_page.markup import Html, json_island, shown, tag, void
from tritonchaos.html_page.step_data import Texts, cycles_data, dearest_first, lanes_data, outside_data
from tritonchaos.html_page.time_line import TimeLine, read_time_line
from tritonchaos.summary import FinishedRun

_FOLDER: Final = Path(__file__).parent
_STYLES: Final = ("vendor/uPlot.min.css", "page.css")
_SCRIPTS: Final = ("vendor/uPlot.iife.min.js", "charts.js", "page.js")


def render_page(run: FinishedRun) -> str:
    """Print report.html; it needs no other file and no network."""
    line = read_time_line(run)
    data = _data(run, line)
    style = "\n".join(_asset(name) for name in _STYLES)
    script = "\n".join(_asset(name) for name in _SCRIPTS)
    head = (
        Html('<meta charset="utf-8">'),
        void("meta", http_equiv="Content-Security-Policy", content=policy(style, script)),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        void("meta", name="referrer", content="no-referrer"),
        tag("title", f"{run.results['scenario']}: {run.headline}"),
        Html(f"<style>{style}</style>"),
    )
    body = (*sections.body(run, line), json_island("data", data), Html(f"<script>{script}</script>"))
    text = f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', *body), lang='en')}\n"
    # A lone surrogate (an undecodable file name in a log) cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode()


def policy(style: str, script: str) -> str:
    """Allow this style and this script by their digests and nothing else; no address can be reached.

    Source: W3C Content Security Policy Level 3, "hash-source"; data blocks are not scripts and need no permission.
    """
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8").strip()


def _data(run: FinishedRun, line: TimeLine) -> dict[str, Any]:
    texts, log = Texts(), LogLines(run.history.log)
    cycles = cycles_data(line, log, texts)
    positions = [finding.position for finding in run.verdict.findings]
    wanted = [log.between(*cycle.log) for cycle in dearest_first(line, positions) if cycle.log]
    charts = charts_data(run, texts)
    metrics = [curve["metric"] for curve in charts["curves"]]
    data = {
        "charts": charts,
        "samples": samples_data(run.history, run.metrics, metrics),
        "lanes": lanes_data(line, texts),
        "cycles": cycles,
        "started": line.started,
        "outside": outside_data(line, texts),
        "log": {"lines": log.total, "pieces": [list(piece) for piece in log.chosen(wanted)]},
    }
    return {**data, "texts": [shown(text) for text in texts.texts]}
