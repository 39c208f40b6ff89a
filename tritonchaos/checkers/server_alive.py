"""Did the server live until it was told to stop, and did it then stop by itself?"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import ClassVar, Final

from tritonchaos.observations import (
    Evidence,
    History,
    Position,
    ServerExited,
    ServerStarted,
    ServerStopped,
    StepFinished,
)
from tritonchaos.observations.server_log import line_starts, lines_from
from tritonchaos.plugins import CHECKERS
from tritonchaos.steps_seen import has_undocumented, steps_at
from tritonchaos.units import format_seconds
from tritonchaos.verdict import Assessment, Finding, Status, merge_findings

_NAME: Final = "server_alive"
# What tritonserver prints in its signal handler (src/main.cc), followed by a numbered stack. SIGTERM and SIGINT are
# printed too, but they are orders.
_SIGNAL_LINE: Final = re.compile(r"Signal \((\d+)\) received")
_FRAME: Final = re.compile(r"\s*#?\d+[#:]?\s+\S")
_FATAL: Final = frozenset({signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV})
_ORDERS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGKILL})
_STACK_LINES: Final = 40


@CHECKERS.register
@dataclass(frozen=True, slots=True)
class ServerAlive:
    """The server must not crash, and must end by itself when it is told to stop.

    Also looks into the log: as process 1 of a container tritonserver prints `Signal (11)` and lives on.
    """

    name: ClassVar[str] = _NAME

    def check(self, history: History) -> Sequence[Assessment]:
        """Look for ends that nobody asked for, and for stops that needed force."""
        starts = sum(1 for _ in history.of(ServerStarted))
        if not starts:
            return [Assessment(_NAME, Status.UNKNOWN, "no server was started")]
        findings = _with_cycles(_crashes(history)) + merge_findings(_refused_stops(history))
        if findings:
            return [Assessment(_NAME, Status.FAIL, findings[0].title, findings=findings)]
        stops = list(history.of(ServerStopped))
        if len(stops) < starts:
            return [Assessment(_NAME, Status.UNKNOWN, "no crash was seen, but how the server ended is not recorded")]
        if all(stop.is_left_running for stop in stops):
            return [Assessment(_NAME, Status.PASS, "no crash; the server is not ours to stop, and was left running")]
        took = format_seconds(max(stop.elapsed_ns for stop in stops) / 1e9)
        started = "1 start" if starts == 1 else f"{starts} starts"
        return [Assessment(_NAME, Status.PASS, f"{started}, no crash; stopped within {took}")]


def signal_name(exit_code: int | None) -> str | None:
    """Name the signal behind an exit code: minus its number, or 128 plus it as shells and Docker write it."""
    if exit_code is None or 0 <= exit_code <= 128:
        return None
    number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return None


# --- crashes -------------------------------------------------------------------------------------


def _crashes(history: History) -> list[Finding]:
    found = [_crash(history, event) for event in history.of(ServerExited)]
    found += [_crash_while_stopping(history, stop) for stop in history.of(ServerStopped) if _crashed(stop)]
    return found or list(_survived(history))


def _crash(history: History, event: ServerExited) -> Finding:
    step = _step_at(history, event.position)
    during = f" during {step.spec.label()}" if step else ""
    return Finding(
        kind="crash",
        checker=_NAME,
        title=f"tritonserver {_ended(event.exit_code)}{_why(history, event.position)}{during}",
        step=step.spec.label() if step else None,
        position=event.position,
        evidence=_crash_evidence(history, event.position),
        undocumented=step is not None and step.spec.undocumented,
    )


def _ended(exit_code: int | None) -> str:
    name = signal_name(exit_code)
    if name:
        return f"died of {name}"
    return "ended unasked" if exit_code is None else f"ended unasked with exit status {exit_code}"


def _why(history: History, position: Position | None) -> str:
    """What the container engine said of the end."""
    kept = [event for event in history.of(Evidence) if event.kind == "crash" and event.position == position]
    is_oom = bool(kept) and kept[-1].facts.get("oom_killed") == "yes"
    return " at the container's memory limit" if is_oom else ""


def _step_at(history: History, position: Position | None) -> StepFinished | None:
    """Return the step in flight: the last one recorded at a position."""
    found = list(steps_at(history, position))
    return found[-1] if found else None


def _crash_evidence(history: History, position: Position | None) -> tuple[str, ...]:
    """Return the stack that the server printed, or else the lines that were kept when it died."""
    kept = [event for event in history.of(Evidence) if event.kind == "crash" and event.position == position]
    lines = kept[-1].lines if kept else ()
    # The log of a run that was started again holds the stacks of other crashes too; what was kept is of this one.
    stacks = list(_stacks(lines)) or list(_logged_stacks(history))
    return stacks[-1] if stacks else lines[-_STACK_LINES:]


def _with_cycles(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Keep each crash once, with the first one's stack and all places where it was seen."""
    seen: dict[str, list[Position]] = {}
    for finding in findings:
        if finding.position is not None:
            seen.setdefault(finding.id, []).append(finding.position)
    return tuple(
        replace(finding, evidence=(f"{finding.occurrences} times: {_places(seen[finding.id])}", *finding.evidence))
        if finding.occurrences > 1 and finding.id in seen
        else finding
        for finding in merge_findings(findings)
    )


def _places(positions: Sequence[Position]) -> str:
    """Name phases and cycles: "loads, cycles 9, 19, 29; other, cycle 3"."""
    cycles: dict[str, list[str]] = {}
    for position in positions:
        where = f"step {position.step_number} outside cycles" if position.cycle is None else str(position.cycle)
        cycles.setdefault(position.phase, []).append(where)
    return "; ".join(
        f"{phase}, cycle{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" for phase, numbers in cycles.items()
    )


def _stacks(lines: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each `Signal (N) received` line of a fatal signal, with the stack frames that follow it."""
    for at, line in enumerate(lines):
        match = _SIGNAL_LINE.search(line)
        if match is not None and int(match[1]) in _FATAL:
            frames = lines[at + 1 : at + 1 + _STACK_LINES]
            yield (line, *takewhile(_FRAME.match, frames))


def _logged_stacks(history: History) -> Iterator[tuple[str, ...]]:
    """Yield those of the whole log; the log of a long run is long, and only the lines around a signal are made."""
    for start in line_starts(history.log, b"Signal ("):
        lines = lines_from(history.log, start, 1 + _STACK_LINES)
        yield from (stack for stack in _stacks(lines) if stack[0] is lines[0])


def _crashed(stop: ServerStopped) -> bool:
    """Not as it was told: by itself before, of an error, or killed by somebody else, such as the kernel."""
    name = signal_name(stop.exit_code)
    was_killed = name == "SIGKILL" and stop.signal != "SIGKILL"
    return _ended_before(stop) or was_killed or (name is not None and signal.Signals[name] not in _ORDERS)


def _ended_before(stop: ServerStopped) -> bool:
    """It was found to have ended when it was to be stopped: after the last answer that was waited for."""
    return stop.signal == "" and stop.exit_code is not None


def _crash_while_stopping(history: History, stop: ServerStopped) -> Finding:
    when = "before it was told to stop" if _ended_before(stop) else "while it was stopping"
    return Finding(
        kind="crash",
        checker=_NAME,
        title=f"tritonserver {_ended(stop.exit_code)}{_why(history, None)} {when}",
        evidence=_crash_evidence(history, None),
        undocumented=has_undocumented(history),
    )


def _survived(history: History) -> Iterator[Finding]:
    for stack in _logged_stacks(history):
        number = _SIGNAL_LINE.search(stack[0])
        name = signal_name(-int(number[1])) if number else None
        yield Finding(
            kind="crash",
            checker=_NAME,
            title=f"tritonserver printed {name} and went on",
            evidence=stack,
            undocumented=has_undocumented(history),
        )


# --- stops ---------------------------------------------------------------------------------------


def _refused_stops(history: History) -> Iterator[Finding]:
    for stop in history.of(ServerStopped):
        if not stop.forced and not stop.exit_timeout_expired:
            continue
        how = "SIGKILL was needed" if stop.forced else "it gave up waiting for its own stop (Exit timeout expired)"
        kept = [event for event in history.of(Evidence) if event.kind == "stop" and event.t_ns >= stop.t_ns]
        took = f"told to stop with SIGTERM, ended after {format_seconds(stop.elapsed_ns / 1e9)}"
        code = "unknown" if stop.exit_code is None else str(stop.exit_code)
        yield Finding(
            kind="will_not_stop",
            checker=_NAME,
            title=f"tritonserver did not stop: {how}",
            evidence=(took, f"exit code {code}", *(kept[0].lines[-_STACK_LINES:] if kept else ())),
            undocumented=has_undocumented(history),
        )
