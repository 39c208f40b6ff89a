"""Reporters, and who takes events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tritonchaos.observations import Event

if TYPE_CHECKING:
    from tritonchaos.summary import FinishedRun

from tritonchaos.plugins.naming import Named


class Reporter(Named, Protocol):
    """Prints what `summary` computed, computes nothing."""

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        """Write into the run directory and return what was written."""


class Recorder(Protocol):
    """Takes events in order; the store behind it decides when they are safe on disk."""

    def record(self, event: Event) -> None: ...
