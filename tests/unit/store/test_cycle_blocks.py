"""What the columns say of a run is what its events say, and to skim over it is as good as to walk."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import CONTROL, TREATMENT
from tests.kept_runs import RUNS
from tritonchaos.cycle_reader import read_cycles
from tritonchaos.errors import StoreError
from tritonchaos.judging import judge_history
from tritonchaos.observations import (
    Answer,
    Arm,
    CycleFinished,
    CycleStarted,
    Event,
    Expectation,
    History,
    ModelState,
    NoAnswer,
    Note,
    PhaseFacts,
    Position,
    Probe,
    Reading,
    RunFacts,
    ServerExited,
    ServerStarted,
    ServerStopped,
    SettleWindow,
    StepFinished,
    StepSpec,
)
from tritonchaos.plugins import load_plugins
from tritonchaos.post_unload import cycle_table, follow_cycles
from tritonchaos.reporters import markdown
from tritonchaos.reporters.results_json import dump
from tritonchaos.steps_seen import has_undocumented, steps_at
from tritonchaos.store import RunStore, open_history, read_facts

load_plugins()
CHECKS = (
    "memory_growth",
    "returns_to_baseline",
    "server_alive",
    "hang",
    "expectations",
    "index_consistent",
    "leftovers",
    "latency",
)
LOAD = StepSpec("load", "ident", {"model": "ident"}, Expectation(within_s=0.5), 1.0, record="load")
BAD_LOAD = StepSpec("load", "ident", {"model": "ident"}, Expectation("fields", error="unexpected"), 1.0)
UNLOAD = StepSpec("unload", "ident", {"model": "ident"}, Expectation(), 1.0)
ODD = StepSpec("request", None, {"path": "x"}, Expectation("any"), 1.0, undocumented=True)
READY, GONE = (ModelState("ident", "1", "READY", ""),), (ModelState("ident", "1", "UNAVAILABLE", "unloaded"),)


def run_facts(**changes: object) -> RunFacts:
    phases = (PhaseFacts("good", Arm.CONTROL, "cycles", 400), PhaseFacts("mixed", None, "cycles", 900))
    facts = RunFacts(
        "run", "0.1.0", "mixed", 1, "2026-01-01T00:00:00Z", {"target": "local", "triton_version": "2.51.0"}, (), {},
        False, {}, 3, phases, tuple((name, {}) for name in CHECKS),
    )  # fmt: skip
    return replace(facts, **changes)


class Story:
    """A run in which nearly everything happens that tells cycles apart, at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.t_ns = 0
        self.start_number = 1
        self.level = 1 << 24

    def now(self) -> int:
        self.t_ns += self.random.randint(1, 1_000_000)
        return self.t_ns

    def maybe(self, share: float) -> bool:
        return self.random.random() < share

    def start(self) -> list[Event]:
        ready = {"host_private_bytes": 1 << 24, "server_fds": 50}
        started = ServerStarted(self.now(), self.start_number, 7, "http://x", 1)
        return [started, Reading(self.now(), "ready", None, ready)]

    def restart(self, at: Position) -> list[Event]:
        self.start_number += 1
        return [ServerExited(self.now(), at, -11), Note(self.now(), "started again"), *self.start()]

    def step(self, at: Position, spec: StepSpec, reply: Answer | NoAnswer, observed: dict) -> list[Event]:
        began, log = self.now(), self.t_ns // 100
        seen: list[Event] = [StepFinished(at, began, self.now(), spec, reply, observed, log, log + 9)]
        if spec.record:
            seen.append(Reading(self.now(), "record", at, {f"latency_{spec.record}_ns": reply.elapsed_ns}))
        return seen

    def probe(self, at: Position, index: tuple[ModelState, ...]) -> Probe:
        status = 200 if index is READY else 400
        if self.maybe(0.005):
            return Probe(at, self.now(), "ident", None, None, None, None, None)
        return Probe(at, self.now(), "ident", GONE if self.maybe(0.005) else index, status, status, None, None)

    def cycle(self, phase: str, arm: Arm, number: int) -> list[Event]:
        load, unload = (Position(phase, arm, number, "main", at) for at in range(2))
        events: list[Event] = [CycleStarted(self.now(), phase, arm, number, number < 2)]
        if arm is Arm.TREATMENT and self.maybe(0.9):
            events += self.step(load, BAD_LOAD, Answer(400, b'{"error":"unexpected"}', self.random.randint(1, 999)), {})
            events.append(self.probe(load, GONE))
        else:
            took = self.random.randint(600_000_000, 700_000_000) if self.maybe(0.01) else self.random.randint(1, 99_999)
            reply = NoAnswer("deadline", took) if self.maybe(0.01) else Answer(200, b"", took)
            events += self.step(load, LOAD, reply, {"late_ns": took} if self.maybe(0.2) else {})
            events += [self.probe(load, READY), Reading(self.now(), "loaded", load, self.read())]
        if self.maybe(0.003):
            return events + self.restart(load)
        if self.maybe(0.01):
            beside = replace(load, track="beside", cycle=self.random.randint(0, 9))
            events += self.step(beside, UNLOAD, Answer(200, b"", 5), {})
        if self.maybe(0.003):
            events += self.step(replace(unload, step_number=5), ODD, Answer(200, b"", 5), {})
        events += self.step(unload, UNLOAD, Answer(200, b"", 9), {"gone_after_ns": self.random.randint(1, 99)})
        events.append(self.probe(unload, GONE))
        return events + self.ending(phase, arm, number, unload)

    def read(self) -> dict[str, int]:
        self.level += 4096 * self.maybe(0.1)
        values = {"host_private_bytes": self.level + 4096 * self.random.randint(-1, 1), "server_fds": 50}
        return values if self.maybe(0.97) else {"server_fds": 51}

    def ending(self, phase: str, arm: Arm, number: int, at: Position) -> list[Event]:
        events: list[Event] = []
        if self.maybe(0.98):
            read = self.read()
            window = {name: (value, None if self.maybe(0.02) else value, value + 1) for name, value in read.items()}
            settled = frozenset(window) if self.maybe(0.95) else frozenset()
            times = (self.now(), self.now(), self.now())
            events.append(SettleWindow(phase, arm, number, self.start_number, times, window, settled))
        if self.maybe(0.01):
            events.append(Reading(self.now(), "named", at, self.read()))
        events.append(CycleFinished(self.now(), phase, number))
        if self.maybe(0.9):
            fell = {"host_private_bytes": self.level - (1 << 20) * self.maybe(0.05), "server_fds": 50}
            events.append(Reading(self.now(), "before_next", at, fell))
        return events

    def events(self, cycles: int) -> list[Event]:
        found: list[Event] = [Reading(self.now(), "idle", None, {"server_fds": 0}), *self.start()]
        for number in range(cycles):
            phase, arm = ("good", Arm.CONTROL) if number < cycles // 4 else ("mixed", self.random.choice(list(Arm)))
            found += self.cycle(phase, arm, number)
        return [*found, ServerStopped(self.now(), "SIGTERM", 0, False, False, 5)]


def stored(folder: Path, facts: RunFacts, events: Sequence[Event], *, finished: bool = True) -> Path:
    with RunStore.create(folder, facts, "") as store:
        for number, event in enumerate(events):
            store.record(event)
            if number % 50 == 0:
                store.commit()
        if finished:
            store.finish(interrupted=False)
    return folder


def both(folder: Path, events: Sequence[Event] = ()) -> tuple[History, History]:
    """Read a run with all its events in memory, and by what the columns say."""
    skimmed = open_history(folder, most_kept=0)
    assert skimmed.stretches is not None
    walked = replace(skimmed, events=tuple(events or skimmed.events))
    assert walked.stretches is None
    return walked, skimmed


def assert_alike(walked: History, skimmed: History) -> None:
    for one, other in ((walked, skimmed), (skimmed, walked)):
        assert list(cycle_table(one)) == read_cycles(other.events, other.facts.sample_count)
    tables = cycle_table(walked), cycle_table(skimmed)
    for name in {*tables[0].names, *tables[1].names}:
        here, there = ([t.column(name).at(place) for place in range(len(t))] for t in tables)
        assert here == there, name
    fresh, again = judge_history(walked), judge_history(skimmed)
    assert again.verdict == fresh.verdict
    assert dump(again.results) == dump(fresh.results)
    assert markdown.text(again) == markdown.text(fresh)
    assert (again.blocks, again.counts, list(again.rows)) == (fresh.blocks, fresh.counts, list(fresh.rows))
    for kind in {type(event) for event in walked.events}:
        assert list(skimmed.of(kind)) == list(walked.of(kind))
    for arm in (None, CONTROL, TREATMENT):
        assert has_undocumented(skimmed, arm) == has_undocumented(walked, arm)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_in_which_everything_happens(tmp_path: Path, seed: int) -> None:
    events = Story(seed).events(1100)
    folder = stored(tmp_path / "run", run_facts(), events)
    walked, skimmed = both(folder, events)
    assert_alike(walked, skimmed)
    shapes = skimmed.stretches.shapes
    assert 0 < shapes.count(0) < len(shapes) / 4
    assert len(set(shapes)) < len(shapes) / 4
    crashed = [event.position for event in events if isinstance(event, ServerExited)]
    for position in (*crashed, Position("mixed", None, 1099, "main", 1), Position("mixed", TREATMENT, 900, "main", 0)):
        assert list(steps_at(skimmed, position)) == list(steps_at(walked, position))


@pytest.mark.parametrize("kept", [path for path in sorted(RUNS.iterdir()) if path.is_dir()], ids=lambda path: path.name)
def test_a_run_on_a_real_server(tmp_path: Path, kept: Path) -> None:
    events = open_history(kept).events
    folder = stored(tmp_path / "run", read_facts(kept), events)
    (folder / "server.log").write_bytes((kept / "server.log").read_bytes())
    assert_alike(*both(folder, events))


@pytest.mark.parametrize("cycles", [0, 3, 1024, 1060])
def test_a_run_that_was_killed_has_the_cycles_after_the_last_block(tmp_path: Path, cycles: int) -> None:
    events = Story(4).events(cycles)
    folder = stored(tmp_path / "run", run_facts(), events[: len(events) - 2], finished=False)
    with sqlite3.connect(folder / "run.db") as database:
        ((blocks,),) = database.execute("SELECT count(*) FROM cycles").fetchall()
    database.close()
    assert blocks == cycles // 1024  # what came before the first cycle is a stretch too
    assert_alike(*both(folder, events[: len(events) - 2]))


def test_cycles_of_a_run_that_are_all_different_are_read_one_by_one(tmp_path: Path) -> None:
    story = Story(5)
    events = story.start()
    for number in range(200):
        events += story.cycle("mixed", TREATMENT, number)
        events.append(Note(story.now(), f"note {number}"))
    walked, skimmed = both(stored(tmp_path / "run", run_facts(), events), events)
    assert set(skimmed.stretches.shapes) == {0}
    assert_alike(walked, skimmed)


def test_a_run_whose_cycles_are_hardly_alike_is_kept_in_memory(tmp_path: Path) -> None:
    story = Story(8)
    cycles = [story.cycle("mixed", TREATMENT, number) for number in range(2700)]
    different = [[*events, Note(0, "different")] for events in cycles]
    for name, told, are_kept in (("alike", cycles, False), ("different", different, True)):
        events = [event for some in told for event in some]
        assert len(events) > 20_000
        history = open_history(stored(tmp_path / name, run_facts(), events))
        assert (history.stretches is None) is are_kept


class Walker:
    """A follower that says nothing of cycles that are alike."""

    kinds = (StepFinished, CycleStarted)

    def __init__(self) -> None:
        self.seen: list[Event] = []

    def see(self, event: Event) -> None:
        self.seen.append(event)


def test_who_does_not_skim_sees_every_event(tmp_path: Path) -> None:
    events = Story(9).events(60)
    skimmed = open_history(stored(tmp_path / "run", run_facts(), events), most_kept=0)
    skimmed.follow_all({"cycles": lambda: follow_cycles(skimmed), "walker": Walker})
    assert skimmed.followed("walker", Walker).seen == [event for event in events if isinstance(event, Walker.kinds)]


def test_numbers_that_no_column_holds_make_a_cycle_like_no_other(tmp_path: Path) -> None:
    events = [event for number in range(5) for event in Story(6).cycle("mixed", TREATMENT, number)]
    events = [replace(e, t_ns=2**63) if isinstance(e, CycleFinished) and e.cycle == 2 else e for e in events]
    skimmed = open_history(stored(tmp_path / "run", run_facts(), events), most_kept=0)
    assert list(skimmed.stretches.shapes)[2] == 0
    assert [reading.cycle for reading in cycle_table(skimmed)] == [0, 1, 2, 3, 4]


def damage_numbers(database: sqlite3.Connection) -> None:
    database.execute("UPDATE cycles SET packed = substr(packed, 1, length(packed) - 3)")


def shift(database: sqlite3.Connection) -> None:
    database.execute("UPDATE cycles SET first_event = first_event + 1")


def lose_block(database: sqlite3.Connection) -> None:
    database.execute("DELETE FROM cycles WHERE number = 0")


def lose_events(database: sqlite3.Connection) -> None:
    database.execute("DELETE FROM events WHERE number >= 3000")


@pytest.mark.parametrize("damage", [damage_numbers, shift, lose_block, lose_events])
def test_blocks_that_do_not_fit_the_events_are_told(
    tmp_path: Path, damage: Callable[[sqlite3.Connection], None]
) -> None:
    folder = stored(tmp_path / "run", run_facts(), Story(7).events(1500))
    with sqlite3.connect(folder / "run.db") as database:
        damage(database)
    database.close()
    with pytest.raises(StoreError, match="damaged or cut short"):
        judge_history(open_history(folder, most_kept=0))
