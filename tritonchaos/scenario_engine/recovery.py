"""Starts the server again after a crash or a hang, so that the run can go on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tritonchaos.errors import TargetError
from tritonchaos.observations import Note
from tritonchaos.scenario_engine.interrupt import Interrupt
from tritonchaos.scenario_engine.journal import Journal
from tritonchaos.scenario_engine.parts import EngineParts, Outcome
from tritonchaos.scenario_engine.server import ServerLife
from tritonchaos.scenario_engine.stepping import Track
from tritonchaos.schedule import ScheduledStep

_CHANGE_FILES: Final = frozenset({"edit_config", "put_file", "delete_file", "add_version", "restore"})
_BREAKS: Final = frozenset({"crash", "hang"})


class Recovery:
    """Restarts, at most as often as the run allows, and never after the user asked for an end.

    Args:
        outcome: Counts the restarts.
    """

    def __init__(
        self, server: ServerLife, parts: EngineParts, journal: Journal, interrupt: Interrupt, outcome: Outcome
    ) -> None:
        self._server = server
        self._parts = parts
        self._journal = journal
        self._interrupt = interrupt
        self._outcome = outcome
        self._gave_up = False

    def restart(self, main: Track, reason: str, left: Iterable[ScheduledStep]) -> bool:
        """Stop what is left of the server and start it again; False: the run cannot go on.

        Args:
            main: The main track; it talks to the new server afterwards.
            left: Steps that the break has skipped; those that change files are applied, so that the repository is
                what the schedule says. What should be loaded is left to the steps that follow.
        """
        if reason not in _BREAKS or self._interrupt.is_asked or not self._may_restart():
            return False
        self._server.stop()
        for scheduled in left:
            if scheduled.spec.name in _CHANGE_FILES:
                main.apply(scheduled)
        try:
            self._server.start()
        except TargetError as error:
            self._give_up(f"the server could not be started again after a {reason}: {error.message}")
            return False
        self._outcome.restarts += 1
        main.renew_client()
        self._parts.commit()
        return True

    def _may_restart(self) -> bool:
        if self._gave_up or not self._server.can_restart:
            return False
        if self._outcome.restarts >= self._parts.restarts_at_most:
            self._give_up(f"the server was started again {self._outcome.restarts} times, and not once more")
        return not self._gave_up

    def _give_up(self, why: str) -> None:
        self._gave_up = True
        self._journal.record(Note(self._journal.now_ns(), why))
