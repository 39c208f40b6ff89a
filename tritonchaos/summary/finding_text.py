"""A finding in plain lines, for reports that know no markup of their own."""

from __future__ import annotations

from collections.abc import Iterator

from tritonchaos.summary.texts import without_folders
from tritonchaos.units import format_bytes
from tritonchaos.verdict import Finding


def finding_lines(finding: Finding) -> list[str]:
    """Tell all that is known of a finding, its title apart: growth, place, marks, then its evidence, then details."""
    lines = [*_facts(finding), *finding.evidence, *finding.details]
    return [without_folders(line) for line in lines]


def _facts(finding: Finding) -> Iterator[str]:
    if finding.bytes_per_cycle is not None:
        yield f"growth: {growth_text(finding)}"
    if finding.metric:
        yield f"metric: {finding.metric}"
    if finding.position is not None:
        step = f" ({finding.step})" if finding.step else ""
        yield f"first seen: {finding.position}{step}, {finding.occurrences} in all"
    yield f"found by {finding.checker}, kind {finding.kind}, id {finding.id}"
    if finding.known:
        yield f"already known: {finding.known}"
    if finding.undocumented:
        yield "the step that led here goes outside Triton's documented rules"
    if not finding.counts:
        yield "it does not count for the exit code"


def growth_text(finding: Finding) -> str:
    """Print the growth of a finding: "1 MiB per cycle (95 % interval 512 KiB to 1.5 MiB), 0.25 of a loaded model"."""
    amount = amount_text(finding.metric, finding.bytes_per_cycle or 0)
    if finding.interval_bytes_per_cycle is None:
        return f"{amount} per {finding.per}{_in_models(finding)}"
    low, high = (amount_text(finding.metric, bound) for bound in finding.interval_bytes_per_cycle)
    return f"{amount} per {finding.per} (95 % interval {low} to {high}){_in_models(finding)}"


def _in_models(finding: Finding) -> str:
    return "" if finding.footprints is None else f", {finding.footprints:.2g} of a loaded model"


def amount_text(metric: str | None, number: float) -> str:
    """Print an amount of a metric: bytes with their unit, everything else as a number."""
    return f"{number:.3g}" if metric and not is_memory(metric) else format_bytes(number)


def is_memory(metric: str) -> bool:
    """Say whether a metric is in bytes."""
    return metric.partition("@")[0].endswith("_bytes")
