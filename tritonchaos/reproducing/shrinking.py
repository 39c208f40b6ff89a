"""Makes the course of a run small: only the cycles and models that one finding needs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tritonchaos.errors import UsageError
from tritonchaos.growth.judged import quantum
from tritonchaos.observations import (
    Arm,
    CycleStarted,
    History,
    NoAnswer,
    Position,
    ServerStarted,
    ServerStopped,
    StepFinished,
)
from tritonchaos.reproducing.course import Part, flat
from tritonchaos.verdict import Finding

# Enough for a slope whose noise is a fraction of one quantum.
_GROWTH_CYCLES: Final = 12
_QUANTA: Final = 24
_CONTROL_CYCLES: Final = 8
_OTHER_CYCLES: Final = 3
_TIMED_CYCLES: Final = 60
_TIMED_SPIKES: Final = 200
_TRIES: Final = 3
_NO_SERVER: Final = frozenset({"stop_server", "settle", "wait"})


def shrink(parts: Sequence[Part], finding: Finding, claim: Mapping[str, Any], history: History) -> list[Part]:
    """Keep the parts that the finding needs, in order.

    Raises:
        UsageError: Nothing is left.
    """
    kept = _choose(parts, finding, claim, history)
    kept = _without_end(kept)
    if not any(part.steps for part in kept):
        raise UsageError(f"nothing of the run is left that shows the finding {finding.id}")
    return kept


def _choose(parts: Sequence[Part], finding: Finding, claim: Mapping[str, Any], history: History) -> list[Part]:
    if claim["by"] == "retained":
        return list(parts)
    if claim["by"] == "slow":
        return _timed(parts, claim)
    if claim["by"] in ("will_not_stop", "left") or finding.position is None:
        first = _start_of_bad_stop(history)
        same_start = [part for part in parts if part.start_number == first]
        if claim["by"] == "will_not_stop" and (hung := _first_hang(same_start)) is not None:
            here = [part for part in same_start if part.phase == hung.phase]
            return [*_lead_up(same_start, hung, 1), *_up_to(here, hung)]
        return list(_cut(same_start, _OTHER_CYCLES))
    position = main_position(history, finding.position)
    here = [part for part in parts if part.phase == position.phase]
    before = _lead_up(parts, position, _CONTROL_CYCLES if claim["by"] == "growth" else 1)
    if claim["by"] == "growth":
        wanted = growth_cycles(claim)
        here = most_loads(here)[0] if claim.get("rounds_per_cycle", 1) > 1 else here
        after = _control_after(parts, position) if claim["arm"] == "treatment" else []
        return [*before, *_cut_arms(here, wanted), *after]
    return [*before, *_until(here, position, may_be_cut=claim["by"] in ("no_answer", "crash"))]


def main_position(history: History, position: Position) -> Position:
    """Where the main track was when a step of another track was done, as `position` says."""
    if position.track == "main":
        return position
    cycle: int | None = None
    for event in history.events:
        if isinstance(event, CycleStarted) and event.phase == position.phase:
            cycle = event.cycle
        elif isinstance(event, StepFinished) and event.position == position:
            break
    return replace(position, track="main", cycle=cycle, step_number=0)


def _timed(parts: Sequence[Part], claim: Mapping[str, Any]) -> list[Part]:
    """Phases with steps whose time is recorded, and the plain steps before them."""
    timed = {part.phase for part in parts if any(s.get("record") == claim["record"] for s in flat(part.steps))}
    phases = list(dict.fromkeys(part.phase for part in parts))
    last = max(phases.index(phase) for phase in timed)
    plain = {name for name in phases[:last] if all(p.cycle is None for p in parts if p.phase == name)}
    most = _TIMED_CYCLES if claim["of"] == "median" else _TIMED_SPIKES
    return list(_cut([part for part in parts if part.phase in timed | plain], most))


def growth_cycles(claim: Mapping[str, Any]) -> int:
    """Cycles that show a growth of this size: it must outgrow the page or quantum that readings move by."""
    rate = max(abs(claim["bytes_per_cycle"]), 1e-9)
    return max(_GROWTH_CYCLES, math.ceil(_QUANTA * quantum(str(claim["metric"])) / float(rate)))


def most_loads(parts: Sequence[Part]) -> tuple[list[Part], int]:
    """Keep the cycles with the most loads, and say how many rounds they have; `amplify` repeats them more and more.

    Args:
        parts: Of one phase.
    """
    loads = {
        id(p): sum(s["do"] == "load" for s in flat(p.steps)) for p in parts if p.cycle is not None and not p.is_warm_up
    }
    if not loads:
        return list(parts), 1
    first, most = next(iter(loads.values())), max(loads.values())
    kept = [part for part in parts if part.cycle is None or loads.get(id(part)) == most]
    return kept, max(1, most // max(1, first))


def _first_hang(parts: Sequence[Part]) -> Position | None:
    """Where a call got no answer, or left its model on the way: its thread keeps the server from stopping."""
    for step in (step for part in parts for step in part.finished):
        is_late = isinstance(step.reply, NoAnswer) and step.reply.reason.startswith("deadline")
        if is_late or "stuck" in step.observed:
            return step.position
    return None


def _start_of_bad_stop(history: History) -> int:
    """Number of the start whose stop was the finding; the last one where none was bad."""
    number = 1
    for event in history.events:
        if isinstance(event, ServerStarted):
            number = event.start_number
        elif isinstance(event, ServerStopped) and (event.forced or event.exit_timeout_expired):
            return number
    return number


def _lead_up(parts: Sequence[Part], position: Position, cycles: int) -> list[Part]:
    """What came before the phase: plain steps that set something up, and the first cycles of the last control block."""
    phases = list(dict.fromkeys(part.phase for part in parts))
    earlier = phases[: phases.index(position.phase)]
    control = [p.phase for p in parts if p.phase in earlier and p.arm is Arm.CONTROL and p.cycle is not None]
    is_plain = {name: all(p.cycle is None for p in parts if p.phase == name) for name in earlier}
    wanted = {name for name in earlier if is_plain[name]} | set(control[-1:])
    return list(_cut([part for part in parts if part.phase in wanted], cycles))


def _control_after(parts: Sequence[Part], position: Position) -> list[Part]:
    """One good cycle after the treatment, which does not give the memory back."""
    phases = list(dict.fromkeys(part.phase for part in parts))
    later = phases[phases.index(position.phase) + 1 :][:1]
    found = [part for part in parts if part.phase in later]
    is_control = any(part.arm is Arm.CONTROL and part.cycle is not None for part in found)
    return list(_cut(found, 1)) if is_control else []


def _cut(parts: Iterable[Part], cycles: int) -> Iterable[Part]:
    """Keep the first cycles of each phase, and all steps outside of cycles."""
    seen: dict[str, int] = {}
    for part in parts:
        if part.cycle is not None:
            seen[part.phase] = seen.get(part.phase, 0) + 1
        if part.cycle is None or seen[part.phase] <= cycles:
            yield part


def _cut_arms(parts: Sequence[Part], cycles: int) -> list[Part]:
    """Keep cycles until the treatment arm has enough; of a phase with one arm, the first ones."""
    kept, on_trial = [], 0
    is_mixed = len({part.arm for part in parts if part.cycle is not None}) == 2
    for part in parts:
        on_trial += part.cycle is not None and not part.is_warm_up and (part.arm is Arm.TREATMENT or not is_mixed)
        if part.cycle is None or on_trial <= cycles:
            kept.append(part)
    return kept


def _until(parts: Sequence[Part], position: Position, *, may_be_cut: bool) -> list[Part]:
    """Keep a phase up to the cycle of the finding; that one again, as what happens by chance may need more tries.

    Args:
        may_be_cut: Its last cycle may have ended in the middle.
    """
    kept = _up_to(parts, position)
    if position.cycle is None:
        return kept
    last = _to_its_end(kept) if may_be_cut else kept[-1]
    return [*kept[:-1], *[last] * (1 + (_TRIES - 1) * max(1, position.cycle + 1))]


def _up_to(parts: Sequence[Part], position: Position) -> list[Part]:
    kept = []
    for part in parts:
        kept.append(part)
        if part.cycle == position.cycle:
            break
    return kept


def _to_its_end(parts: Sequence[Part]) -> Part:
    """The last cycle, which was cut short, with the steps that the cycles before it had, else with an unload."""
    last = parts[-1]
    length = len(last.steps)
    for part in reversed(parts[:-1]):
        is_like = part.cycle is not None and part.arm == last.arm and part.steps[:length] == last.steps
        if is_like:
            return replace(last, steps=part.steps)
    steps = list(flat(last.steps))
    unloaded = {step["model"] for step in steps if step["do"] == "unload"}
    loads = {step["model"]: step for step in steps if step["do"] == "load" and step["model"] not in unloaded}
    return replace(last, steps=[*last.steps, *(step for load in loads.values() for step in _unload(load))])


def _unload(load: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Triton 2.51 may crash where an unload comes right behind the answer to a load."""
    ask = {"do": "unload", "model": load["model"], "deadline_s": load["deadline_s"], "expect": {"kind": "any"}}
    return [{"do": "wait", "seconds": 0.02}, ask]


def _without_end(parts: Sequence[Part]) -> list[Part]:
    """Leave out what only stops the server at the end: repro.py does so anyway."""
    kept = list(parts)
    while kept and all(step["do"] in _NO_SERVER for step in kept[-1].steps):
        kept.pop()
    return kept


def blocks(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Write parts as repro.py has them: cycles that do the same are one block."""
    made: list[dict[str, Any]] = []
    now: dict[str, str] = {}
    for part in parts:
        brought_about = _brought_about(part, now)
        if brought_about:
            made.append(_block(part, brought_about, is_cycle=False))
        block = _block(part, part.steps, is_cycle=part.cycle is not None)
        last = made[-1] if made else None
        if last is not None and block["cycles"] and last["cycles"] and _same(last, block):
            last["cycles"] += 1
        elif part.steps:
            made.append(block)
    return made


def _block(part: Part, steps: Sequence[Mapping[str, Any]], *, is_cycle: bool) -> dict[str, Any]:
    return {
        "phase": part.phase,
        "arm": part.arm.value if part.arm is not None else "",
        "first_cycle": part.cycle or 0,
        "cycles": int(is_cycle),
        "is_warm_up": part.is_warm_up,
        "each": list(steps),
    }


def _same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return all(left[name] == right[name] for name in ("phase", "arm", "is_warm_up", "each"))


def _brought_about(part: Part, now: dict[str, str]) -> list[dict[str, Any]]:
    """Steps that bring the models into the state that left-out parts would have brought them into."""
    steps = [
        {"do": "use", "model": model, "state": state}
        for model, state in sorted(part.before.items())
        if now.get(model) not in (None, state)
    ]
    now.update(part.before)
    now.update({step["model"]: step["state"] for step in flat(part.steps) if step["do"] == "use"})
    return steps


def models_needed(parts: Sequence[Part], configs: Mapping[str, str], others: Iterable[str] = ()) -> set[str]:
    """Models that steps name, and those that their configurations name in turn (ensembles).

    Args:
        configs: Model -> text of its config.pbtxt.
        others: Models that tracks name.
    """
    found = {step["model"] for part in parts for step in flat(part.steps) if step.get("model")} | set(others)
    while True:
        named = {m for name in found for m in re.findall(r"model_name\s*:\s*[\"']([^\"']+)", configs.get(name, ""))}
        if named <= found or not named - found & set(configs):
            return found & set(configs)
        found |= named & set(configs)
