"""Compares two runs, or two sets of runs, of the same scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tritonchaos.comparing.finding_rows import check_rows, finding_rows
from tritonchaos.comparing.growth_rows import growth_rows
from tritonchaos.comparing.measured_rows import RUNS_FOR_SPREAD, memory_rows, time_rows
from tritonchaos.comparing.records import Comparison, Kind, Outcome, Row, SideFacts, in_order
from tritonchaos.comparing.runs import ComparedRun
from tritonchaos.comparing.scenarios import differences, is_same
from tritonchaos.comparing.sides import Side, read_side
from tritonchaos.errors import UsageError

Pair = tuple[list[ComparedRun], list[ComparedRun]]


def compare(base: Path, candidate: Path, *, different_scenarios: bool = False) -> Comparison:
    """Compare a candidate with a base.

    Args:
        base, candidate: A run directory, the folder of a set, or a folder of either.
        different_scenarios: Compare runs whose scenarios differ in more than their target.

    Raises:
        StoreError: A side is no run, or cannot be read.
        UsageError: The scenarios differ, or the sides have none in common.
    """
    return compare_sides(read_side(base), read_side(candidate), different_scenarios=different_scenarios)


def compare_sides(base: Side, candidate: Side, *, different_scenarios: bool = False) -> Comparison:
    """Compare two sides that were read."""
    pairs = dict(_pairs(base, candidate))
    unlike = {title: diff for title, (old, new) in pairs.items() if (diff := _difference(old, new))}
    if unlike and not different_scenarios:
        shown = "\n".join(f"{title}:\n{diff}" for title, diff in unlike.items())
        raise UsageError(
            f"the scenarios of the two sides differ, so that their runs cannot be compared\n{shown.rstrip()}",
            hint="compare them all the same with --different-scenarios",
        )
    rows = [row for title, (old, new) in pairs.items() for row in _rows(title, old, new)]
    rows += _missing(base, candidate, pairs)
    if not rows:
        rows = [Row("", Kind.RUN, "anything", Outcome.CANNOT_TELL, "", "", why="neither side has anything to compare")]
    facts = base.facts(), candidate.facts()
    return Comparison(*facts, in_order(rows), tuple(_notes(*facts, pairs)), unlike)


def _pairs(base: Side, candidate: Side) -> Iterator[tuple[str, Pair]]:
    common = [title for title in base.runs if title in candidate.runs]
    if not common and len(base.runs) == len(candidate.runs) == 1:
        (old, before), (new, after) = *base.runs.items(), *candidate.runs.items()
        yield f"{old} / {new}", (before, after)
        return
    if not common and base.runs and candidate.runs:
        raise UsageError(
            f"the two sides have no scenario in common: found {_listed(base)} in the base and {_listed(candidate)} in "
            "the candidate",
            hint="compare runs of the same scenarios",
        )
    for title in common:
        yield title, (base.runs[title], candidate.runs[title])


def _listed(side: Side) -> str:
    names = list(side.runs)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _difference(base: Sequence[ComparedRun], candidate: Sequence[ComparedRun]) -> str:
    """Return the diff of the first two scenarios that are not the same; "" if all are."""
    first = base[0].scenario_text
    for run in (*base[1:], *candidate):
        if not is_same(first, run.scenario_text):
            return differences(first, run.scenario_text)
    models = {model: variant for run in base for model, variant in run.facts.variants.items()}
    for run in candidate:
        others = {m: v for m, v in run.facts.variants.items() if m in models and models[m] != v}
        if others:
            return "".join(
                f"-{model} served by {models[model]}\n+{model} served by {v}\n" for model, v in others.items()
            )
    return ""


def _rows(title: str, base: Sequence[ComparedRun], candidate: Sequence[ComparedRun]) -> Iterator[Row]:
    for part in (finding_rows, check_rows, growth_rows, time_rows, memory_rows):
        yield from part(title, base, candidate)


def _missing(base: Side, candidate: Side, pairs: Mapping[str, Pair]) -> Iterator[Row]:
    """What only one side has cannot be told; it decides where it is the candidate that lacks it."""
    compared = {run.title for runs in pairs.values() for side in runs for run in side}
    for title in [title for title in base.runs if title not in compared]:
        why = candidate.not_run.get(title, f"{candidate.name} has no run of it")
        yield Row(title, Kind.RUN, "the run", Outcome.CANNOT_TELL, "run", "not run", why=why)
    for title in [title for title in candidate.runs if title not in compared]:
        why = base.not_run.get(title, f"{base.name} has no run of it")
        yield Row(title, Kind.RUN, "the run", Outcome.CANNOT_TELL, "not run", "run", why=why)
    for title in [title for title in base.not_run if title in candidate.not_run]:
        why = candidate.not_run[title]
        yield Row(title, Kind.RUN, "the run", Outcome.CANNOT_TELL, "not run", "not run", why=why)


def _notes(base: SideFacts, candidate: SideFacts, pairs: Mapping[str, Pair]) -> Iterator[str]:
    for name in dict.fromkeys([*base.facts, *candidate.facts]):
        old, new = base.facts.get(name, ()), candidate.facts.get(name, ())
        if old != new:
            yield f"{name}: {', '.join(old) or 'unknown'} in the base, {', '.join(new) or 'unknown'} in the candidate"
    few = [title for title, sides in pairs.items() if min(map(len, sides)) < RUNS_FOR_SPREAD]
    if few:
        told = few[0] if len(few) == 1 else f"{len(few)} scenarios"
        yield (
            f"{told}: with fewer than {RUNS_FOR_SPREAD} runs a side, times are told apart only beyond twice and 20 ms; "
            "with as many, beyond a quarter and 5 ms"
        )
