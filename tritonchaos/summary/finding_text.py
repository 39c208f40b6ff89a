"""A finding in plain lines, for reports that know no markup of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tritonchaos.observations import Position
from tritonchaos.summary.texts import without_folders
from tritonchaos.units import format_bytes
from tritonchaos.verdict import Finding


def finding_lines(finding: Finding) -> list[str]:
    """Tell all that is known of a finding, its title apart: growth, place, marks, then its evidence, then details."""
    lines = [*finding_facts(finding), *finding.evidence, *finding.details]
    return [without_folders(line) for line in lines]


def finding_facts(
    finding: Finding, code: Callable[[str], str] = str, plain: Callable[[str], str] = str, folder: str | None = None
) -> Iterator[str]:
    """Tell what is known of a finding, its title, evidence and details apart; one line for each fact.

    Args:
        code, plain: How names and ids, and other texts of a server or a scenario, are written.
        folder: Run directory for the command that prints what happened there; None: it is left out.
    """
    if finding.bytes_per_cycle is not None:
        yield f"growth: {growth_text(finding)}"
    if finding.metric:
        yield f"metric: {code(finding.metric)}"
    if finding.position is not None:
        step = f" ({plain(finding.step)})" if finding.step else ""
        yield f"first seen: {plain(str(finding.position))}{step}, {finding.occurrences} in all"
        if folder is not None:
            yield f"all that happened there: {code(show_command(finding.position, folder))}"
    yield f"found by {code(finding.checker)}, kind {finding.kind}, id {code(finding.id)}"
    if finding.known:
        yield f"already known: {plain(finding.known)}"
    if finding.undocumented:
        yield "the step that led here goes outside Triton's documented rules"
    if not finding.counts:
        yield "it does not count for the exit code"


def show_command(position: Position, folder: str) -> str:
    """Return the command that prints the cycle, or the steps outside of cycles, of a position."""
    track = "" if position.track == "main" else f" --track {position.track}"
    cycle = "" if position.cycle is None else f" --cycle {position.cycle}"
    return f"tritonchaos show {folder} --phase {position.phase}{track}{cycle}"


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
