"""Did every step get the reply, state and outputs that its `expect` names?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from tritonchaos.expectation import Unmet, error_text, unmet
from tritonchaos.observations import (
    Answer,
    Expectation,
    Follower,
    History,
    NoAnswer,
    ServerExited,
    StepFinished,
    TrafficSummary,
)
from tritonchaos.plugins import CHECKERS
from tritonchaos.verdict import Assessment, Finding, Status, merge_findings

_KINDS: Final = {
    "status": "wrong_error",
    "error": "wrong_error",
    "time": "slowdown",
    "state": "wrong_state",
    "reason": "wrong_error",
    "version": "wrong_state",
    "outputs": "wrong_output",
    "log": "wrong_error",
    "processes": "leftover",
    "health": "wrong_state",
}


@CHECKERS.register
@dataclass(frozen=True, slots=True)
class Expectations:
    """Every step must be answered as its `expect` says, on the main track and beside it.

    Calls without an answer, and models stuck on the way, are left to `hang` and `server_alive` where the scenario names
    them; otherwise they leave the result unknown.
    """

    name: ClassVar[str] = "expectations"

    def followers(self) -> Mapping[str, Callable[[], Follower]]:
        """What `check` has to see of the run."""
        return {self.name: Demands}

    def check(self, history: History) -> Sequence[Assessment]:
        """Compare all steps with their expectations; sightings of one defect are counted once."""
        steps = history.followed(self.name, Demands)
        if not steps.count:
            return [Assessment(self.name, Status.UNKNOWN, "no step with an expectation was run")]
        pairs, wrong = steps.unmet, steps.wrong_in_traffic
        findings = merge_findings(_finding(step, found) for step, found in pairs if found.kind in _KINDS)
        unexplained = [step for step, found in pairs if found.kind not in _KINDS and not _is_explained(step, history)]
        silent = sum(found.kind not in _KINDS for _, found in pairs)
        count = steps.count + steps.in_traffic
        reason = f"{count} steps, {len(pairs) - silent + wrong} not as expected"
        if silent:
            reason += f", {silent} without an answer, stuck or in vain"
        if findings:
            return [Assessment(self.name, Status.FAIL, f"{reason}; {findings[0].title}", findings=findings)]
        if unexplained:
            first = unexplained[0]
            told = f", {first.observed['not_reached']}" if "not_reached" in first.observed else ""
            reason += f"; nothing says why, the first: {first.spec.label()} ({first.position}){told}"
            return [Assessment(self.name, Status.UNKNOWN, reason)]
        return [Assessment(self.name, Status.PASS, reason)]


class Demands:
    """Counts the steps that demand something, and keeps those that did not get it.

    Attributes:
        unmet: Those that did not get it, with what was not met.
    """

    kinds: ClassVar[tuple[type, ...]] = (StepFinished, TrafficSummary)

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.unmet: list[tuple[StepFinished, Unmet]] = []

    @property
    def count(self) -> int:
        """How many steps demanded something."""
        return self.counts["steps"]

    @property
    def in_traffic(self) -> int:
        """Requests of summaries."""
        return self.counts["in traffic"]

    @property
    def wrong_in_traffic(self) -> int:
        """How many of these were not as expected."""
        return self.counts["wrong in traffic"]

    @property
    def kept(self) -> int:
        """How many steps are kept."""
        return len(self.unmet)

    def state(self) -> None:
        """Return nothing: each step is looked at by itself."""

    def resume(self, state: None) -> None:
        """Go on."""

    def see(self, event: StepFinished | TrafficSummary) -> None:
        """Take the next event."""
        if isinstance(event, TrafficSummary):
            if event.spec.expect.kind != "any":
                self.counts["in traffic"] += event.count
                self.counts["wrong in traffic"] += event.count - event.ok
        elif _demands_something(event):
            self.counts["steps"] += 1
            if (found := unmet(event)) is not None:
                self.unmet.append((event, found))


def _demands_something(step: StepFinished) -> bool:
    if step.spec.expect.kind == "any" or "skipped" in step.observed:
        return False
    return step.reply is not None or unmet(step) is not None or step.spec.expect.kind == "fields"


def _is_explained(step: StepFinished, history: History) -> bool:
    """Another checker of this scenario is bound to report why there was no answer."""
    checks = {name for name, _ in history.facts.checks}
    reply = step.reply
    is_hang = "stuck" in step.observed or (isinstance(reply, NoAnswer) and reply.reason.startswith("deadline"))
    if is_hang and "hang" in checks:
        return True
    return "server_alive" in checks and any(True for _ in history.of(ServerExited))


def _finding(step: StepFinished, found: Unmet) -> Finding:
    return Finding(
        kind=_KINDS[found.kind],
        checker=Expectations.name,
        title=f"{step.spec.label()} {_what_happened(step, found)}",
        step=step.spec.label(),
        position=step.position,
        evidence=(found.text,),
        undocumented=step.spec.undocumented,
    )


def _what_happened(step: StepFinished, found: Unmet) -> str:
    """Say it without what may differ from one sighting to the next, so that they count as one defect."""
    expect = step.spec.expect
    if found.kind == "status" and isinstance(step.reply, Answer):
        return _wrong_status(step.reply, expect)
    if found.kind == "error":
        return f"was refused with another text than {expect.error!r}"
    if found.kind == "time":
        return f"took longer than {expect.within_s:g} s"
    if found.kind == "reason":
        return f"left another reason in the index than {expect.reason!r}"
    if found.kind == "outputs":
        return "returned wrong outputs"
    if found.kind == "log":
        wanted = expect.log if found.text.startswith("no line") else expect.not_log
        return f"{'logged no line' if wanted is expect.log else 'logged a line'} with {wanted!r}"
    if found.kind == "processes":
        return f"left another number of processes: {found.text}"
    if found.kind == "version":
        return f"had another version: {found.text}"
    if found.kind == "health":
        return f"left another health: {found.text}"
    return f"left a wrong state: {found.text}"


def _wrong_status(reply: Answer, expect: Expectation) -> str:
    if reply.status < 400 and expect.error is not None:
        return f"succeeded, expected an error with {expect.error!r}"
    wanted = " or ".join(str(status) for status in expect.status or (200,))
    return f"answered {reply.status} instead of {wanted}: {_one_line(reply)}"


def _one_line(reply: Answer) -> str:
    text = " ".join(error_text(reply).split())
    return text[:120] or "no text"
