"""The scenario file: read, checked, and told apart from what is wrong with it; pure."""

from __future__ import annotations

from tritonchaos.scenario.entries import CheckEntry, Families, StepEntry, TargetEntry
from tritonchaos.scenario.parsing import json_schema, load_scenario, parse_scenario
from tritonchaos.scenario.plugin_forms import build_plugin
from tritonchaos.scenario.records import (
    Arms,
    ArmSteps,
    Cycles,
    KnownEntry,
    ModelEntry,
    Phase,
    SampleOptions,
    Scenario,
    ServerOptions,
    TrackEntry,
)

__all__ = [
    "ArmSteps",
    "Arms",
    "CheckEntry",
    "Cycles",
    "Families",
    "KnownEntry",
    "ModelEntry",
    "Phase",
    "SampleOptions",
    "Scenario",
    "ServerOptions",
    "StepEntry",
    "TargetEntry",
    "TrackEntry",
    "build_plugin",
    "json_schema",
    "load_scenario",
    "parse_scenario",
]
