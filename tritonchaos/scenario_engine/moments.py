"""Tells a track that the step it waits for is about to be applied, or has been."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tritonchaos.observations import Position, StepSpec
from tritonchaos.scenario.track_rules import StartRule


class Moments:
    """Hears of every step of every track; costs nothing where no track waits for one."""

    def __init__(self) -> None:
        self._waiting: tuple[tuple[StartRule, Callable[[], None]], ...] = ()

    @contextmanager
    def watched(self, rule: StartRule, happened: Callable[[], None]) -> Iterator[None]:
        """Call `happened`, in the thread of the step, each time while the block lasts."""
        entry = (rule, happened)
        self._waiting = (*self._waiting, entry)
        try:
            yield
        finally:
            self._waiting = tuple(other for other in self._waiting if other is not entry)

    def tell(self, position: Position, spec: StepSpec, when: str) -> None:
        """A step is about to be applied ("started"), or has been ("finished")."""
        for rule, happened in self._waiting:
            if rule.is_met_by(position.track, position.step_number, spec, when):
                happened()
