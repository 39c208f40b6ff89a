"""What a scenario does, step by step: lazy, and random only by its seed."""

from __future__ import annotations

from tritonchaos.schedule.describing import describe
from tritonchaos.schedule.expansion import RestartFresh, expand
from tritonchaos.schedule.numbering import MAIN_TRACK, Scheduled, ScheduledStep, ScheduledTogether, plain
from tritonchaos.schedule.phases import Cycle, Schedule, ScheduledPhase, ScheduledTrack

__all__ = [
    "MAIN_TRACK",
    "Cycle",
    "RestartFresh",
    "Schedule",
    "Scheduled",
    "ScheduledPhase",
    "ScheduledStep",
    "ScheduledTogether",
    "ScheduledTrack",
    "describe",
    "expand",
    "plain",
]
