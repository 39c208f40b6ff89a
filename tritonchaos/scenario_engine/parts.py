"""What a walk is given, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tritonchaos.plugins import LaunchSpec, Recorder, Target, Watch
from tritonchaos.repository import ModelRepository
from tritonchaos.sampling import Sampling
from tritonchaos.scenario_engine.journal import Observer
from tritonchaos.scenario_engine.server import Started
from tritonchaos.templates import ServedModel


@dataclass(frozen=True, slots=True)
class EngineParts:
    """Everything outside that a walk needs; made before it, closed after it.

    Attributes:
        commit: Make what was recorded so far safe on disk; called after every cycle.
        uses_gpu: A variant that needs a GPU is served, so that device memory decides `until: flat`.
        watch: The stopping rule for `until: verdict`, if a checker offers one.
        probes: A checker needs index, readiness and metadata after each load and unload.
        started: Called after each start of the server, with metric -> why it cannot be read of it.
        keep_evidence: Keeps a text that is too long for a report, by name; returns its path within the run directory.
        restarts_at_most: How often a server that crashed or hangs is started again.
        skipped_phases: Phase -> why this target leaves it out.
    """

    target: Target
    launch: LaunchSpec
    repository: ModelRepository
    models: Mapping[str, ServedModel]
    sampling: Sampling
    store: Recorder
    commit: Callable[[], None]
    clock_ns: Callable[[], int]
    sample_count: int
    settle_at_most_s: float
    uses_gpu: bool
    watch: Watch | None
    probes: bool
    gpu_uuids: tuple[str, ...]
    started: Started
    keep_evidence: Callable[[str, str], str]
    restarts_at_most: int = 20
    observers: Sequence[Observer] = ()
    skipped_phases: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """How a walk ended.

    Attributes:
        ended_by: None if it ran to its end, else "crash", "hang", "memory" or "interrupted".
        seen: "crash" and "hang", if they were seen, whether or not it went on afterwards.
        restarts: How often the server was started again after one of them.
    """

    ended_by: str | None = None
    has_leak: bool = False
    seen: set[str] = field(default_factory=set)
    restarts: int = 0
