"""A run that is too long to keep in memory is read, judged and reported as if it were short."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.long_run import make
from tests.synthetic_runs import facts, record_cycles
from tritonchaos.errors import StoreError
from tritonchaos.html_page import render_page
from tritonchaos.judging import judge_history
from tritonchaos.observations import (
    Arm,
    CycleReading,
    CycleTable,
    Note,
    Probe,
    Reading,
    ServerStarted,
    StepFinished,
    pick,
)
from tritonchaos.plugins import load_plugins
from tritonchaos.post_unload import cycle_readings
from tritonchaos.reporters import markdown
from tritonchaos.reporters.results_json import dump, pieces
from tritonchaos.store import RunStore, open_history

load_plugins()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "long"
    make(folder, 1100)
    return folder


def test_a_long_run_gets_the_same_verdict_and_reports(run: Path) -> None:
    short, long = open_history(run), open_history(run, most_kept=100)
    assert (short.is_long, long.is_long) == (False, True)
    one, other = judge_history(short), judge_history(long)
    assert isinstance(cycle_readings(long), CycleTable)
    assert dump(other.results) == dump(one.results)
    assert markdown.text(other) == markdown.text(one)
    assert render_page(other) == render_page(one)
    assert other.rows[1050] == one.rows[1050]
    assert list(other.rows[-2:]) == list(one.rows[-2:])


def test_events_of_a_long_run_come_as_they_were(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "run", facts(), "") as store:
        record_cycles(store, 20)
        store.record(Note(1, "once"))
    kept, lazy = open_history(tmp_path / "run"), open_history(tmp_path / "run", most_kept=0)
    for _ in range(2):  # while the kinds of the rows are found out, and when they are known
        assert list(lazy.of(Probe)) == list(kept.of(Probe))
        assert list(lazy.of(Note)) == [Note(1, "once")]
        assert list(lazy.of(ServerStarted)) == []
        assert tuple(lazy.events) == kept.events
    assert (lazy.events[3], lazy.events[-1]) == (kept.events[3], kept.events[-1])
    assert lazy.events[5:9] == kept.events[5:9]
    assert list(lazy.of(StepFinished)) == list(kept.of(StepFinished))
    assert next(iter(reversed(lazy.events))) == Note(1, "once")
    with pytest.raises(IndexError):
        lazy.events[len(kept.events)]


def test_damage_in_a_long_run_is_a_store_error_when_it_is_reached(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "run.db").write_bytes((run / "run.db").read_bytes())
    with sqlite3.connect(copy / "run.db") as database:
        database.execute("UPDATE events SET packed = x'0001' WHERE number = 4000")
    database.close()
    history = open_history(copy, most_kept=100)
    with pytest.raises(StoreError, match="damaged or cut short"):
        judge_history(history)


# --- packed forms --------------------------------------------------------------------------------

amounts = st.dictionaries(st.sampled_from(["a_bytes", "b_bytes", "fds"]), st.integers(-(2**60), 2**60))
readings = st.builds(
    CycleReading,
    phase=st.sampled_from(["p", "q"]),
    arm=st.sampled_from(Arm),
    cycle=st.integers(0, 2**31),
    is_warm_up=st.booleans(),
    start_number=st.integers(1, 9),
    values=amounts,
    unsettled=st.frozensets(st.sampled_from(["a_bytes", "fds"])),
    mismatch=st.none() | st.text(max_size=5),
    loads=st.integers(0, 9),
    loaded=amounts,
    latencies=amounts,
)


@given(st.lists(readings, max_size=20))
def test_packed_readings_come_back_as_they_were(given_readings: list[CycleReading]) -> None:
    packed = CycleTable()
    for reading in given_readings:
        packed.append(reading)
    assert list(packed) == given_readings
    assert list(reversed(packed)) == given_readings[::-1]
    assert packed[2:5] == given_readings[2:5]
    wanted = [reading for reading in given_readings if reading.is_judged]
    assert pick(given_readings, lambda reading: reading.is_judged) == wanted
    chosen = pick(packed, lambda reading: reading.is_judged)
    assert list(chosen) == wanted
    assert chosen[:3] == wanted[:3]
    assert list(reversed(pick(chosen, lambda reading: reading.loads > 3))) == [r for r in wanted if r.loads > 3][::-1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_json_is_written_piece_by_piece_as_json_itself_would(value: object) -> None:
    assert "".join(pieces(value)) == json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def test_a_reading_of_a_long_run_is_not_kept(run: Path) -> None:
    history = open_history(run, most_kept=100)
    first, again = (next(history.of(Reading)) for _ in range(2))
    assert first == again
    assert first is not again
