"""One panel of the picture: the curve of one metric."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tritonchaos.observations import Arm
from tritonchaos.post_unload import cycle_table, settle_quantum
from tritonchaos.summary import FinishedRun, amount_text, is_memory, printable
from tritonchaos.summary.curves import Curve, Line, Outline, outline
from tritonchaos.summary.faults import FaultBand
from tritonchaos.summary.thinning import thin
from tritonchaos.units import KIB, MIB
from tritonchaos.verdict import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS: Final = {Arm.CONTROL: "#2166ac", Arm.TREATMENT: "#c2570c"}
_ESTIMATE: Final = "#7a1fa2"
_SOFT: Final = "#566273"
_POINTS: Final = 2400
_FEW: Final = 160
_MOST_PARTS: Final = 60
_LEAST_QUANTA: Final = 8
_NAMED_SHARE: Final = 0.012  # of the width, for each letter of a phase's name


def draw_panel(panel: Axes, curve: Curve, run: FinishedRun, bands: Sequence[FaultBand]) -> None:
    """Draw a curve with what lies behind it."""
    unit, size = ("count", 1) if not is_memory(curve.metric) else ("MiB", MIB)
    if is_memory(curve.metric) and curve.values.max() < MIB:
        unit, size = "KiB", KIB
    _limits(panel, curve, size, len(run.rows))
    parts = outline(cycle_table(run.history))
    _backdrop(panel, parts, len(run.rows), bands)
    for arm in Arm:
        _arm(panel, curve, arm, size, parts)
    if curve.line is not None:
        _line(panel, curve.line, size)
    panel.set_title(printable(_title(curve)), loc="left", fontsize=9.5, parse_math=False, color=_title_color(curve))
    panel.set_ylabel(unit)
    panel.grid(visible=True, color="#d9dee6", linewidth=0.6)
    panel.legend(loc="best", fontsize=8, framealpha=0.9)


def _limits(panel: Axes, curve: Curve, size: int, cycles: int) -> None:
    """Keep noise from looking like growth, and an estimate from flattening the readings."""
    least, most = int(curve.values.min()), int(curve.values.max())
    reach = max(most - least, _LEAST_QUANTA * settle_quantum(curve.metric)) * 1.25
    middle = (least + most) / 2
    panel.set_ylim((middle - reach / 2) / size, (middle + reach / 2) / size)
    panel.set_xlim(-0.5, max(cycles, 2) - 0.5)


def _backdrop(panel: Axes, parts: Outline, cycles: int, bands: Sequence[FaultBand]) -> None:
    faulty = [band for band in bands if band.faults]
    for number, band in enumerate(faulty if len(faulty) <= _MOST_PARTS else []):
        label = "an edit was in force" if not number else None
        panel.axvspan(band.first - 0.5, band.last + 0.5, color="#f3e3bf", alpha=0.7, lw=0, zorder=0, label=label)
        _named(panel, "; ".join(band.faults), band.first, band.last, cycles, at_top=False)
    for first, last, phase in parts.stretches[:_MOST_PARTS]:
        if first:
            panel.axvline(first - 0.5, color="#9aa5b4", lw=0.8, zorder=1)
        _named(panel, phase, first, last, cycles, at_top=True)
    for place, _ in parts.restarts[:_MOST_PARTS]:
        panel.axvline(place - 0.5, color="#c21f2f", lw=0.9, ls="--", zorder=1)


def _named(panel: Axes, name: str, first: int, last: int, cycles: int, *, at_top: bool) -> None:
    """Write a name into its stretch, shortened to what fits."""
    letters = int((last - first + 1) / max(cycles, 1) / _NAMED_SHARE)
    text = printable(name) if len(name) <= letters else f"{printable(name)[: letters - 1]}…"
    if letters < 4:
        return
    height, alignment = (0.975, "top") if at_top else (0.025, "bottom")
    where = panel.get_xaxis_transform()
    panel.text(
        first - 0.35, height, text, transform=where, va=alignment, fontsize=8, color=_SOFT, parse_math=False, zorder=4
    )


def _arm(panel: Axes, curve: Curve, arm: Arm, size: int, parts: Outline) -> None:
    of_arm = curve.of_arm(arm)
    if not len(of_arm):
        return
    kept = of_arm[thin(curve.values[of_arm], _POINTS)]
    judged, others = kept[curve.is_judged(kept)], kept[~curve.is_judged(kept)]
    for number, part in enumerate(_unbroken(judged.tolist(), curve, parts, len(kept) < len(of_arm))):
        places, values = curve.places[part], curve.values[part] / size
        mark = "o" if len(of_arm) <= _FEW or len(part) == 1 else None
        label = f"{arm.value} arm" if not number else None
        panel.plot(places, values, color=_COLORS[arm], lw=1.3, marker=mark, ms=3, label=label, zorder=3)
    if len(others):
        panel.plot(
            curve.places[others],
            curve.values[others] / size,
            ls="",
            marker="o",
            ms=3,
            mfc="white",
            color=_SOFT,
            label=f"{arm.value}, not judged",
            zorder=3,
        )


def _unbroken(readings: Sequence[int], curve: Curve, parts: Outline, thinned: bool) -> list[list[int]]:
    """Split readings where the phase or the start of the server changes, so that no line is drawn across."""
    if parts.is_interleaved:
        return [list(readings)]
    breaks = sorted({first for first, _, _ in parts.stretches} | {place for place, _ in parts.restarts})
    found: list[list[int]] = []
    before = -1
    for at in readings:
        part = bisect_right(breaks, curve.places[at])
        if found and part == before and (thinned or at - found[-1][-1] <= 2):
            found[-1].append(at)
        else:
            found.append([at])
        before = part
    return found


def _line(panel: Axes, line: Line, size: int) -> None:
    corners = line.corners()
    kept = corners[:: len(corners) // _POINTS + 1] + corners[-1:]
    places = line.places[kept]
    middle, low, high = zip(*(line.at(at) for at in kept), strict=True)
    if line.is_growth:
        panel.fill_between(
            places, [v / size for v in low], [v / size for v in high], color=_ESTIMATE, alpha=0.14, lw=0, zorder=2
        )
    label = "estimate, 95 % interval" if line.is_growth else "smallest leak that would have been found"
    style = "-" if line.is_growth else "--"
    panel.plot(places, [v / size for v in middle], color=_ESTIMATE, lw=1.6, ls=style, label=label, zorder=2)


def _title(curve: Curve) -> str:
    found, amount = curve.assessment, _amount(curve)
    if found is None:
        return curve.metric
    return f"{curve.metric}: {' '.join(part for part in (found.verdict or found.status.value, amount) if part)}"


def _amount(curve: Curve) -> str:
    line = curve.line
    if line is None:
        return ""
    rate = f"{amount_text(curve.metric, line.rate)} per {line.per}"
    if not line.is_growth:
        return f"(a leak of {rate} would have been found)"
    low, high = amount_text(curve.metric, line.low), amount_text(curve.metric, line.high)
    return f"of {rate} (95 % interval {low} to {high})"


def _title_color(curve: Curve) -> str:
    status = curve.assessment.status if curve.assessment else None
    return {Status.FAIL: "#c21f2f", Status.PASS: "#1c7c46"}.get(status, "#1a2230") if status else "#1a2230"
