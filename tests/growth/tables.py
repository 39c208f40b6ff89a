"""Prints the figures as Markdown, and says which of the promises they keep."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone

from tests.growth.evaluation import OURS, Figures, KindsCycles
from tests.growth.scoring import Outcome, Score, least_cycles

_TRIED = 100  # series of a kind of which the least possible cycles are worked out

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
            *_section("Fresh series, in the mix of the labelled series", figures.fresh),
            "",
            "The usual rules judge the first 60 treatment cycles of a series at once, and were tried on fewer series.",
            "",
            *_section("Fresh series of additional kinds, that the labelled set lacks", {OURS: figures.more}),
            "",
            *_cycles(figures.to_stable),
            "",
            *_promises(figures),
            "",
            *_recorded("Series recorded on real servers and GPUs", figures.recorded),
            "",
            *_recorded("Series of our own runs", figures.own_recorded),
            "",
            *_kinds("Growth that ends too late to know without a control arm", figures.hard),
            "",
            *_kinds("Leaks on the edge of the promise, slower, or that slow down", figures.slow),
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
    more = figures.more
    slowest = max(one.ms_per_1000 for one in (labelled, fresh, figures.more))
    wrong = [o.series.name for o in [*figures.recorded, *figures.own_recorded] if _is_wrong(o)]
    return [
        ("no labelled bounded series is called LEAK", f"{labelled.false_leaks}", labelled.false_leaks == 0),
        (
            "no ambiguous series gets a verdict",
            f"{figures.ambiguous[0]} of {figures.ambiguous[1]} left open",
            figures.ambiguous[0] == figures.ambiguous[1],
        ),
        _no_false_leaks("in the labelled mix", fresh),
        *_found("in the labelled mix, as fast as promised,", figures.promised),
        _no_false_leaks("of additional kinds", figures.more),
        *_found("of additional kinds", figures.more),
        ("mean cycles to LEAK, labelled, at most 38", f"{labelled.to_leak:.1f}", labelled.to_leak <= 38),
        (
            "mean cycles to LEAK, fresh in the labelled mix, slower ones too, at most 38",
            f"{fresh.to_leak:.1f}, as fast as promised {figures.promised.to_leak:.1f}",
            fresh.to_leak <= 38,
        ),
        ("mean cycles to LEAK, fresh of additional kinds, at most 38", f"{more.to_leak:.1f}", more.to_leak <= 38),
        ("mean cycles to STABLE, labelled, at most 62", f"{labelled.to_stable:.1f}", labelled.to_stable <= 62),
        (
            "mean cycles to STABLE, fresh in the labelled mix, at most 62",
            f"{fresh.to_stable:.1f}",
            fresh.to_stable <= 62,
        ),
        (
            "a model of 32 MiB or more per cycle: median cycles below 10",
            f"{figures.footprint_median:.0f}",
            figures.footprint_median < 10,
        ),
        _blamed(figures.blamed),
        *_measured("labelled", labelled),
        *_measured("fresh in the labelled mix", fresh),
        *_measured("fresh of additional kinds", figures.more),
        ("at most 100 ms of CPU per 1,000 cycles", f"{slowest:.0f} ms", slowest <= 100),
        (
            f"a noisy series of {long.readings:,} readings in less than 60 s and 500 MB",
            f"{long.cpu_s:.1f} s, {long.peak_mib:.0f} MiB",
            long.cpu_s < 60 and long.peak_mib < 500,
        ),
        ("no recorded series is judged wrongly", ", ".join(wrong) or "none", not wrong),
    ]


def told(figures: Figures) -> list[tuple[str, str, bool]]:
    """Return (promise, found, kept) of what the page tells and the command does not insist on."""
    fresh, more = figures.fresh[OURS], figures.more
    return [
        *_found("in the labelled mix, slower ones too,", fresh),
        _stable_of_all(figures),
        (
            "mean cycles to STABLE, fresh of additional kinds, at most 62",
            f"{more.to_stable:.1f}; least possible {_mean(_least(figures, labelled=False)):.1f}",
            more.to_stable <= 62,
        ),
    ]


def _stable_of_all(figures: Figures) -> tuple[str, str, bool]:
    stable = [one.cycles for kind in figures.to_stable for one in kind.fresh if one.verdict == "STABLE"]
    promise = "mean cycles to STABLE, all fresh bounded series together, at most 62"
    return promise, f"{_mean(stable):.1f}", _mean(stable) <= 62


def _least(figures: Figures, labelled: bool) -> list[int]:
    kinds = [one for one in figures.to_stable if bool(one.labelled) is labelled]
    return [least for one in kinds for least in _least_of(one)]


def _least_of(kind: KindsCycles) -> list[int]:
    found = [least_cycles(outcome.series) for outcome in kind.fresh[:_TRIED]]
    return [least for least in found if least is not None]


def _no_false_leaks(which: str, one: Score) -> tuple[str, str, bool]:
    allowed = one.bounded // 1000
    promise = f"at most {allowed} of {one.bounded:,} fresh bounded series {which} are called LEAK"
    return promise, f"{one.false_leaks}", one.false_leaks <= allowed


def _found(which: str, one: Score) -> list[tuple[str, str, bool]]:
    found, missed = _share(one.found, one.leaks), _share(one.missed_as_stable, one.leaks)
    return [
        (f"99 % of the leaks {which} are found within 200 cycles", found, one.found >= 0.99 * one.leaks),
        (f"at most 1 % of the leaks {which} are called STABLE", missed, one.missed_as_stable <= 0.01 * one.leaks),
    ]


def _measured(which: str, one: Score) -> list[tuple[str, str, bool]]:
    covered, known = one.covered
    return [
        (f"{which}: median error of bytes per cycle at most 1 %", f"{one.median_error:.2%}", one.median_error <= 0.01),
        (f"{which}: 90th percentile of it at most 15 %", _percent(one.p90_error), one.p90_error <= 0.15),
        (f"{which}: 95 % intervals hold in at least 95 %", _share(covered, known), covered >= 0.95 * known),
    ]


def _blamed(found: Sequence[tuple[str, int, int]]) -> tuple[str, str, bool]:
    worst = max(blamed / count for _, blamed, count in found)
    total = sum(blamed for _, blamed, _ in found) / sum(count for _, _, count in found)
    return (
        f"labels of coin-ordered pairs shuffled ({len(found)} series): treatment blamed in at most 1 %",
        f"{total:.2%}, worst series {worst:.2%}",
        total <= 0.01,
    )


def _is_wrong(outcome: Outcome) -> bool:
    return outcome.verdict not in (outcome.series.label, "INCONCLUSIVE")


def _promises(figures: Figures) -> list[str]:
    rows = [f"| {promise} | {found} | {'yes' if kept else '**no**'} |" for promise, found, kept in promises(figures)]
    rows += [
        f"| {promise} (told only) | {found} | {'yes' if kept else '**no**'} |" for promise, found, kept in told(figures)
    ]
    return ["### What was to be reached", "", "| promise | found | kept |", "| --- | --- | --- |", *rows]


def _cycles(kinds: Sequence[KindsCycles]) -> list[str]:
    """Tabulate the means of the series that were called STABLE, kinds of the labelled set first.

    Least: what whoever knows the floor in advance needs to see 44 treatment cycles without growth.
    """
    rows = []
    for one in sorted(kinds, key=lambda one: (not one.labelled, one.kind)):
        verdicts = Counter(outcome.verdict for outcome in one.fresh)
        stable = [outcome for outcome in one.fresh if outcome.verdict == "STABLE"]
        known = [outcome.cycles for outcome in one.labelled if outcome.verdict == "STABLE"]
        rows.append(
            f"| {one.kind} | {len(one.labelled) or '-'} | {_number(_mean(known))} | {len(one.fresh)} |"
            f" {_number(_mean([o.cycles for o in stable]))} | {_number(_mean([o.treatment_cycles for o in stable]))} |"
            f" {_number(_mean(_least_of(one)))} |"
            f" {verdicts['LEAK']} | {verdicts['INCONCLUSIVE']} |"
        )
    head = (
        "| kind | labelled series | cycles to STABLE | fresh series | cycles to STABLE | of these treatment | least |"
        " LEAK | INCONCLUSIVE |"
    )
    return ["### Cycles to STABLE by kind", "", head, "| --- " * 9 + "|", *rows]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


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
