"""Compared runs in a few lines: a test shows only what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.builders import make_facts, make_position
from tritonchaos.comparing.runs import ComparedRun
from tritonchaos.comparing.sides import Side
from tritonchaos.units import MIB
from tritonchaos.verdict import Assessment, Finding, Status

HOST = "host_private_bytes"
ALIVE = Assessment("server_alive", Status.PASS, "no crash")


def stable(excluded_bytes: float = 4096, **changes: Any) -> Assessment:
    fields = {"metric": HOST, "verdict": "STABLE", "excluded_bytes_per_cycle": excluded_bytes, **changes}
    return Assessment("memory_growth", Status.PASS, "no growth", **fields)


def undecided(**changes: Any) -> Assessment:
    fields = {"metric": HOST, "verdict": "INCONCLUSIVE", **changes}
    return Assessment("memory_growth", Status.UNKNOWN, "38 cycles are missing", **fields)


def leak(mib: float = 1.0, spread: float = 0.1) -> Assessment:
    found = Finding(
        "leak",
        "memory_growth",
        f"{HOST} grows by {mib} MiB per cycle in wrong",
        metric=HOST,
        bytes_per_cycle=mib * MIB,
        interval_bytes_per_cycle=((mib - spread) * MIB, (mib + spread) * MIB),
        position=make_position("wrong"),
    )
    return Assessment("memory_growth", Status.FAIL, "it grows", HOST, "LEAK", findings=(found,))


def crash(**changes: Any) -> Assessment:
    found = Finding(
        **{"kind": "crash", "checker": "server_alive", "title": "died of SIGSEGV during load ident", **changes}
    )
    return Assessment("server_alive", Status.FAIL, "it died", findings=(found,))


def compared(
    *assessments: Assessment,
    name: str = "run-1",
    title: str = "s",
    text: str = "scenario: s\n",
    times_ns: Mapping[str, Sequence[int]] | None = None,
    peaks: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
    lateness_ns: float = 0.0,
    interrupted: bool = False,
    **facts: Any,
) -> ComparedRun:
    return ComparedRun(
        folder=Path(name),
        title=title,
        scenario_text=text,
        facts=make_facts(**facts),
        interrupted=interrupted,
        assessments=assessments,
        findings=tuple(finding for assessment in assessments for finding in assessment.findings),
        times_ns=times_ns or {},
        peaks=peaks or {},
        lateness_ns=lateness_ns,
    )


def side(*runs: ComparedRun, name: str = "side", **not_run: str) -> Side:
    by_title: dict[str, list[ComparedRun]] = {}
    for run in runs:
        by_title.setdefault(run.title, []).append(run)
    return Side(name, by_title, dict(not_run))
