"""memory_growth after a leak: what the reclaim ladder and a trim of the allocators say of who holds it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import CONTROL, TREATMENT, failed_load, run
from tritonchaos.checkers.memory_growth import MemoryGrowth
from tritonchaos.observations import History, Reading
from tritonchaos.units import MIB
from tritonchaos.verdict import Assessment, Finding, Status

HOST, DEVICE, PROCESS = "host_private_bytes", "nvml_device_used_bytes", "nvml_process_used_bytes"
BASE = 100 * MIB
LAST = BASE + 20 * MIB
RUNGS = ("ladder_start", "ladder_good_load", "ladder_unload_all", "before_trim", "after_trim", "ladder_exit")


def named(name: str, **values: int) -> Reading:
    return Reading(1, name, None, values)


def leaking(metric: str, *readings: Reading, **facts: Any) -> History:
    """20 MiB grown over 21 treatment cycles, then whatever was read."""
    builder = run().start().phase("good", CONTROL, metric, [BASE] * 6)
    series = [BASE + number * MIB for number in range(21)]
    builder.phase("bad", TREATMENT, metric, series, **failed_load())
    return builder.add(*readings).stop().history(uses_gpu=metric != HOST, **facts)


def ladder(metric: str, *levels: int | None) -> list[Reading]:
    pairs = zip(RUNGS, levels, strict=True)
    return [named(name, **({} if level is None else {metric: level})) for name, level in pairs]


def judged(history: History) -> Assessment:
    return MemoryGrowth().check(history)[0]


def finding(history: History) -> Finding:
    [found] = judged(history).findings
    return found


@pytest.mark.parametrize(
    ("levels", "held_by"),
    [
        ((LAST, BASE, BASE, BASE, BASE, 0), "instance or model"),
        ((LAST, LAST, BASE, BASE, BASE, 0), "instance or model"),
        ((LAST, LAST, LAST, LAST, BASE + 8 * MIB, 0), "allocator or pool"),
        ((LAST, LAST, LAST, LAST, LAST, 0), "backend or process"),
        ((LAST, LAST, LAST, LAST, LAST, LAST), "nobody in the server's process"),
    ],
)
def test_who_returned_it_held_it(levels: tuple[int, ...], held_by: str) -> None:
    found = finding(leaking(DEVICE, *ladder(DEVICE, *levels)))
    assert found.ladder is not None
    assert (found.ladder.grown_bytes, found.ladder.held_by) == (20 * MIB, held_by)
    assert [rung.done for rung in found.ladder.rungs][:2] == ["a good load", "unloading all models"]
    assert any(line.startswith("reclaim ladder: of 20 MiB grown") and held_by in line for line in found.evidence)


@pytest.mark.parametrize("metric", [HOST, PROCESS])
def test_of_a_process_nothing_is_left_after_its_end(metric: str) -> None:
    found = finding(leaking(metric, *ladder(metric, LAST, LAST, LAST, LAST, LAST, None)))
    assert found.ladder is not None
    assert (found.ladder.rungs[-1].bytes, found.ladder.held_by) == (0, "backend or process")


def test_without_a_trim_allocator_and_process_are_not_told_apart() -> None:
    readings = [
        reading for reading in ladder(PROCESS, LAST, LAST, LAST, LAST, LAST, None) if "trim" not in reading.name
    ]
    found = finding(leaking(PROCESS, *readings))
    assert found.ladder is not None
    assert found.ladder.held_by == "allocator, backend or process"


def test_without_a_ladder_nothing_is_said_of_it() -> None:
    found = finding(leaking(PROCESS))
    assert found.ladder is None
    assert not any("ladder" in line for line in found.evidence)


def test_host_memory_that_a_trim_returns_is_retention_and_no_finding() -> None:
    history = leaking(HOST, named("before_trim", **{HOST: LAST}), named("after_trim", **{HOST: BASE + MIB}))
    assessment = judged(history)
    assert (assessment.status, assessment.verdict, assessment.findings) == (Status.UNKNOWN, "INCONCLUSIVE", ())
    assert "malloc_trim returned it" in assessment.reason
    assert assessment.plain_words == f"{assessment.reason}."


def test_a_trim_that_returns_little_leaves_the_leak_and_says_how_little() -> None:
    history = leaking(HOST, named("before_trim", **{HOST: LAST}), named("after_trim", **{HOST: LAST - MIB}))
    assert "malloc_trim returned 1 MiB of 20 MiB grown: the rest is in use" in finding(history).evidence


def test_the_good_load_of_the_ladder_gives_the_footprint_where_no_cycle_loads_well() -> None:
    start, good, *rest = ladder(PROCESS, LAST, LAST, LAST, LAST, LAST, None)
    found = finding(leaking(PROCESS, start, named("loaded", **{PROCESS: LAST + 4 * MIB}), good, *rest))
    assert found.footprint_bytes == 4 * MIB
    assert found.footprints == pytest.approx(0.25, rel=0.01)
    assert any(line.startswith("each cycle keeps 0.25 of a loaded model (4 MiB)") for line in found.evidence)
