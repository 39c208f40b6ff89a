"""Does a scenario fit what a target can do? What is asked for and cannot be done is told before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tritonchaos.plugins import needs_of
from tritonchaos.scenario import Phase, Scenario, ServerOptions
from tritonchaos.scenario.entries import StepEntry, plain_steps

_STOP: Final = frozenset({"stop"})
_NOT_OURS: Final = "the server is not ours to {verb}"


@dataclass(frozen=True, slots=True)
class Fit:
    """How far a scenario can be run with some abilities.

    Attributes:
        lacks: What is missing and cannot be left out, with the place that needs it; "" if nothing.
        missing: The same as names of abilities.
        skipped_phases: Phase -> why it is left out: phases at the end that follow the server's stop, and phases that
            are only run after something was seen. Neither changes what the cycles before them show.
        not_applied: (what, why) of server settings that have no effect.
    """

    lacks: str = ""
    skipped_phases: Mapping[str, str] = field(default_factory=dict)
    not_applied: tuple[tuple[str, str], ...] = ()
    missing: frozenset[str] = frozenset()


def fit(scenario: Scenario, abilities: frozenset[str]) -> Fit:
    """Compare what a scenario needs with the abilities of a target."""
    lacking = {phase.phase: _lacking(phase, scenario.server, abilities) for phase in scenario.phases}
    skipped = _after_the_end(scenario.phases, lacking)
    skipped |= {p.phase: _why(lacking[p.phase]) for p in scenario.phases if p.when is not None and lacking[p.phase]}
    problems = [problem for name, needs in lacking.items() if name not in skipped for problem in needs]
    if "start" not in abilities and scenario.server.mode != "explicit":
        problems.append(("start", f"model control mode {scenario.server.mode}"))
    missing = dict.fromkeys(ability for ability, _ in problems)
    lacks = f"lacks: {', '.join(missing)} ({problems[0][1]})" if problems else ""
    return Fit(lacks, skipped, tuple(_not_applied(scenario, abilities)), frozenset(missing))


def uses(scenario: Scenario, ability: str) -> bool:
    """Is there a step that needs an ability of the target?"""
    return any(ability in _needs(entry) for phase in scenario.phases for entry in _steps(phase))


Need = tuple[str, str]  # ability, and what needs it


def _lacking(phase: Phase, server: ServerOptions, abilities: frozenset[str]) -> list[Need]:
    found = []
    options = phase.server.over(server)
    if "start" in abilities and _has_no_grpc(options):
        abilities = abilities - {"grpc"}
    for entry in _steps(phase):
        found += [(need, f"{entry.spec.label()} in phase {phase.phase}") for need in sorted(_needs(entry) - abilities)]
    if "restart" not in abilities and (options != server or options.fresh != "run"):
        found.append(("restart", f"a server started anew for phase {phase.phase}"))
    return found


def _steps(phase: Phase) -> Iterator[StepEntry]:
    groups = [phase.before, phase.each, phase.after, phase.steps]
    for arm in (phase.arms.control, phase.arms.treatment) if phase.arms else ():
        groups += [arm.before, arm.each, arm.after]
    groups += [track.each for track in phase.meanwhile]
    for group in groups:
        yield from plain_steps(group)


def _has_no_grpc(options: ServerOptions) -> bool:
    return str(options.flags.get("allow-grpc", True)).lower() in ("false", "0")


def _needs(entry: StepEntry) -> frozenset[str]:
    reads_log = entry.spec.expect.log is not None or entry.spec.expect.not_log is not None
    log, grpc = {"log"} if reads_log else set(), {"grpc"} if entry.spec.via == "grpc" else set()
    return needs_of(entry.step) | log | grpc


def _after_the_end(phases: tuple[Phase, ...], lacking: Mapping[str, list[Need]]) -> dict[str, str]:
    """Phases of plain steps at the end, from the first that stops the server: they look at what comes after it."""
    for number, phase in enumerate(phases):
        needs = {ability for ability, _ in lacking[phase.phase]}
        if needs == _STOP and all(_may_be_left_out(later, lacking) for later in phases[number:]):
            return {later.phase: _NOT_OURS.format(verb="stop") for later in phases[number:]}
    return {}


def _may_be_left_out(phase: Phase, lacking: Mapping[str, list[Need]]) -> bool:
    return phase.cycles is None and {ability for ability, _ in lacking[phase.phase]} <= _STOP


def _why(needs: list[Need]) -> str:
    return _NOT_OURS.format(verb=needs[0][0]) if needs[0][0] in {"start", "stop", "restart"} else f"lacks {needs[0][0]}"


def _not_applied(scenario: Scenario, abilities: frozenset[str]) -> Iterator[tuple[str, str]]:
    if "start" in abilities:
        return
    for kind in ("flags", "env", "ulimits"):
        names = ", ".join(getattr(scenario.server, kind))
        if names:
            yield f"server {kind} {names}", f"not set: {_NOT_OURS.format(verb='start')}"
