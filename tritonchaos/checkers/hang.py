"""Did the server answer every call in time, and did every model leave LOADING and UNLOADING?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from tritonchaos.observations import (
    Evidence,
    Follower,
    History,
    NoAnswer,
    Position,
    Probe,
    ServerExited,
    ServerStarted,
    StepFinished,
    TrafficSummary,
)
from tritonchaos.plugins import CHECKERS
from tritonchaos.steps_seen import steps_at
from tritonchaos.verdict import Assessment, Finding, Status, merge_findings

_LOG_LINES: Final = 10
_NO_INDEX: Final = "an index that does not answer"  # in place of the state that a model is stuck in; see `unload`
_NAME: Final = "hang"


@CHECKERS.register
@dataclass(frozen=True, slots=True)
class Hang:
    """Every call must be answered before its deadline, and no model may be stuck in LOADING or UNLOADING.

    A finding carries what was asked of the server at that moment: live over HTTP and over gRPC, and the index.
    """

    name: ClassVar[str] = _NAME

    def followers(self) -> Mapping[str, Callable[[], Follower]]:
        """What `check` has to see of the run."""
        return {_NAME: Calls}

    def check(self, history: History) -> Sequence[Assessment]:
        """Look for calls without an answer and models that stay on the way."""
        calls = history.followed(_NAME, Calls)
        asked = calls.asked
        findings = merge_findings(_findings(history, calls))
        if findings:
            return [Assessment(_NAME, Status.FAIL, findings[0].title, findings=findings)]
        if not asked:
            return [Assessment(_NAME, Status.UNKNOWN, "the server was asked nothing")]
        return [Assessment(_NAME, Status.PASS, f"{asked} calls were answered in time")]


class Calls:
    """Counts the calls of a run and keeps those that hung.

    Attributes:
        hung: (calls that hung before on the same server, what hung, the step).
        silent: Probes that the server answered in no way.
    """

    kinds: ClassVar[tuple[type, ...]] = (ServerStarted, StepFinished, TrafficSummary, Probe)

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.hung: list[tuple[int, str, StepFinished]] = []
        self.silent: list[Probe] = []
        self._hung_here = 0

    @property
    def asked(self) -> int:
        """How many calls there were."""
        return self.counts["asked"]

    @property
    def kept(self) -> int:
        """How many calls are kept."""
        return len(self.hung) + len(self.silent)

    def state(self) -> int:
        """Return how many calls hung on this server."""
        return self._hung_here

    def resume(self, state: int) -> None:
        """Go on from there."""
        self._hung_here = state

    def see(self, event: ServerStarted | StepFinished | TrafficSummary | Probe) -> None:
        """Take the next event."""
        if isinstance(event, StepFinished):
            self.counts["asked"] += event.reply is not None
            if (title := _title(event)) is not None:
                self.hung.append((self._hung_here, title, event))
                self._hung_here += 1
        elif isinstance(event, Probe):
            if _is_silent(event):
                self.silent.append(event)
        elif isinstance(event, TrafficSummary):
            self.counts["asked"] += event.count
        else:
            self._hung_here = 0


def _findings(history: History, calls: Calls) -> Iterator[Finding]:
    for before, title, step in calls.hung:
        if _died_behind_its_answer(step, history):
            continue
        evidence = _evidence(history, step.position)
        if before:
            evidence = (f"{before} calls hung before: they may hold the threads that this one waits for", *evidence)
        yield Finding(
            kind="hang",
            checker=_NAME,
            title=title,
            step=step.spec.label(),
            position=step.position,
            evidence=evidence,
            undocumented=step.spec.undocumented,
            details=tuple(_kept(history, "stacks", step.position)),
        )
    if calls.silent and not any(True for _ in history.of(ServerExited)):
        yield from (_silence(probe, history) for probe in calls.silent)


def _died_behind_its_answer(step: StepFinished, history: History) -> bool:
    """A server that crashed right behind its answer has no index any more: `server_alive` tells that; no hang."""
    if step.observed.get("stuck") != _NO_INDEX:
        return False
    return any(exited.position == step.position for exited in history.of(ServerExited))


def _title(step: StepFinished) -> str | None:
    if step.spec.expect.kind == "any":
        return None
    label, deadline = step.spec.label(), f"{step.spec.deadline_s:g} s"
    if isinstance(step.reply, NoAnswer):
        is_hang = step.reply.reason.startswith("deadline")
        return f"{label} was not answered within its deadline of {deadline}" if is_hang else None
    if stuck := step.observed.get("stuck"):
        return f"{label} left the model stuck in {stuck} past its deadline of {deadline}"
    return None


def _evidence(history: History, position: Position) -> tuple[str, ...]:
    """Return what was collected when the step hung: who still answers, the index, the end of the log."""
    lines: list[str] = []
    for event in history.of(Evidence):
        if event.kind == "hang" and event.position == position:
            lines += [f"{name}: {value}" for name, value in event.facts.items()]
            lines += event.lines[-_LOG_LINES:]
    return tuple(lines)


def _kept(history: History, kind: str, position: Position) -> Iterator[str]:
    for event in history.of(Evidence):
        if event.kind == kind and event.position == position:
            yield from event.lines


def _is_silent(probe: Probe) -> bool:
    return probe.index is None and probe.live is None and probe.model_ready is None and probe.metadata is None


def _silence(probe: Probe, history: History) -> Finding:
    step = next(steps_at(history, probe.position), None)
    after = step.spec.label() if step else str(probe.position)
    return Finding(
        kind="hang",
        checker=_NAME,
        title=f"the server answers nothing any more after {after}",
        step=after,
        position=probe.position,
        evidence=("live, index, model ready and metadata: no answer", *_evidence(history, probe.position)),
        undocumented=step is not None and step.spec.undocumented,
    )
