"""What was seen during a run: replies, events, readings, and the history they make up."""

from __future__ import annotations

from tritonchaos.observations.chosen_readings import ChosenReadings, pick
from tritonchaos.observations.cycle_readings import CycleReading
from tritonchaos.observations.cycle_table import CycleKind, CycleTable, SeenCycle
from tritonchaos.observations.events import (
    CycleFinished,
    CycleStarted,
    Event,
    EventT,
    Evidence,
    Left,
    MetricLost,
    ModelState,
    Note,
    PhaseSkipped,
    PhaseStopped,
    Probe,
    Reading,
    ServerExited,
    ServerStarted,
    ServerStopped,
    SettleWindow,
    StepFinished,
    TrafficSummary,
)
from tritonchaos.observations.following import Follower
from tritonchaos.observations.history import History, PhaseFacts, RunFacts
from tritonchaos.observations.replies import Answer, Arm, Expectation, JsonValue, NoAnswer, Position, Reply, StepSpec

__all__ = [
    "Answer",
    "Arm",
    "ChosenReadings",
    "CycleFinished",
    "CycleKind",
    "CycleReading",
    "CycleStarted",
    "CycleTable",
    "Event",
    "EventT",
    "Evidence",
    "Expectation",
    "Follower",
    "History",
    "JsonValue",
    "Left",
    "MetricLost",
    "ModelState",
    "NoAnswer",
    "Note",
    "PhaseFacts",
    "PhaseSkipped",
    "PhaseStopped",
    "Position",
    "Probe",
    "Reading",
    "Reply",
    "RunFacts",
    "SeenCycle",
    "ServerExited",
    "ServerStarted",
    "ServerStopped",
    "SettleWindow",
    "StepFinished",
    "StepSpec",
    "TrafficSummary",
    "pick",
]
