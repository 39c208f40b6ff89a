import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.synthetic_runs import METRICS, Machine, cycle_events, facts, record_cycles
from tritonchaos.errors import StoreError, TritonChaosBug
from tritonchaos.observations import CycleFinished, CycleStarted, Note
from tritonchaos.store import RunStore, open_history, read_remembered, running_pid

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests" / "synthetic_runs.py"


@pytest.fixture
def run(tmp_path) -> Path:
    """A finished run of three cycles."""
    with RunStore.create(tmp_path / "run", facts(), "scenario: failed-load\n") as store:
        record_cycles(store, 3)
        store.finish(interrupted=False)
    return tmp_path / "run"


def test_a_finished_run_comes_back_whole(run):
    (run / "server.log").write_bytes(b"I0911 started\n\xff")
    history = open_history(run)
    machine = Machine(1)
    assert history.facts == facts()
    assert list(history.events[:9]) == cycle_events(machine, 0)
    assert len(history.events) == 27
    assert history.log[:] == b"I0911 started\n\xff"
    assert not history.interrupted
    assert set(history.samples) == set(METRICS)
    assert (run / "scenario.yaml").read_text() == "scenario: failed-load\n"


def test_a_finished_run_is_one_file(run):
    assert sorted(path.name for path in run.iterdir()) == ["run.db", "scenario.yaml"]


def test_reading_leaves_no_trace(run):
    before = (run / "run.db").read_bytes()
    open_history(run)
    assert sorted(path.name for path in run.iterdir()) == ["run.db", "scenario.yaml"]
    assert (run / "run.db").read_bytes() == before


def test_a_missing_log_is_empty(run):
    assert open_history(run).log[:] == b""


def test_the_user_can_have_ended_it(tmp_path):
    RunStore.create(tmp_path / "run", facts(), "").finish(interrupted=True)
    assert open_history(tmp_path / "run").interrupted


def test_a_run_without_an_end_mark_is_interrupted_but_keeps_what_was_recorded(tmp_path):
    with pytest.raises(ZeroDivisionError), RunStore.create(tmp_path / "run", facts(), "") as store:
        store.record(Note(1, "before"))
        1 / 0  # noqa: B018
    history = open_history(tmp_path / "run")
    assert history.interrupted
    assert list(history.events) == [Note(1, "before")]


def test_a_closed_store_takes_nothing_more(tmp_path):
    store = RunStore.create(tmp_path / "run", facts(), "")
    store.close()
    store.close()
    with pytest.raises(TritonChaosBug, match="closed"):
        store.commit()


def test_facts_can_be_completed_once_the_server_has_started(tmp_path):
    complete = facts(target={"target": "local", "gpu_uuids": "GPU-1,GPU-2"}, unavailable={})
    with RunStore.create(tmp_path / "run", facts(), "") as store:
        store.update_facts(complete)
    assert open_history(tmp_path / "run").facts == complete


def test_what_was_remembered_is_kept_apart_from_the_history(tmp_path):
    with RunStore.create(tmp_path / "run", facts(), "") as store:
        store.remember("server", {"pid": 17, "start_time": 123.5})
        store.remember("server", {"pid": 18, "start_time": 124.5})
        store.remember("shm_prefix", "tc_0a1b_")
    assert read_remembered(tmp_path / "run") == {"server": {"pid": 18, "start_time": 124.5}, "shm_prefix": "tc_0a1b_"}


def test_threads_may_record_at_the_same_time(tmp_path):
    with RunStore.create(tmp_path / "run", facts(), "") as store:

        def record(thread: int) -> None:
            for number in range(1500):
                store.record(Note(number, f"thread {thread}"))
                store.add_samples({f"metric_{thread}": [(number * 10_000_000, number)]})
                if number % 100 == 0:
                    store.commit()

        threads = [threading.Thread(target=record, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store.finish(interrupted=False)
    history = open_history(tmp_path / "run")
    for number in range(4):
        mine = [event.t_ns for event in history.of(Note) if event.text == f"thread {number}"]
        assert mine == list(range(1500))
        assert [value for _, value in history.samples[f"metric_{number}"]] == list(range(1500))


def test_a_cycle_costs_under_150_bytes_for_each_metric(tmp_path):
    cycles = 1000
    with RunStore.create(tmp_path / "run", facts(), "") as store:
        record_cycles(store, cycles)
        store.finish(interrupted=False)
    size = (tmp_path / "run" / "run.db").stat().st_size
    each = size / cycles / len(METRICS)
    assert each < 150, f"{each:.1f} bytes for each cycle and metric"
    assert len(open_history(tmp_path / "run").events) == 9 * cycles


# --- killed runs ---------------------------------------------------------------------------------


def start_recording(folder: Path) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, PROGRAM, folder, "1000000"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"recording\n"
    return process


def end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
    process.stdout.close()


def assert_whole_cycles(folder: Path) -> int:
    history = open_history(folder)
    cycles = len(history.events) // 9
    machine = Machine(1)
    assert history.interrupted
    assert len(history.events) == 9 * cycles
    assert [event.cycle for event in history.of(CycleStarted)] == list(range(cycles))
    assert [event.cycle for event in history.of(CycleFinished)] == list(range(cycles))
    assert cycles == 0 or list(history.events[:9]) == cycle_events(machine, 0)
    for metric in history.samples:
        assert history.samples[metric]
    return cycles


def test_a_run_killed_at_any_instant_is_a_run_of_whole_cycles(tmp_path):
    instants = random.Random(7)
    counts = []
    for number in range(6):
        process = start_recording(tmp_path / str(number))
        time.sleep(instants.uniform(0, 0.4))
        end(process)
        counts.append(assert_whole_cycles(tmp_path / str(number)))
        assert read_remembered(tmp_path / str(number)) == {"pid": 4711}
    assert max(counts) > 0


@pytest.fixture
def killed(tmp_path) -> Path:
    """A run that was killed with committed cycles in run.db-wal."""
    process = start_recording(tmp_path / "killed")
    while not (tmp_path / "killed" / "run.db-wal").stat().st_size > 100_000:
        time.sleep(0.005)
    end(process)
    return tmp_path / "killed"


def test_a_killed_run_can_be_read_where_nothing_can_be_written(killed, tmp_path):
    there = tmp_path / "copied elsewhere?#%20"
    shutil.copytree(killed, there)
    there.chmod(0o555)
    for path in there.iterdir():
        path.chmod(0o444)
    names = sorted(path.name for path in there.iterdir())
    try:
        assert assert_whole_cycles(there) > 0
        assert assert_whole_cycles(there) > 0
        assert sorted(path.name for path in there.iterdir()) == names
    finally:
        there.chmod(0o755)


def test_a_torn_write_ahead_log_loses_its_end_only(killed):
    whole = assert_whole_cycles(killed)
    log = killed / "run.db-wal"
    os.truncate(log, log.stat().st_size // 2 + 13)
    assert 0 < assert_whole_cycles(killed) < whole


# --- runs that cannot be read --------------------------------------------------------------------


def test_a_running_run_names_its_process(tmp_path):
    process = start_recording(tmp_path / "run")
    try:
        assert running_pid(tmp_path / "run") == process.pid
        with pytest.raises(StoreError, match=f"still going on as process {process.pid}"):
            open_history(tmp_path / "run")
        with pytest.raises(StoreError, match="still going on"):
            read_remembered(tmp_path / "run")
    finally:
        end(process)
    assert running_pid(tmp_path / "run") is None


def test_a_run_of_this_very_process_is_refused_without_dropping_its_lock(tmp_path):
    with RunStore.create(tmp_path / "run", facts(), ""):
        with pytest.raises(StoreError, match=f"process {os.getpid()}"):
            open_history(tmp_path / "run")
        program = (
            f"from tritonchaos.store import *; print(running_pid(__import__('pathlib').Path({str(tmp_path)!r})/'run'))"
        )
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert shown.stdout.strip() == str(os.getpid())
    assert running_pid(tmp_path / "run") is None


def test_a_folder_that_is_missing(tmp_path):
    with pytest.raises(StoreError, match="there is no folder") as caught:
        open_history(tmp_path / "nowhere")
    assert "latest" in caught.value.hint


def test_a_folder_of_runs_points_to_one(run):
    with pytest.raises(StoreError, match=r"not a run directory; expected run\.db in it") as caught:
        open_history(run.parent)
    assert "did you mean" in caught.value.hint
    assert str(run) in caught.value.hint


def test_a_file_that_is_no_database(run):
    (run / "run.db").write_bytes(b"hello" * 1000)
    with pytest.raises(StoreError, match="is not a database that tritonchaos wrote"):
        open_history(run)


def test_a_database_without_a_run(run):
    (run / "run.db").write_bytes(b"")
    with pytest.raises(StoreError, match="without a run in it"):
        open_history(run)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_database_that_was_cut_short(run, share):
    os.truncate(run / "run.db", int((run / "run.db").stat().st_size * share))
    with pytest.raises(StoreError, match="damaged or cut short") as caught:
        open_history(run)
    assert "copy the run directory again" in caught.value.hint


def change(run: Path, statement: str) -> None:
    with closing(sqlite3.connect(run / "run.db")) as database, database:
        database.execute(statement)


def test_a_newer_format_is_refused(run):
    change(run, "UPDATE meta SET value = '3' WHERE key = 'format_version'")
    with pytest.raises(StoreError, match="newer tritonchaos; found format 3, this one reads up to 2"):
        open_history(run)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM interned WHERE number = 1",
        "UPDATE events SET packed = x'00' WHERE number = 3",
        "UPDATE events SET packed = x'01ffff' WHERE number = 3",
        "DELETE FROM meta WHERE key = 'facts'",
        "UPDATE meta SET value = '{' WHERE key = 'layout'",
        "DELETE FROM events WHERE number = 2",
    ],
)
def test_a_damaged_row_is_named_as_damage(run, statement):
    change(run, statement)
    with pytest.raises(StoreError, match="damaged or cut short"):
        open_history(run)


# --- runs that cannot be written -----------------------------------------------------------------


def test_a_folder_in_use_is_refused(run):
    with pytest.raises(StoreError, match=r"not empty; found run\.db, scenario\.yaml"):
        RunStore.create(run, facts(), "")


FILLS_UP = """
import resource, sys
from pathlib import Path
from tritonchaos.errors import StoreError
from tritonchaos.store import RunStore
from tests.synthetic_runs import facts, record_cycles

store = RunStore.create(Path(sys.argv[1]), facts(), "")
record_cycles(store, 5)
# No file may grow beyond this; the kernel answers EFBIG, as a full disk answers ENOSPC.
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
try:
    record_cycles(store, 5000)
except StoreError as error:
    print(error.message, error.hint, sep="|")
for attempt in (store.commit, lambda: store.finish(False)):
    try:
        attempt()
    except StoreError as error:
        print("again")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
try:
    store.close()
except StoreError:
    print("closed")
"""


def test_a_full_disk_is_an_error_with_a_hint_and_what_was_committed_stays(tmp_path):
    assert resource.RLIMIT_FSIZE is not None
    shown = subprocess.run(
        [sys.executable, "-c", FILLS_UP, tmp_path / "run"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout.splitlines()
    assert shown[0].startswith(f"cannot write {tmp_path / 'run' / 'run.db'}: ")
    assert shown[0].endswith("|free disk space, or choose another folder with --out")
    assert shown[1:] == ["again", "again", "closed"]
    history = open_history(tmp_path / "run")
    assert history.interrupted
    assert len(history.events) >= 5 * 9
    assert len(history.events) % 9 == 0
