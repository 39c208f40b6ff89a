"""Walking a run's events once for many who want to see them: decoding them is what takes the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from tritonchaos.observations.events import Event


class Follower(Protocol):
    """Sees the events of a run one after the other and keeps what it needs of them.

    Attributes:
        kinds: The kinds of events that it wants to see.
    """

    @property
    def kinds(self) -> tuple[type, ...]: ...

    def see(self, event: Any) -> object: ...


FollowerT = TypeVar("FollowerT", bound=Follower)


@runtime_checkable
class EventsByKind(Protocol):
    """Events of which those of some kinds can be had without making all the others."""

    def of_kinds(self, kinds: tuple[type, ...]) -> Iterator[Event]: ...


def of_kinds(events: Sequence[Event], kinds: tuple[type, ...]) -> Iterator[Event]:
    """Yield the events of some kinds, in order."""
    if isinstance(events, EventsByKind):
        return events.of_kinds(kinds)
    return (event for event in events if isinstance(event, kinds))


def walk(events: Sequence[Event], followers: Sequence[Follower]) -> None:
    """Show each follower the events of its kinds, in order."""
    sees: dict[type, list[Callable[[Event], object]]] = {}
    for follower in followers:
        for kind in follower.kinds:
            sees.setdefault(kind, []).append(follower.see)
    for event in of_kinds(events, tuple(sees)):
        for see in sees[type(event)]:
            see(event)
