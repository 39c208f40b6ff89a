"""The plug-in points: protocols, the workbench that steps touch, registries, and how plug-ins are found."""

from __future__ import annotations

from tritonchaos.plugins.checkers import Advice, Checker, Watch, Watches
from tritonchaos.plugins.loading import load_plugins
from tritonchaos.plugins.naming import ByteCount, Contract, Named, Seconds
from tritonchaos.plugins.registry import (
    CHECKERS,
    FAMILIES,
    MISSING,
    REPORTERS,
    SAMPLERS,
    STEPS,
    TARGETS,
    MissingPlugin,
    Registry,
)
from tritonchaos.plugins.reporters import Recorder, Reporter
from tritonchaos.plugins.samplers import Group, HasCapacities, Sampler, SampleScope
from tritonchaos.plugins.steps import Readings, ServerControl, Step, Workbench, needs_of, ways_of
from tritonchaos.plugins.targets import (
    ABILITIES,
    HasAbilities,
    HasOwnModels,
    HasProcesses,
    HasRepositoryPlace,
    HasStacks,
    Killable,
    LaunchSpec,
    MayVanish,
    RepositoryPlace,
    RunningServer,
    ServerSettings,
    Stop,
    Target,
    abilities_of,
    repository_place,
)

__all__ = [
    "ABILITIES",
    "Advice",
    "ByteCount",
    "CHECKERS",
    "Checker",
    "Contract",
    "FAMILIES",
    "Group",
    "HasAbilities",
    "HasCapacities",
    "HasOwnModels",
    "HasProcesses",
    "HasRepositoryPlace",
    "HasStacks",
    "Killable",
    "LaunchSpec",
    "MISSING",
    "MayVanish",
    "MissingPlugin",
    "Named",
    "REPORTERS",
    "Readings",
    "Recorder",
    "Registry",
    "Reporter",
    "RepositoryPlace",
    "RunningServer",
    "SAMPLERS",
    "STEPS",
    "SampleScope",
    "Sampler",
    "Seconds",
    "ServerControl",
    "ServerSettings",
    "Step",
    "Stop",
    "TARGETS",
    "Target",
    "Watch",
    "Watches",
    "Workbench",
    "abilities_of",
    "load_plugins",
    "needs_of",
    "ways_of",
    "repository_place",
]
