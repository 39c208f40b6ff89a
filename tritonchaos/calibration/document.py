"""What a calibration found, in plain values: calibration.json, and what reports quote of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tritonchaos import __version__
from tritonchaos.calibrated import key_parts
from tritonchaos.calibration.claims import Seen, headline_claim, runs_needed, sizes_seen, smallest_within
from tritonchaos.calibration.outcomes import Outcome, median
from tritonchaos.calibration.sampling_cost import SamplingCost
from tritonchaos.calibration.trials import AT_MOST, Kind, footprint_bytes
from tritonchaos.units import format_bytes

SCHEMA: Final = "tritonchaos.calibration/1"
_BOUNDED: Final = (Kind.CLEAN, Kind.CACHE, Kind.POOL)


@dataclass(frozen=True, slots=True)
class Calibration:
    """All runs of a calibration.

    Attributes:
        facts: What the target says of itself.
        cost: Of sampling; None where it could not be measured.
        left_out: What was not tried, or not often enough, and why.
        interrupted: The user ended it.
    """

    facts: Mapping[str, str]
    outcomes: tuple[Outcome, ...]
    budget_s: float
    spent_s: float
    seed: int
    cost: SamplingCost | None
    left_out: tuple[str, ...]
    interrupted: bool = False

    @property
    def metrics(self) -> dict[str, list[Outcome]]:
        """Metric -> the outcomes that have a verdict on it.

        Of several GPUs those are left out that no leak was seen on while another had one: it was not planted there.
        """
        found: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            for metric in () if outcome.void else outcome.verdicts:
                found.setdefault(metric, []).append(outcome)
        grown = [metric for metric, outcomes in found.items() if _has_grown(metric, outcomes)]
        with_a_leak = {found[metric][0].trial.variant for metric in grown}
        return {
            metric: outcomes
            for metric, outcomes in found.items()
            if metric in grown or outcomes[0].trial.variant not in with_a_leak
        }

    @property
    def false_alarms(self) -> list[Outcome]:
        """Runs that called a leak what is none."""
        return [outcome for outcome in self.outcomes if outcome.false_alarms]

    def claim(self, metric: str) -> Seen | None:
        """Return the claim that reports quote of a metric."""
        return headline_claim(sizes_seen(self.metrics[metric], metric))


def _has_grown(metric: str, outcomes: Sequence[Outcome]) -> bool:
    return any(outcome.verdicts[metric].word == "LEAK" for outcome in outcomes)


def document(calibration: Calibration, date: str) -> dict[str, Any]:
    """Build what calibration.json holds; there is no path of this machine in it.

    Args:
        date: When it was made, "2026-12-01".
    """
    cost = calibration.cost
    return {
        "schema": SCHEMA,
        "tritonchaos_version": __version__,
        "date": date,
        "key": key_parts(calibration.facts),
        "seed": calibration.seed,
        "budget_s": calibration.budget_s,
        "spent_s": round(calibration.spent_s, 1),
        "interrupted": calibration.interrupted,
        "metrics": {
            metric: _metric(metric, outcomes, date) for metric, outcomes in sorted(calibration.metrics.items())
        },
        "sampling": None if cost is None else _sampling(cost),
        "left_out": list(calibration.left_out),
        "runs": [_run(outcome) for outcome in calibration.outcomes],
    }


def _sampling(cost: SamplingCost) -> dict[str, float]:
    fast_us, all_us = round(cost.fast_ns / 1e3, 1), round(cost.all_ns / 1e3, 1)
    return {"fast_us": fast_us, "all_us": all_us, "share": round(cost.share, 4)}


def statements(calibration: Calibration, date: str) -> dict[str, dict[str, Any]]:
    """Return for each variant what reports quote, and the claim behind it."""
    kept: dict[str, dict[str, Any]] = {}
    for metric, outcomes in calibration.metrics.items():
        claim = calibration.claim(metric)
        if claim is not None:
            variant = outcomes[0].trial.variant
            kept[variant] = {
                "statement": statement(metric, claim, outcomes, date),
                "metric": metric,
                "bytes_per_cycle": claim.count,
                "cycles": claim.claimed_cycles,
                "date": date,
            }
    return kept


def statement(metric: str, claim: Seen, outcomes: Sequence[Outcome], date: str) -> str:
    """Say in one line what a set-up sees."""
    clean = [outcome for outcome in outcomes if outcome.trial.kind is Kind.CLEAN]
    alarms = sum(bool(outcome.false_alarms) for outcome in clean)
    return (
        f"this set-up sees {format_bytes(claim.count)} per cycle{_whole(claim)} in {claim.claimed_cycles} cycles "
        f"({metric}); "
        f"calibrated on {date}, {claim.runs} of {claim.runs} planted leaks found, "
        f"{alarms} of {len(clean)} clean twins called a leak"
    )


def _whole(claim: Seen) -> str:
    return ", whole models," if footprint_bytes(claim.count) else ""


def _metric(metric: str, outcomes: Sequence[Outcome], date: str) -> dict[str, Any]:
    seen = sizes_seen(outcomes, metric)
    claim = headline_claim(seen)
    clean = [outcome for outcome in outcomes if outcome.trial.kind is Kind.CLEAN]
    settle = [ns for outcome in outcomes for ns in outcome.settle_ns]
    return {
        "variant": outcomes[0].trial.variant,
        "statement": None if claim is None else statement(metric, claim, outcomes, date),
        "smallest_leak": {str(within): _claim(size) for within, size in smallest_within(seen).items()},
        "leaks": _leaks(seen),
        "bounded": {kind.value: _bounded(kind, outcomes, metric) for kind in _BOUNDED},
        "excluded_bytes_per_cycle": max(_excluded(clean, metric), default=None),
        "noise_floor_bytes": max((outcome.noise.get(metric, 0) for outcome in clean), default=None),
        "settle_ms": {"median": _ms(median(settle)), "longest": _ms(max(settle, default=None))},
        "cycle_ms": _ms(median([ns for outcome in outcomes for ns in outcome.cycle_ns])),
    }


def _claim(size: Seen | None) -> dict[str, Any] | None:
    if size is None:
        return None
    return {
        "bytes_per_cycle": size.count,
        "footprint_bytes": footprint_bytes(size.count),
        "cycles": size.claimed_cycles,
        "runs": size.runs,
    }


def _leaks(seen: Sequence[Seen]) -> list[dict[str, Any]]:
    rows = []
    for number, size in enumerate(seen):
        smaller = seen[number + 1] if number + 1 < len(seen) else None
        rows.append(_leak(size, runs_needed(smaller), any(larger.is_missed for larger in seen[:number])))
    return rows


def _leak(size: Seen, needed: int, larger_was_missed: bool) -> dict[str, Any]:
    return {
        "bytes_per_cycle": size.count,
        "footprint_bytes": footprint_bytes(size.count),
        "runs": size.runs,
        "found": len(size.cycles),
        "called_stable": size.stable,
        "cycles": list(size.cycles),
        "claimed_cycles": size.claimed_cycles,
        "why_not_claimed": why_not_claimed(size, needed, larger_was_missed),
    }


def why_not_claimed(size: Seen, needed: int, larger_was_missed: bool) -> str | None:
    """Say why nothing is claimed of a size; None if something is.

    Args:
        needed: Runs that a claim on it rests on.
    """
    if size.claimed_cycles is not None:
        return None
    if len(size.cycles) < size.runs:
        return f"{size.runs - len(size.cycles)} of {size.runs} runs did not find it"
    if larger_was_missed:
        return "a larger leak was not always found"
    if size.runs < needed:
        return f"{size.runs} runs, {needed} are needed"
    return f"found so late that a run of {AT_MOST} cycles may miss it"


def _bounded(kind: Kind, outcomes: Sequence[Outcome], metric: str) -> dict[str, Any]:
    runs = [outcome for outcome in outcomes if outcome.trial.kind is kind]
    words = [outcome.verdicts[metric].word for outcome in runs]
    return {
        "runs": len(runs),
        "false_alarms": sum(bool(outcome.false_alarms) for outcome in runs),
        "stable": words.count("STABLE"),
        "cycles": [outcome.verdicts[metric].cycles for outcome in runs],
    }


def _excluded(clean: Sequence[Outcome], metric: str) -> list[float]:
    found = (outcome.verdicts[metric].excluded for outcome in clean if metric in outcome.verdicts)
    return [excluded for excluded in found if excluded is not None]


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 1)


def _run(outcome: Outcome) -> dict[str, Any]:
    return {
        "folder": outcome.folder,
        "variant": outcome.trial.variant,
        "kind": outcome.trial.kind.value,
        "bytes_per_cycle": outcome.trial.count,
        "place": outcome.place,
        "seconds": round(outcome.duration_s, 1),
        "not_used": outcome.void or None,
        "verdicts": {metric: {"verdict": v.word, "cycles": v.cycles} for metric, v in outcome.verdicts.items()},
        "false_alarms": list(outcome.false_alarms),
    }
