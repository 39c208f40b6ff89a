"""Every command that reads a run directory says what is none, damaged, newer, cut short or killed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import make_facts
from tests.in_process import tritonchaos
from tests.kept_runs import FORMAT_1, copy_of
from tests.synthetic_runs import Machine, cycle_events, facts
from tritonchaos.store import RunStore

COMMANDS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "judge": lambda run: ("judge", run),
    "judge-checks": lambda run: ("judge", run, "--checks", "hang"),
    "report": lambda run: ("report", run, "--report", "junit,sarif,ctrf,github"),
    "show": lambda run: ("show", run),
    "show-cycle": lambda run: ("show", run, "--cycle", "0"),
    "export": lambda run: ("export", run, "--out", "exported"),
    "compare": lambda run: ("compare", run, run),
}


def nothing(folder: Path) -> None:
    shutil.rmtree(folder)


def no_run(folder: Path) -> None:
    (folder / "run.db").unlink()


def not_a_database(folder: Path) -> None:
    (folder / "run.db").write_text(
        "this is no database at all, whatever its name says; it is as long as a header of one"
    )


def cut_short(folder: Path) -> None:
    (folder / "run.db").write_bytes((folder / "run.db").read_bytes()[:30_000])


def damaged_in_the_middle(folder: Path) -> None:
    content = bytearray((folder / "run.db").read_bytes())
    content[33_000:40_000] = b"\xa5" * 7_000  # pages of the table `events`
    (folder / "run.db").write_bytes(bytes(content))


def damaged_in_its_facts(folder: Path) -> None:
    content = bytearray((folder / "run.db").read_bytes())
    content[20_000:28_000] = b"\xa5" * 8_000  # pages of the table `meta`
    (folder / "run.db").write_bytes(bytes(content))


def newer(folder: Path) -> None:
    with sqlite3.connect(folder / "run.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'format_version'")
    database.close()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (nothing, "there is no folder"),
        (no_run, "run"),
        (not_a_database, "is not a database that tritonchaos wrote"),
        (cut_short, "is damaged or cut short"),
        (damaged_in_the_middle, "damaged"),
        (damaged_in_its_facts, "cannot read format-1"),
        (newer, "written by a newer tritonchaos; found format 99"),
    ],
)
def test_what_is_no_run_is_told_by_every_command(
    command: str, spoil: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    folder = copy_of(FORMAT_1, tmp_path)
    spoil(folder)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    done = tritonchaos(*COMMANDS[command]("format-1"), cwd=tmp_path)
    assert done.returncode == 2, done
    assert message in done.stderr
    assert "hint: " in done.stderr
    assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.rglob("*")) == before, "nothing is written"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_that_was_killed_is_read_as_far_as_it_got(command: str, tmp_path: Path) -> None:
    with RunStore.create(
        tmp_path / "running", facts(checks=(("server_alive", {}),)), "scenario: failed-load\n"
    ) as store:
        machine = Machine(1)
        for cycle in range(3):
            for event in cycle_events(machine, cycle):
                store.record(event)
            store.commit()
        # What a kill leaves: the database with its journal, and no end mark.
        shutil.copytree(tmp_path / "running", tmp_path / "killed")
    assert (tmp_path / "killed" / "run.db-wal").stat().st_size > 0
    done = tritonchaos(*COMMANDS[command]("killed"), cwd=tmp_path)
    assert done.returncode == {"judge": 130, "judge-checks": 130, "compare": 3}.get(command, 0), done
    if command == "show-cycle":
        assert done.stdout.startswith("wrong, cycle 0 (treatment)")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_without_a_cycle_is_no_error(command: str, tmp_path: Path) -> None:
    checked = replace(make_facts(), checks=(("memory_growth", {}), ("server_alive", {})))
    with RunStore.create(tmp_path / "empty", checked, "scenario: failed-load\n") as store:
        store.finish(interrupted=False)
    done = tritonchaos(*COMMANDS[command]("empty"), cwd=tmp_path)
    expected = {"judge": 3, "judge-checks": 3, "compare": 3, "show-cycle": 2}
    assert done.returncode == expected.get(command, 0), done


def test_while_a_run_goes_on_it_is_told_whose_it_is(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "running", make_facts(), "scenario: s\n") as store:
        store.commit()
        for command in COMMANDS.values():
            done = tritonchaos(*command("running"), cwd=tmp_path)
            assert done.returncode == 2
            assert "is still going on as process" in done.stderr
