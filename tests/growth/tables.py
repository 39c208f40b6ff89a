"""Prints the figures as Markdown, and says which of the promises they keep."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone

from tests.growth.evaluation import OURS, Figures
from tests.growth.scoring import Outcome, Score

_HEAD = (
    "| detector | false LEAK | leaks found | missed as STABLE | cycles to LEAK | cycles to STABLE | median error |"
    " p90 error | interval holds | ms CPU per 1,000 cycles |"
)


def markdown(figures: Figures) -> str:
    made = datetime.now(timezone.utc).date().isoformat()
    where = f"{platform.python_implementation()} {platform.python_version()} on {platform.machine()}"
    return "\n".join(
        [
            f"Made by `make growth` on {made}, {where}; seed of the fresh series: `{figures.seed}`.",
            "",
            *_section("The 260 labelled series", figures.labelled),
            "",
            f"Of {figures.ambiguous[1]} series that nobody can tell, {figures.ambiguous[0]} stayed INCONCLUSIVE.",
            "",
            *_section("Fresh series", figures.fresh),
            "",
            "The usual rules judge the first 60 treatment cycles of a series at once, and were tried on fewer series.",
            "",
            *_promises(figures),
            "",
            *_recorded("Series recorded on real servers and GPUs", figures.recorded),
            "",
            *_recorded("Series of our own runs", figures.own_recorded),
            "",
            *_kinds("Growth that ends too late to know without a control arm", figures.hard),
            "",
            *_kinds("Leaks slower than the promise, or that slow down", figures.slow),
        ]
    )


def _section(title: str, scores: dict[str, Score]) -> list[str]:
    ours = scores[OURS]
    head = f"### {title}: {ours.bounded:,} bounded, {ours.leaks:,} leaks"
    return [head, "", _HEAD, "| --- " * 10 + "|", *(_row(name, one) for name, one in scores.items())]


def _row(name: str, one: Score) -> str:
    covered, known = one.covered
    return (
        f"| {name} | {_share(one.false_leaks, one.bounded)} | {_share(one.found, one.leaks)} |"
        f" {_share(one.missed_as_stable, one.leaks)} | {_number(one.to_leak)} | {_number(one.to_stable)} |"
        f" {_percent(one.median_error)} | {_percent(one.p90_error)} | {_share(covered, known)} |"
        f" {_number(one.ms_per_1000)} |"
    )


def promises(figures: Figures) -> list[tuple[str, str, bool]]:
    """Return (promise, found, kept) of each."""
    labelled, fresh, long = figures.labelled[OURS], figures.fresh[OURS], figures.long_run
    covered, known = fresh.covered
    share_blamed = max(blamed / count for _, blamed, count in figures.blamed)
    total = sum(blamed for _, blamed, _ in figures.blamed) / sum(count for _, _, count in figures.blamed)
    slowest = max(labelled.ms_per_1000, fresh.ms_per_1000)
    wrong = [o.series.name for o in [*figures.recorded, *figures.own_recorded] if _is_wrong(o)]
    allowed = fresh.bounded // 1000
    return [
        ("no labelled bounded series is called LEAK", f"{labelled.false_leaks}", labelled.false_leaks == 0),
        (
            "no ambiguous series gets a verdict",
            f"{figures.ambiguous[0]} of {figures.ambiguous[1]} left open",
            _all(figures.ambiguous),
        ),
        (
            f"at most {allowed} of {fresh.bounded:,} fresh bounded series are called LEAK",
            f"{fresh.false_leaks}",
            fresh.false_leaks <= allowed,
        ),
        (
            "99 % of the leaks are found within 200 cycles",
            _share(fresh.found, fresh.leaks),
            fresh.found >= 0.99 * fresh.leaks,
        ),
        (
            "at most 1 % of the leaks are called STABLE",
            _share(fresh.missed_as_stable, fresh.leaks),
            fresh.missed_as_stable <= 0.01 * fresh.leaks,
        ),
        ("mean cycles to LEAK, labelled, at most 38", f"{labelled.to_leak:.1f}", labelled.to_leak <= 38),
        ("mean cycles to STABLE, labelled, at most 62", f"{labelled.to_stable:.1f}", labelled.to_stable <= 62),
        (
            "a model of 32 MiB or more per cycle: median cycles below 10",
            f"{figures.footprint_median:.0f}",
            figures.footprint_median < 10,
        ),
        (
            f"labels of coin-ordered pairs shuffled ({len(figures.blamed)} series): treatment blamed in at most 1 %",
            f"{total:.2%}, worst series {share_blamed:.2%}",
            total <= 0.01,
        ),
        (
            "median error of bytes per cycle at most 1 %",
            _percent(max(fresh.median_error, labelled.median_error)),
            max(fresh.median_error, labelled.median_error) <= 0.01,
        ),
        (
            "90th percentile of that error at most 15 %",
            _percent(max(fresh.p90_error, labelled.p90_error)),
            max(fresh.p90_error, labelled.p90_error) <= 0.15,
        ),
        ("95 % intervals hold the truth in at least 95 %", _share(covered, known), covered >= 0.95 * known),
        ("at most 100 ms of CPU per 1,000 cycles", f"{slowest:.0f} ms", slowest <= 100),
        (
            f"a noisy series of {long.readings:,} readings in less than 60 s and 500 MB",
            f"{long.cpu_s:.1f} s, {long.peak_mib:.0f} MiB",
            long.cpu_s < 60 and long.peak_mib < 500,
        ),
        ("no recorded series is judged wrongly", ", ".join(wrong) or "none", not wrong),
    ]


def _all(counts: tuple[int, int]) -> bool:
    return counts[0] == counts[1]


def _is_wrong(outcome: Outcome) -> bool:
    return outcome.verdict not in (outcome.series.label, "INCONCLUSIVE")


def _promises(figures: Figures) -> list[str]:
    rows = [f"| {promise} | {found} | {'yes' if kept else '**no**'} |" for promise, found, kept in promises(figures)]
    return ["### What was to be reached", "", "| promise | found | kept |", "| --- | --- | --- |", *rows]


def _recorded(title: str, outcomes: Sequence[Outcome]) -> list[str]:
    rows = []
    for one in outcomes:
        truth, found = one.series.bytes_per_cycle, one.bytes_per_cycle
        told = f"{found:,.0f} B" if one.verdict == "LEAK" and found is not None else ""
        known = f"{truth:,.0f} B" if truth else ""
        rows.append(
            f"| {one.series.name} | {one.series.channel} | {one.series.label} | {one.verdict} | {one.cycles} of"
            f" {len(one.series.values)} | {known} | {told} |"
        )
    head = "| series | channel | truth | verdict | cycles | bytes per cycle | found |"
    return [f"### {title}", "", head, "| --- " * 7 + "|", *rows]


def _kinds(title: str, kinds: dict[str, list[Outcome]]) -> list[str]:
    rows = []
    for name, outcomes in kinds.items():
        count, of = Counter(one.verdict for one in outcomes), len(outcomes)
        shares = " | ".join(_share(count[verdict], of) for verdict in ("LEAK", "STABLE", "INCONCLUSIVE"))
        rows.append(f"| {name} | {of} | {shares} |")
    head = "| kind | series | LEAK | STABLE | INCONCLUSIVE |"
    return [f"### {title}", "", head, "| --- " * 5 + "|", *rows]


def _share(part: int, whole: int) -> str:
    if not whole:
        return "-"
    share = 100 * part / whole
    digits = 0 if share in (0, 100) else 1 if share > 1 else 2
    return f"{share:.{digits}f} % ({part:,})"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.1%}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1f}"
