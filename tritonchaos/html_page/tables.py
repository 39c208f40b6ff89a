"""The page's tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tritonchaos.html_page.markup import Child, Html, table, tag
from tritonchaos.summary import FinishedRun, TableBlock, TableRow, amount_text, is_memory
from tritonchaos.summary.retained import Retained, retained
from tritonchaos.units import MIB
from tritonchaos.verdict import Assessment

_REPLY_CHARACTERS: Final = 120
_BAR: Final = 160
_MOST_STAGES: Final = 60


def checks_table(run: FinishedRun) -> Html:
    """Every assessment with its reason."""
    header = ("check", "metric", "status", "verdict", "cycles", "why")
    return table("What each check says", header, (_check_row(a) for a in run.verdict.assessments), "checks")


def _check_row(assessment: Assessment) -> tuple[Child, ...]:
    class_ = f"status {assessment.status.value}" if assessment.counts else "status uncounted"
    status = [tag("span", assessment.status.value, class_=class_)]
    if not assessment.counts:
        status.append(tag("span", " does not count", class_="aside"))
    cycles = "" if assessment.cycles_used is None else str(assessment.cycles_used)
    metric = tag("code", assessment.metric) if assessment.metric else ""
    return (tag("code", assessment.checker), metric, tuple(status), assessment.verdict, cycles, assessment.reason)


def counts_table(run: FinishedRun) -> Iterator[Html]:
    """How many cycles did what they should."""
    if not run.counts:
        return
    header = ("phase", "arm", "warm-up", "cycles", "as expected", "first that was not")
    rows = (
        (tag("code", c.phase), c.arm.value, str(c.warm_up), str(c.cycles), str(c.matched), c.first_mismatch or "")
        for c in run.counts
    )
    yield table("Cycles that did what they should", header, rows)


def facts_table(run: FinishedRun) -> Html:
    """What the machine, the image and the versions were."""
    facts = {
        **run.results["target"],
        "server starts": run.results["server_starts"],
        "run": run.results["run_id"],
        "run started": run.history.facts.started_utc,
        "tritonchaos": run.results["tritonchaos_version"],
        "calibration": run.history.facts.calibration,
        **{f"skipped: {entry['name']}": entry["why"] for entry in run.results["target_skipped"]},
    }
    rows = ((name, tag("code", str(value))) for name, value in facts.items() if value != "")
    return table("Facts of the run", ("fact", "value"), rows)


def readings_table(run: FinishedRun) -> Iterator[Html]:
    """The named readings, one column each."""
    names: dict[str, dict[str, int]] = {}
    for reading in run.results["readings"]:
        names.setdefault(reading["name"], {}).setdefault(reading["metric"], reading["bytes"])
    metrics = sorted({metric for values in names.values() for metric in values})
    if metrics:
        rows = ((tag("code", m), *(_reading(m, values.get(m)) for values in names.values())) for m in metrics)
        caption = "Named readings: memory in MiB, everything else as a count"
        yield table(caption, ("metric", *names), rows, "numbers")


def _reading(metric: str, value: int | None) -> str:
    return "" if value is None else number(metric, value)


def number(metric: str, value: int | None, *, signed: bool = False) -> str:
    """Print a reading: memory in MiB, everything else as a count."""
    if value is None:
        return "not read"
    sign = "+" if signed else ""
    return f"{value / MIB:{sign}.3f}" if is_memory(metric) else f"{value:{sign}d}"


# --- post-unload readings ------------------------------------------------------------------------


def post_unload_tables(run: FinishedRun) -> Iterator[Html]:
    """The curves once more as tables, for whoever does not see them."""
    for metric in run.metrics:
        unit = "MiB" if is_memory(metric) else "count"
        header = ("phase", "arm", "cycle", "load", "unload", f"used ({unit})", f"to baseline ({unit})", "remarks")
        rows = (row for block in run.blocks for row in _block_rows(block, metric))
        shown = table(f"Post-unload {metric}, cycle by cycle", header, rows, "numbers")
        yield tag("details", tag("summary", f"Table: {metric}, cycle by cycle"), shown)


def _block_rows(block: TableBlock, metric: str) -> Iterator[tuple[Child, ...]]:
    yield from (_row(row, metric) for row in block.first)
    if block.left_out is not None:
        least, most = (number(metric, bound.get(metric)) for bound in (block.left_out.least, block.left_out.most))
        middle = f"{block.left_out.rows} more"
        yield (tag("code", block.phase), block.arm.value, middle, "", "", f"{least} to {most}", "", "in results.json")
    yield from (_row(row, metric) for row in block.last)


def _row(row: TableRow, metric: str) -> tuple[Child, ...]:
    remarks = [
        *(["warm-up"] if row.is_warm_up else []),
        *(["excluded"] if row.mismatch is not None else []),
        *(["unsettled"] if metric in row.unsettled else []),
    ]
    return (
        tag("code", row.phase),
        row.arm.value,
        str(row.cycle),
        tag("code", row.load_reply[:_REPLY_CHARACTERS]),
        tag("code", row.unload_reply[:_REPLY_CHARACTERS]),
        number(metric, row.used.get(metric)),
        number(metric, row.delta.get(metric), signed=True),
        ", ".join(remarks),
    )


# --- what was retained ---------------------------------------------------------------------------


def retained_tables(run: FinishedRun) -> Iterator[Html]:
    """What each stage and each edit added to what stays in use."""
    for metric in run.metrics:
        stages = retained(run.history, metric)
        if len(stages) > 1:
            yield _retained_table(metric, stages)


def _retained_table(metric: str, stages: Sequence[Retained]) -> Html:
    most = max(abs(stage.total) for stage in stages) or 1
    rows = [_retained_row(metric, stage, most) for stage in stages[:_MOST_STAGES]]
    caption = f"What stayed in use, by stage and edit in force: {metric}"
    return table(caption, ("phase", "arm", "edit in force", "cycles", "retained", "per cycle", ""), rows, "numbers")


def _retained_row(metric: str, stage: Retained, most: int) -> tuple[Child, ...]:
    return (
        tag("code", stage.phase),
        stage.arm.value,
        tag("code", "; ".join(stage.faults)) if stage.faults else "none",
        str(stage.cycles),
        amount_text(metric, stage.total),
        amount_text(metric, stage.per_cycle),
        _bar(stage, most),
    )


def _bar(stage: Retained, most: int) -> Html:
    width = max(1, round(_BAR * abs(stage.total) / most)) if stage.total else 0
    rect = tag("rect", width=width, height=10, rx=2, class_=f"bar {stage.arm.value}")
    return tag("svg", rect, width=_BAR, height=10, viewBox=f"0 0 {_BAR} 10", aria_hidden="true")
