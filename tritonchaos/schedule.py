"""What a scenario does, step by step: lazy, and random only by its seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, Final, Literal

from tritonchaos.observations import Arm, Expectation, Position, StepSpec
from tritonchaos.scenario import ArmSteps, Phase, Scenario, StepEntry, TrackEntry
from tritonchaos.scenario.plugin_forms import fields_set
from tritonchaos.units import format_seconds

MAIN_TRACK: Final = "main"
_COIN_TRACK: Final = "coin"
_CYCLES_DESCRIBED: Final = 3


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """A step at its position, with what is expected of it."""

    position: Position
    step: Any
    spec: StepSpec
    seed: int

    def random(self) -> Random:
        """Random numbers of this very step: the same in each run with this seed, whatever ran before."""
        return _random(self.seed, self.position)


@dataclass(frozen=True, slots=True)
class Cycle:
    """One round of a phase.

    Attributes:
        number: From 0 within the phase, over both arms, warm-up cycles first.
        steps: In coin-ordered pairs these begin with the other arm's `after` and this arm's `before` where the arm
            changes.
    """

    number: int
    arm: Arm
    is_warm_up: bool
    steps: tuple[ScheduledStep, ...]


@dataclass(frozen=True, slots=True)
class ScheduledTrack:
    """Steps that are repeated beside the main track; `entry` says by how many workers, how often and how long."""

    name: str
    entry: TrackEntry
    phase: str
    arm: Arm | None
    seed: int

    def iteration(self, number: int) -> tuple[ScheduledStep, ...]:
        """Steps of one round, counted from 0; the round stands in `Position.cycle`."""
        place = _Place(self.seed, self.phase, self.arm, number, self.name)
        return tuple(place.steps(self.entry.each))


@dataclass(frozen=True, slots=True)
class ScheduledPhase:
    """One phase of the schedule.

    Attributes:
        kind: "cycles", or "steps" for plain steps once.
        arm: None for plain steps and for coin-ordered pairs.
        when: The phase is run only after this was seen.
        at_least, at_most: Judged cycles; in coin-ordered pairs, treatment cycles. 0 for plain steps.
        until: What can end the cycles before `at_most`.
        warm_up_cycles: Cycles in front that are not judged; in coin-ordered pairs over both arms.
    """

    name: str
    kind: Literal["cycles", "steps"]
    arm: Arm | None
    when: Literal["leak", "crash", "hang"] | None
    at_least: int
    at_most: int
    until: Literal["verdict", "flat"] | None
    warm_up_cycles: int
    tracks: tuple[ScheduledTrack, ...]
    seed: int
    phase: Phase

    def before(self) -> Iterator[ScheduledStep]:
        """Steps once before the first cycle; coin-ordered pairs have them in their cycles."""
        return self._place(self.arm).steps(self.phase.before)

    def steps(self) -> Iterator[ScheduledStep]:
        """Steps of a phase of plain steps."""
        return self._place(None).steps(self.phase.steps)

    def after(self, last_arm: Arm | None = None) -> Iterator[ScheduledStep]:
        """Steps once after the last cycle; their numbers go on from those of `before`.

        Args:
            last_arm: In coin-ordered pairs, the arm of the last cycle that was run; None: all cycles were run.
        """
        if self.phase.arms is None:
            return self._place(self.arm).steps(self.phase.after, len(self.phase.before))
        arm = last_arm or self._arm_of(self.warm_up_cycles + 2 * self.at_most - 1)
        return self._place(arm).steps(self._of(arm).after)

    def cycles(self) -> Iterator[Cycle]:
        """All cycles that may be run, made one by one."""
        if self.kind == "steps":
            return
        arms = 1 if self.phase.arms is None else 2
        previous: Arm | None = None
        for number in range(self.warm_up_cycles + arms * self.at_most):
            arm = self._arm_of(number)
            entries = self._entries(arm, previous)
            steps = tuple(self._place(arm, number).steps(entries))
            yield Cycle(number, arm, number < self.warm_up_cycles, steps)
            previous = arm

    def is_last(self, cycle: Cycle) -> bool:
        """Say whether no cycle can come after this one."""
        return cycle.number + 1 >= self.warm_up_cycles + self.at_most * (1 if self.phase.arms is None else 2)

    def _place(self, arm: Arm | None, cycle: int | None = None) -> _Place:
        return _Place(self.seed, self.name, arm, cycle, MAIN_TRACK)

    def _entries(self, arm: Arm, previous: Arm | None) -> Sequence[StepEntry]:
        if self.phase.arms is None:
            return self.phase.each
        own = self._of(arm)
        if arm is previous:
            return own.each
        left = self._of(previous).after if previous is not None else ()
        return (*left, *own.before, *own.each)

    def _of(self, arm: Arm) -> ArmSteps:
        assert self.phase.arms is not None
        return self.phase.arms.control if arm is Arm.CONTROL else self.phase.arms.treatment

    def _arm_of(self, number: int) -> Arm:
        """Arm of a cycle: the phase's own, or in pairs the warm-up cycles by turns and then as the coin says."""
        if self.arm is not None:
            return self.arm
        if number < self.warm_up_cycles:
            return (Arm.CONTROL, Arm.TREATMENT)[number % 2]
        is_second = (number - self.warm_up_cycles) % 2
        coin = Position(self.name, None, number - is_second, _COIN_TRACK, 0)
        control_first = _random(self.seed, coin).random() < 0.5
        return Arm.CONTROL if control_first is not bool(is_second) else Arm.TREATMENT


@dataclass(frozen=True, slots=True)
class Schedule:
    """All phases of a scenario, in order."""

    scenario: str
    seed: int
    phases: tuple[ScheduledPhase, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A cycle or block that steps are numbered in."""

    seed: int
    phase: str
    arm: Arm | None
    cycle: int | None
    track: str

    def steps(self, entries: Iterable[StepEntry], first: int = 0) -> Iterator[ScheduledStep]:
        for number, entry in enumerate(entries, first):
            position = Position(self.phase, self.arm, self.cycle, self.track, number)
            yield ScheduledStep(position, entry.step, entry.spec, self.seed)


def _random(seed: int, position: Position) -> Random:
    at = position
    return Random(f"{seed}/{at.phase}/{at.track}/{at.cycle}/{at.step_number}")


def expand(scenario: Scenario) -> Schedule:
    """Turn a scenario into its schedule; nothing is made before it is asked for, and nothing depends on the machine."""
    phases = tuple(_phase(phase, scenario.seed) for phase in scenario.phases)
    return Schedule(scenario.scenario, scenario.seed, phases)


def _phase(phase: Phase, seed: int) -> ScheduledPhase:
    cycles = phase.cycles
    arm = None if cycles is None or phase.arms is not None else phase.arm or Arm.TREATMENT
    return ScheduledPhase(
        name=phase.phase,
        kind="steps" if cycles is None else "cycles",
        arm=arm,
        when=phase.when,
        at_least=cycles.at_least if cycles else 0,
        at_most=cycles.at_most if cycles else 0,
        until=cycles.until if cycles else None,
        warm_up_cycles=phase.warm_up_cycles,
        tracks=tuple(ScheduledTrack(track.track, track, phase.phase, arm, seed) for track in phase.meanwhile),
        seed=seed,
        phase=phase,
    )


# --- for people ----------------------------------------------------------------------------------


def describe(schedule: Schedule) -> Iterator[str]:
    """Print a schedule line by line: the first cycles of each phase, and how many may follow."""
    yield f"scenario {schedule.scenario}, seed {schedule.seed}"
    for phase in schedule.phases:
        yield ""
        yield _headline(phase)
        for track in phase.tracks:
            yield from _block(f"meanwhile {track.name}, {_how_long(track.entry)}", track.iteration(0))
        yield from _block("before", phase.before())
        yield from _block("steps", phase.steps())
        yield from _first_cycles(phase)
        yield from _block(_after_title(phase), phase.after() if phase.kind == "cycles" else ())


def _how_long(track: TrackEntry) -> str:
    rate = f"{track.rate:g} times a second" if track.rate is not None else "again and again"
    parts = [rate if track.workers == 1 else f"{rate} by {track.workers} workers"]
    if track.start is not None:
        after = f"{format_seconds(track.start.offset_s)} after " if track.start.offset_s else "when "
        parts.append(f"from {after}step {track.start.step} of {track.start.track} has {track.start.when}")
    if track.stop.times is not None:
        parts.append(f"{track.stop.times} times")
    else:
        is_timed = track.stop.after_s is not None
        parts.append(f"for {format_seconds(track.stop.after_s or 0)}" if is_timed else "until the phase is done")
    return ", ".join(parts)


def _headline(phase: ScheduledPhase) -> str:
    parts = [f"phase {phase.name}: {_size(phase)}"]
    if phase.warm_up_cycles:
        parts.append(f"{phase.warm_up_cycles} warm-up cycles in front")
    if phase.when:
        parts.append(f"only after a {phase.when}")
    return ", ".join(parts)


def _size(phase: ScheduledPhase) -> str:
    if phase.kind == "steps":
        return "steps"
    is_fixed = phase.at_least == phase.at_most
    count = f"{phase.at_most}" if is_fixed else f"{phase.at_least} to {phase.at_most}"
    until = f" until {phase.until}" if phase.until else ""
    what = f"{phase.arm.value} cycles" if phase.arm else "pairs of a control and a treatment cycle"
    return f"{count} {what}{until}"


def _after_title(phase: ScheduledPhase) -> str:
    return "after" if phase.arm else "after, if all cycles were run"


def _first_cycles(phase: ScheduledPhase) -> Iterator[str]:
    shown = 0
    for cycle in islice(phase.cycles(), _CYCLES_DESCRIBED):
        kind = ", warm-up" if cycle.is_warm_up else ""
        yield from _block(f"cycle {cycle.number} ({cycle.arm.value}{kind})", cycle.steps)
        shown += 1
    total = phase.warm_up_cycles + phase.at_most * (1 if phase.arm else 2)
    if phase.kind == "cycles" and total > shown:
        yield f"  … and so on, up to {total} cycles"


def _block(title: str, steps: Iterable[ScheduledStep]) -> Iterator[str]:
    for number, scheduled in enumerate(steps):
        if number == 0:
            yield f"  {title}"
        yield f"    {scheduled.position.step_number:>3}  {_told(scheduled)}"


def _told(scheduled: ScheduledStep) -> str:
    spec = scheduled.spec
    fields = [f"{name}={json.dumps(value)}" for name, value in fields_set(scheduled.step).items() if name != "model"]
    limit = f"(at most {spec.deadline_s:g} s)"
    undocumented = "[undocumented]" if spec.undocumented else ""
    return " ".join(part for part in (spec.label(), *fields, _expected(spec.expect), limit, undocumented) if part)


def _expected(expect: Expectation) -> str:
    if expect.kind != "fields":
        return "" if expect.kind == "ok" else f"-> {expect.kind}"
    parts = [f"status {' or '.join(map(str, expect.status))}"] if expect.status else []
    parts += [f"error /{expect.error}/"] if expect.error else []
    parts += [f"within {format_seconds(expect.within_s)}"] if expect.within_s is not None else []
    parts += [f"{model} {state}" for model, state in expect.state.items()]
    parts += [f"reason /{expect.reason}/"] if expect.reason else []
    parts += ["outputs match"] if expect.outputs else []
    return f"-> {', '.join(parts)}"
