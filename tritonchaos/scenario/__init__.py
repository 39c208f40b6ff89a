"""The scenario file: read, checked, and told apart from what is wrong with it; pure."""

from __future__ import annotations

from tritonchaos.scenario.check_list import parse_checks
from tritonchaos.scenario.entries import (
    CheckEntry,
    Entry,
    Families,
    RepeatEntry,
    StepEntry,
    TargetEntry,
    TogetherEntry,
)
from tritonchaos.scenario.model_entry import ModelEntry
from tritonchaos.scenario.parsing import json_schema, load_scenario, parse_scenario
from tritonchaos.scenario.plugin_forms import build_plugin
from tritonchaos.scenario.records import (
    Arms,
    ArmSteps,
    Cycles,
    KnownEntry,
    Phase,
    SampleOptions,
    Scenario,
    TrackEntry,
)
from tritonchaos.scenario.server_options import PhaseServer, ServerOptions

__all__ = [
    "ArmSteps",
    "Arms",
    "CheckEntry",
    "Cycles",
    "Entry",
    "Families",
    "KnownEntry",
    "ModelEntry",
    "Phase",
    "PhaseServer",
    "RepeatEntry",
    "SampleOptions",
    "Scenario",
    "ServerOptions",
    "StepEntry",
    "TargetEntry",
    "TogetherEntry",
    "TrackEntry",
    "build_plugin",
    "json_schema",
    "parse_checks",
    "load_scenario",
    "parse_scenario",
]
