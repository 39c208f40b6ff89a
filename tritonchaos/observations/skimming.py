"""Walking a long run without looking at every event: cycles that are alike are looked at once.

A store that knows which cycles are alike offers `Stretches`. What a follower does with a cycle depends on how it stands
before it and on what the cycle is like, so the first of its kind is shown to it and the others are counted.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from tritonchaos.observations.cycle_table import Column, CycleTable
from tritonchaos.observations.events import Event
from tritonchaos.observations.following import Follower, walk

_SHAPE_BITS: Final = 32


class CutEvents(Protocol):
    """The events of a run, cut before each `CycleStarted`; stretch 0 is what comes before the first cycle.

    Attributes:
        shapes: Number of what each stretch is like, shape [stretches]. Stretches of one number differ in nothing but
            stamps, the number of the cycle, times that calls took, byte offsets in the log and values of readings;
            each holds one finished cycle and nothing that is not of its main track. 0: like no other.
    """

    shapes: array[int]

    def check(self) -> None:
        """Make sure that no event was damaged since it was recorded, as most of them will not be looked at."""

    def events(self, at: int) -> Sequence[Event]:
        """Return the events of one stretch."""


@runtime_checkable
class Stretches(CutEvents, Protocol):
    """Those of a stored run, which also says where the numbers of its cycles are."""

    @property
    def unlike(self) -> Iterator[int]:
        """Stretches that are like no other, ascending."""

    @property
    def names(self) -> Sequence[str]:
        """Columns of the cycles that are alike (see `cycle_table`)."""

    def column(self, name: str, others: CycleTable, places: Sequence[int]) -> Column:
        """Return a column of all finished cycles.

        Args:
            others: The finished cycles that are like no other.
            places: The stretches that these are in, ascending.
        """


@runtime_checkable
class HasStretches(Protocol):
    """Events that can say which cycles are alike."""

    @property
    def stretches(self) -> Stretches | None: ...


@runtime_checkable
class Skims(Follower, Protocol):
    """A follower to which cycles that are alike are the same.

    Attributes:
        counts: What it counts; added up for cycles that it is not shown.
    """

    counts: Counter[Any]

    @property
    def kept(self) -> int:
        """How many events, or things about single events, it has kept; where that rises, alike is not the same."""

    def state(self) -> Hashable:
        """Return what decides how it takes the next cycle."""

    def resume(self, state: Any) -> None:
        """Go on from a state that it had."""


@runtime_checkable
class Makes(Protocol):
    """A follower that makes something of each cycle."""

    def made(self) -> Hashable:
        """Return what it made of the cycle that was finished since it was last asked; None if there was none."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a follower made of each stretch.

    Attributes:
        numbers: Places in `values`, shape [stretches].
        values: What was made; may hold the same more than once.
    """

    numbers: array[int]
    values: list[Any]


@dataclass(slots=True)
class _Known:
    """What a cycle of one shape does to all followers in one state."""

    after: int
    made: int
    gained: list[Counter[Any]]
    times: int = 0


@dataclass(slots=True)
class _Numbers:
    """Numbers each different value."""

    values: list[Any] = field(default_factory=list)
    _known: dict[Hashable, int] = field(default_factory=dict)

    def of(self, value: Hashable) -> int:
        number = self._known.get(value)
        if number is None:
            number = self._known[value] = len(self.values)
            self.values.append(value)
        return number


class _Skim:
    """Shows followers what they have not seen alike."""

    def __init__(self, stretches: CutEvents, followers: Sequence[Skims]) -> None:
        self._stretches = stretches
        self._followers = followers
        self._makers = [follower if isinstance(follower, Makes) else None for follower in followers]
        self._told = [getattr(f, "stretch_read", None) for f in followers]
        self._sees: dict[type, list[Callable[[Event], object]]] = {}
        for follower in followers:
            for kind in follower.kinds:
                self._sees.setdefault(kind, []).append(follower.see)
        self.states = _Numbers()
        self.made = _Numbers()
        self.known: dict[int, _Known] = {}
        self._stands_at = self._state()

    def _state(self) -> int:
        return self.states.of(tuple(follower.state() for follower in self._followers))

    def walk(self) -> array[int]:
        """Go over all stretches; return the number of what was made of each."""
        made, state, known = array("I"), self._stands_at, self.known
        for at, shape in enumerate(self._stretches.shapes):
            step = known.get(state << _SHAPE_BITS | shape) if shape else None
            if step is None:
                step = self._read(at, shape, state)
            else:
                step.times += 1
            state = step.after
            made.append(step.made)
        self._resume(state)
        for step in known.values():
            for follower, gained in zip(self._followers, step.gained, strict=True):
                for key, count in gained.items():
                    follower.counts[key] += count * step.times
        return made

    def _resume(self, state: int) -> None:
        if state != self._stands_at:
            for follower, its in zip(self._followers, self.states.values[state], strict=True):
                follower.resume(its)
            self._stands_at = state

    def _read(self, at: int, shape: int, state: int) -> _Known:
        """Show a stretch to all; remember what it did to them if the next of its shape will do the same."""
        self._resume(state)
        before = [(follower.kept, Counter(follower.counts)) for follower in self._followers] if shape else []
        for event in self._stretches.events(at):
            for see in self._sees.get(type(event), ()):
                see(event)
        for told in self._told:
            if told is not None:
                told(at, bool(shape))
        made = self.made.of(tuple(None if maker is None else maker.made() for maker in self._makers))
        self._stands_at = self._state()
        gained = [_gained(was, follower.counts) for follower, (_, was) in zip(self._followers, before, strict=False)]
        step = _Known(self._stands_at, made, gained)
        if shape and all(f.kept == kept for f, (kept, _) in zip(self._followers, before, strict=True)):
            self.known[state << _SHAPE_BITS | shape] = step
        return step


def _gained(before: Counter[Any], after: Counter[Any]) -> Counter[Any]:
    return Counter({key: count - before[key] for key, count in after.items() if count != before[key]})


def skim(stretches: CutEvents, followers: Sequence[Skims]) -> list[Made]:
    """Let followers see a run, and return what each has made of each stretch."""
    stretches.check()
    skimming = _Skim(stretches, followers)
    numbers = skimming.walk()
    return [Made(numbers, [made[number] for made in skimming.made.values]) for number in range(len(followers))]


def follow_all(events: Sequence[Event], known: dict[str, Any], wanted: Mapping[str, Callable[[], Follower]]) -> None:
    """Let those that are not known yet see the run together, and remember them when they have seen everything."""
    new = {key: make() for key, make in wanted.items() if key not in known}
    stretches = events.stretches if isinstance(events, HasStretches) else None
    skimming = {key: one for key, one in new.items() if isinstance(one, Skims)} if stretches is not None else {}
    found: dict[str, Any] = {**new}
    if stretches is not None and skimming:
        made = skim(stretches, list(skimming.values()))
        found.update({made_by(key): one for key, one in zip(skimming, made, strict=True)})
    walking = [follower for key, follower in new.items() if key not in skimming]
    if walking:
        walk(events, walking)
    known.update(found)


def made_by(key: str) -> str:
    """Return the key under which is remembered what a follower made."""
    return f"{key}, made"
