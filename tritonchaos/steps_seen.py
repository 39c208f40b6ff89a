"""Steps of a run, found without looking at all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from tritonchaos.observations import Arm, History, Position, StepFinished
from tritonchaos.post_unload import cycle_table

_UNDOCUMENTED: Final = "undocumented steps"


class _Undocumented:
    """Collects the arms in which a step went outside Triton's documented rules; None is outside of arms."""

    kinds: ClassVar[tuple[type, ...]] = (StepFinished,)

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self.kept = 0
        self.arms: frozenset[Arm | None] = frozenset()

    def see(self, step: StepFinished) -> None:
        """Take the next step."""
        if step.spec.undocumented and step.position.arm not in self.arms:
            self.arms |= {step.position.arm}

    def state(self) -> frozenset[Arm | None]:
        """Return the arms."""
        return self.arms

    def resume(self, state: frozenset[Arm | None]) -> None:
        """Go on from there."""
        self.arms = state


def has_undocumented(history: History, arm: Arm | None = None) -> bool:
    """Say whether a step went outside Triton's documented rules.

    Args:
        arm: One of this arm; None: any.
    """
    arms = history.followed(_UNDOCUMENTED, _Undocumented).arms
    return bool(arms) if arm is None else arm in arms


def steps_at(history: History, position: Position | None) -> Iterator[StepFinished]:
    """Yield the steps that were recorded at a position, in order."""
    if position is None:
        return
    stretches = history.stretches
    if stretches is None or position.track != "main":
        yield from (step for step in history.of(StepFinished) if step.position == position)
        return
    table = cycle_table(history)
    places = {table.stretches[place] for place in table.places_of(position.phase, position.cycle)}
    for at in sorted(places.union(stretches.unlike)):
        for event in stretches.events(at):
            if isinstance(event, StepFinished) and event.position == position:
                yield event
