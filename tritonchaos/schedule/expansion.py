"""Turns a scenario into its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tritonchaos.observations import Arm, Expectation, StepSpec
from tritonchaos.plugins import Contract, ServerSettings, Workbench
from tritonchaos.scenario import Phase, Scenario, ServerOptions, StepEntry
from tritonchaos.schedule.phases import Schedule, ScheduledPhase, ScheduledTrack


@dataclass(frozen=True, slots=True)
class RestartFresh:
    """Stop the server and start it as `server:` says for what follows.

    Attributes:
        because: What in the scenario asks for it.
    """

    name: ClassVar[str] = "restart_server"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    because: str
    settings: ServerSettings

    def apply(self, bench: Workbench) -> None:
        """Stop, then start."""
        bench.server.stop()
        bench.server.start(self.settings)


def expand(scenario: Scenario) -> Schedule:
    """Turn a scenario into its schedule; nothing is made before it is asked for, and nothing depends on the machine."""
    phases: list[ScheduledPhase] = []
    running = scenario.server.settings()
    for phase in scenario.phases:
        server = phase.server.over(scenario.server)
        phases.append(_phase(phase, scenario, server, running, is_first=not phases))
        running = server.settings()
    return Schedule(scenario.scenario, scenario.seed, tuple(phases))


def _phase(
    phase: Phase, scenario: Scenario, server: ServerOptions, running: ServerSettings, is_first: bool
) -> ScheduledPhase:
    cycles = phase.cycles
    arm = None if cycles is None or phase.arms is not None else phase.arm or Arm.TREATMENT
    fresh = None
    if server.settings() != running:
        fresh = _restart("other server options in this phase", server)
    elif server.fresh != "run" and not is_first:
        fresh = _restart(f"fresh: {server.fresh}", server)
    return ScheduledPhase(
        name=phase.phase,
        kind="steps" if cycles is None else "cycles",
        arm=arm,
        when=phase.when,
        at_least=cycles.at_least if cycles else 0,
        at_most=cycles.at_most if cycles else 0,
        until=cycles.until if cycles else None,
        warm_up_cycles=phase.warm_up_cycles,
        tracks=tuple(ScheduledTrack(track.track, track, phase.phase, arm, scenario.seed) for track in phase.meanwhile),
        seed=scenario.seed,
        phase=phase,
        amplify=phase.amplify,
        fresh=fresh,
        fresh_cycle=_restart("fresh: cycle", server) if server.fresh == "cycle" else None,
    )


def _restart(because: str, server: ServerOptions) -> StepEntry:
    step = RestartFresh(because, server.settings())
    spec = StepSpec(step.name, None, {"because": because}, Expectation(), server.startup_deadline_s)
    return StepEntry(step, spec)
