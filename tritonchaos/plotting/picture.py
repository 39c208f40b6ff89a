"""Draws the post-unload curve of each judged metric: arms, phases, edits in force, estimate and interval, verdict."""

from __future__ import annotations

import importlib.util
from collections import Counter
from enum import Enum
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from tritonchaos.errors import UsageError
from tritonchaos.observations import Arm
from tritonchaos.plotting.panel import draw_panel
from tritonchaos.post_unload import cycle_table
from tritonchaos.summary import FinishedRun, printable, variant_sentences, without_folders
from tritonchaos.summary.curves import judged_curves
from tritonchaos.summary.faults import fault_bands, faults_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH_INCHES: Final = 9.0
_PANEL_INCHES: Final = 3.3
_AROUND_INCHES: Final = 1.5
_DPI: Final = 130
_MOST_PANELS: Final = 8
_LINE: Final = 112
_HEADLINE: Final = 76
_COLORS: Final = {"pass": "#1c7c46", "findings": "#c21f2f", "inconclusive": "#8a6100"}


class Format(str, Enum):
    """File formats of a picture."""

    PNG = "png"
    SVG = "svg"


def require_matplotlib() -> None:
    """Say what to do where matplotlib is missing.

    Raises:
        UsageError: It is.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(
            "pictures are drawn by matplotlib, which is not installed", hint="pip install 'tritonchaos[plots]'"
        )


def draw(run: FinishedRun, file_format: Format) -> bytes:
    """Draw a run; the same run gives the same picture with the same matplotlib.

    Raises:
        UsageError: matplotlib is missing, or no cycle was finished.
    """
    require_matplotlib()
    import matplotlib

    curves = judged_curves(run)[:_MOST_PANELS]
    if not curves:
        raise UsageError(
            "no cycle of this run has a post-unload reading, so there is no curve to draw",
            hint="report.html shows what happened instead",
        )
    # Ids in an SVG come from a random number unless they are given a salt.
    with matplotlib.rc_context({"svg.hashsalt": "tritonchaos", "font.family": "DejaVu Sans", "font.size": 9}):
        figure = _figure(run, len(curves))
        bands = fault_bands(faults_of(run.history))
        axes = figure.subplots(len(curves), 1, squeeze=False)[:, 0]
        for panel, curve in zip(axes, curves, strict=True):
            draw_panel(panel, curve, run, bands)
        axes[-1].set_xlabel("cycle, in the order in which they ran")
        return _saved(figure, file_format, run)


def _figure(run: FinishedRun, panels: int) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    height = _AROUND_INCHES + _PANEL_INCHES * panels
    layout = ConstrainedLayoutEngine(rect=(0.0, 0.3 / height, 0.995, 1 - 1.2 / height))
    figure = Figure(figsize=(_WIDTH_INCHES, height), dpi=_DPI, facecolor="white", layout=layout)
    word = str(run.results["verdict"])

    def write(text: str, inches_from_top: float, **style: Any) -> None:
        at = 1 - inches_from_top / height
        figure.text(0.02, at, _fitted(text), va="top", parse_math=False, **style)

    size = 13 if len(run.headline) <= _HEADLINE else 10
    write(run.headline, 0.14, fontsize=size, fontweight="bold", color=_COLORS[word])
    write(_cause(run), 0.42, fontsize=10)
    write(_where(run), 0.66, fontsize=8.5, color="#566273")
    figure.text(0.02, 0.12 / height, _fitted(_made_by(run)), fontsize=8, color="#566273", parse_math=False)
    return figure


def _fitted(text: str) -> str:
    line = " ".join(printable(without_folders(text)).split())
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


def _cause(run: FinishedRun) -> str:
    first = next((finding for finding in run.verdict.findings if finding.counts), None)
    return first.title if first else "; ".join(variant_sentences(run.results["variants"]))


def _where(run: FinishedRun) -> str:
    target = run.results["target"]
    gpu = target.get("gpu_name") or target.get("gpus") or ""
    parts = [
        str(run.results["scenario"]),
        f"Triton {target.get('triton_version', 'of unknown version')} ({target.get('target', 'unknown target')})",
        ", ".join(f"{model}: {variant}" for model, variant in run.results["variants"].items()),
        str(gpu),
    ]
    return " · ".join(part for part in parts if part)


def _made_by(run: FinishedRun) -> str:
    results = run.results
    return f"tritonchaos {results['tritonchaos_version']}, run {results['run_id']}, seed {results['seed']}"


def _saved(figure: Figure, file_format: Format, run: FinishedRun) -> bytes:
    out = BytesIO()
    title = _fitted(f"{run.results['scenario']}: {run.headline}")
    if file_format is Format.SVG:
        # No date, so that the same run gives the same file.
        metadata: dict[str, Any] = {"Title": title, "Date": None, "Description": _described(run)}
    else:
        metadata = {"Title": title, "Description": _described(run), "Software": None}
    figure.savefig(out, format=file_format.value, metadata=metadata)
    return out.getvalue()


def _described(run: FinishedRun) -> str:
    """Say the picture in words, for readers that do not see it."""
    table = cycle_table(run.history)
    cycles = dict.fromkeys(Arm, 0)
    for number, count in Counter(table.kinds).items():
        cycles[table.kind_list[number].arm] += count
    arms = (f"{arm.value}: {count} cycles" for arm, count in cycles.items())
    return _fitted(f"Post-unload {', '.join(run.metrics)}; {'; '.join(arms)}")
