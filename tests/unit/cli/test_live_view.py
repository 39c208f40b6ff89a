"""What a person watching a run is shown: where it is, what would be said of it now, curves; never wider than told."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from tests.builders import CONTROL, TREATMENT, failed_load, make_facts, make_position, no_answer, run
from tritonchaos.checkers.memory_growth import MemoryGrowth
from tritonchaos.cli.live_view import draw, heartbeat, sparkline
from tritonchaos.cli.run_state import RunState
from tritonchaos.observations import Event, Evidence, PhaseFacts, ServerExited
from tritonchaos.post_unload import CycleReader
from tritonchaos.units import MIB

HOST = "host_private_bytes"
PHASES = (
    PhaseFacts("baseline", CONTROL, "cycles", 3),
    PhaseFacts("wrong_output_datatype", TREATMENT, "cycles", 200),
    PhaseFacts("pairs", None, "cycles", 10),
)


def watched(events: list[Event], seconds_per_event: float = 0.25) -> tuple[RunState, float]:
    """Feed a run's events as the engine and the display would: the watch sees each cycle first."""
    watch = MemoryGrowth().watch(False)
    reader, now_s = CycleReader(3), 100.0
    state = RunState(make_facts(phases=PHASES), watch, now_s)
    for event in events:
        now_s += seconds_per_event
        reading = reader.see(event)
        if reading is not None:
            watch.see(reading)
        state.see(event, now_s)
    return state, now_s


def growing(cycles: int, by: int = MIB) -> list[Event]:
    builder = run().start().phase("baseline", CONTROL, HOST, [100 * MIB] * 3)
    series = [100 * MIB + by * cycle for cycle in range(cycles)]
    return builder.phase("wrong_output_datatype", TREATMENT, HOST, series, **failed_load()).events


def shown(state: RunState, now_s: float, columns: int = 80, **options: float) -> list[str]:
    console = Console(file=StringIO(), width=columns, color_system=None)
    with console.capture() as capture:
        console.print(draw(state, now_s, columns, **options))
    return capture.get().splitlines()


def test_it_says_where_the_run_is_and_how_long_the_phase_may_take() -> None:
    text = "\n".join(shown(*watched(growing(20))))
    assert "failed-load  seed 1  local Triton 2.51.0" in text
    assert "phase 2/3  wrong_output_datatype (treatment)  cycle 20/200" in text
    assert "at most 3 min" in text


def test_a_leak_is_said_with_its_rate_as_soon_as_the_check_would_say_it() -> None:
    text = "\n".join(shown(*watched(growing(60))))
    assert "so far LEAK of 1 MiB per cycle" in text


def test_without_growth_the_detection_limit_reached_is_said() -> None:
    some = "\n".join(shown(*watched(growing(20, by=0))))
    assert "so far INCONCLUSIVE, a leak of" in some
    assert "per cycle would show" in some
    assert "so far STABLE, a leak of" in "\n".join(shown(*watched(growing(120, by=0))))


def test_judged_metrics_are_drawn_as_curves() -> None:
    lines = [line for line in shown(*watched(growing(20))) if HOST in line]
    assert any("▁" in line and "█" in line and "119 MiB" in line for line in lines)


def test_no_line_is_wider_than_the_terminal() -> None:
    events = [*growing(20), ServerExited(1, make_position(), -11)]
    for columns in (40, 80, 200):
        assert max(len(line) for line in shown(*watched(events), columns, max_time_s=600)) <= columns


def test_the_last_sightings_are_shown_with_how_often() -> None:
    hang = Evidence(1, make_position(), "hang", {}, ())
    bad = run().phase("wrong_output_datatype", TREATMENT, HOST, [1, 1, 1], reply=no_answer()).events
    text = "\n".join(shown(*watched([*bad, hang, ServerExited(1, make_position(), -11)])))
    assert "seen 3 times unmet: load ident" in text
    assert "seen hang" in text
    assert "seen crash: the server ended with -11" in text


def test_a_step_that_lasts_is_told() -> None:
    state, now_s = watched(growing(3))
    assert "in one step for 25.0 s" in heartbeat(state, now_s + 25)
    assert "in one step" not in heartbeat(state, now_s + 1)


def test_pairs_count_both_arms() -> None:
    state, _ = watched(run().phase("pairs", CONTROL, HOST, [1]).events)
    assert state.at_most == 20


def test_a_run_without_a_check_of_growth_still_has_a_curve() -> None:
    state = RunState(make_facts(phases=PHASES), None, 0.0)
    for event in growing(3):
        state.see(event, 1.0)
    assert list(state.curves) == [HOST]
    assert state.verdicts() == []


def test_a_sparkline_keeps_the_largest_of_each_column() -> None:
    assert sparkline([0, 0, 9, 0, 0, 0], 3) == "▁█▁"
    assert sparkline([], 5) == ""
    assert sparkline([5, 5], 8) == "▁▁"
