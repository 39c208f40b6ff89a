"""The scenario engine: walks a schedule against a real server and records what happens; it never judges."""

from __future__ import annotations

from tritonchaos.scenario_engine.engine import walk
from tritonchaos.scenario_engine.interrupt import Interrupt
from tritonchaos.scenario_engine.parts import EngineParts, Outcome

__all__ = ["EngineParts", "Interrupt", "Outcome", "walk"]
