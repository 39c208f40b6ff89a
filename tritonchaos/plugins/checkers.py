"""Checkers, and the stopping rule that one may offer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tritonchaos.observations import Follower, History
from tritonchaos.verdict import Assessment

if TYPE_CHECKING:
    from tritonchaos.post_unload import CycleReading

from tritonchaos.plugins.naming import Named


class Advice(str, Enum):
    """What a stopping rule says after a cycle.

    DOUBLE_LOADS: nothing moved for a while; a phase with `amplify` then loads twice as often before each reading.
    """

    GO_ON = "go_on"
    DOUBLE_LOADS = "double_loads"
    ENOUGH = "enough"


class Watch(Protocol):
    """A checker's stopping rule, fed one cycle at a time, live and again offline.

    Attributes:
        has_leak: What was seen so far is a leak; phases with `when: leak` are run.
    """

    @property
    def has_leak(self) -> bool: ...

    def see(self, reading: CycleReading) -> Advice: ...


class Checker(Named, Protocol):
    """Judges a history; pure. One that offers `watch() -> Watch` can end a phase (see `Watches`)."""

    def check(self, history: History) -> Sequence[Assessment]: ...


@runtime_checkable
class Watches(Protocol):
    """A checker that can say when the evidence is in."""

    def watch(self, uses_gpu: bool, metrics: Sequence[str], amplified: Collection[str] = ()) -> Watch:
        """Return a new stopping rule.

        Args:
            uses_gpu: A variant that needs a GPU was served.
            metrics: Metrics to judge; empty: the checker's own choice.
            amplified: Phases whose cycles may do their steps more than once before they are read.
        """


@runtime_checkable
class Follows(Protocol):
    """A checker that walks over all events; it says with what, so that all walk together."""

    def followers(self) -> Mapping[str, Callable[[], Follower]]: ...
