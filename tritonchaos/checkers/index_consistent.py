"""Do the repository index, model ready, metadata and what really happened tell the same story?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tritonchaos.expectation import error_text
from tritonchaos.observations import (
    Answer,
    Event,
    Follower,
    History,
    Position,
    Probe,
    ServerExited,
    ServerStarted,
    StepFinished,
)
from tritonchaos.plugins import CHECKERS
from tritonchaos.verdict import Assessment, Finding, Status, merge_findings

_NAME: Final = "index_consistent"
_NOT_ALLOWED: Final = "explicit model load / unload is not allowed"
_ON_THE_WAY: Final = frozenset({"LOADING", "UNLOADING"})
_LONG_AGO: Final = Position("", None, None, "main", 0)


@CHECKERS.register
@dataclass(frozen=True, slots=True)
class IndexConsistent:
    """After each load and unload, index, model ready and metadata must agree with the step's result.

    A model that is still LOADING or UNLOADING is left to `hang`. Models that a track beside the main one loads or
    unloads are not judged: their state may change between two questions.
    """

    name: ClassVar[str] = _NAME
    needs_probe: ClassVar[bool] = True

    def followers(self) -> Mapping[str, Callable[[], Follower]]:
        """What `check` has to see of the run."""
        return {_NAME: ModelStates}

    def check(self, history: History) -> Sequence[Assessment]:
        """Follow each model from step to step and compare what the server says of it."""
        followed = history.followed(_NAME, ModelStates)
        skipped = followed.touched_beside
        findings = merge_findings(finding for model, finding in followed.contradictions if model not in skipped)
        judged, unanswered = (
            sum(count for model, count in counts.items() if model not in skipped)
            for counts in (followed.of("judged"), followed.of("unanswered"))
        )
        if findings:
            return [Assessment(_NAME, Status.FAIL, findings[0].title, findings=findings)]
        if not judged:
            return [Assessment(_NAME, Status.UNKNOWN, "the server was not asked after any load or unload")]
        reason = f"index, model ready and metadata agreed after {judged} steps"
        if unanswered:
            reason += f"; {unanswered} times the index did not answer"
            return [Assessment(_NAME, Status.UNKNOWN, reason)]
        return [Assessment(_NAME, Status.PASS, reason)]


class ModelStates:
    """Keeps the last step and the last probe of each model while it walks the events.

    Attributes:
        touched_beside: Models that a track beside the main one loads or unloads.
        contradictions: (model, what the server says of it that cannot be), in order.
        counts: (what, model) -> how often it was "judged" after a step, and how often the index was "unanswered" then.
    """

    kinds: ClassVar[tuple[type, ...]] = (ServerStarted, ServerExited, StepFinished, Probe)

    def __init__(self) -> None:
        self.touched_beside: set[str] = set()
        self.contradictions: list[tuple[str, Finding]] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        self._step: StepFinished | None = None
        self._last: dict[str, Probe] = {}

    def of(self, what: str) -> dict[str, int]:
        """Return what was counted of each model."""
        return {model: count for (counted, model), count in self.counts.items() if counted == what}

    @property
    def kept(self) -> int:
        """How many contradictions there are."""
        return len(self.contradictions)

    def state(self) -> tuple[tuple[object, ...], ...]:
        """Return what was said last of each model; the last step is of a cycle that is over."""
        return tuple((model, p.index, p.model_ready, p.metadata) for model, p in sorted(self._last.items()))

    def resume(self, state: tuple[tuple[Any, ...], ...]) -> None:
        """Go on from there."""
        self._step = None
        self._last = {
            model: Probe(_LONG_AGO, 0, model, index, ready, metadata, None, None)
            for model, index, ready, metadata in state
        }

    def see(self, event: Event) -> None:
        """Take the next event and keep the contradictions that it shows."""
        if isinstance(event, StepFinished):
            if event.position.track == "main":
                self._step = event
                self._see_inference(event)
            elif event.spec.model and event.spec.name in {"load", "unload"}:
                self.touched_beside.add(event.spec.model)
        elif isinstance(event, Probe):
            self._see_probe(event)
        else:
            self._last.clear()

    def _see_probe(self, probe: Probe) -> None:
        before, step = self._last.get(probe.model), self._step
        self._last[probe.model] = probe
        if step is None or step.position != probe.position or not isinstance(step.reply, Answer):
            return
        if probe.index is None:
            self.counts["unanswered", probe.model] += 1
            return
        self.counts["judged", probe.model] += 1
        if _states(probe) & _ON_THE_WAY:
            return
        # Where the server allows no load over its API (mode poll or none) it has loaded its models by itself.
        was_ready = (before is not None and _is_ready(before)) or _NOT_ALLOWED in error_text(step.reply)
        wrong = _contradiction(step, step.reply.status, probe, was_ready)
        if wrong:
            self.contradictions.append((probe.model, _finding(step, wrong, probe)))

    def _see_inference(self, step: StepFinished) -> None:
        """A model that is gone for the index and for model ready must not serve."""
        if step.spec.name != "infer" or step.spec.model is None or not isinstance(step.reply, Answer):
            return
        probe = self._last.get(step.spec.model)
        if probe is None or probe.index is None or step.reply.status != 200:
            return
        if not _is_ready(probe) and not _states(probe) & _ON_THE_WAY:
            found = _finding(step, "was answered although the index does not show the model READY", probe)
            self.contradictions.append((step.spec.model, found))


def _contradiction(step: StepFinished, status: int, probe: Probe, was_ready: bool) -> str | None:
    if step.spec.name == "load" and status == 200:
        return _not_served(probe)
    if step.spec.name == "unload" and status == 200:
        return _still_served(probe, "answered 200") if "gone_after_ns" in step.observed else None
    if step.spec.name == "load" and not was_ready:
        return _still_served(probe, f"answered {status}")
    # A failed reload may leave the old version READY, and a refused unload changes nothing; but all must say the same.
    return _disagreement(probe)


def _not_served(probe: Probe) -> str | None:
    if not _is_ready(probe):
        served = "model ready answers 200" if probe.model_ready == 200 else "nor is it served"
        return f"answered 200, but the model is not READY in the index ({served})"
    if probe.model_ready != 200:
        return f"answered 200, but model ready answers {_shown(probe.model_ready)}"
    return None if probe.metadata == 200 else f"answered 200, but metadata answers {_shown(probe.metadata)}"


def _still_served(probe: Probe, after: str) -> str | None:
    if _is_ready(probe):
        return f"{after}, but the model is READY in the index"
    if probe.model_ready == 200:
        return f"{after}, but model ready answers 200"
    return f"{after}, but metadata answers 200" if probe.metadata == 200 else None


def _disagreement(probe: Probe) -> str | None:
    said = {_is_ready(probe), probe.model_ready == 200, probe.metadata == 200}
    if len(said) == 1:
        return None
    index = "READY" if _is_ready(probe) else "not READY"
    shown = f"model ready answers {_shown(probe.model_ready)}, metadata {_shown(probe.metadata)}"
    return f"left a model that is {index} in the index while {shown}"


def _states(probe: Probe) -> set[str]:
    return {entry.state for entry in probe.index or () if entry.name == probe.model}


def _is_ready(probe: Probe) -> bool:
    return "READY" in _states(probe)


def _shown(status: int | None) -> str:
    return "nothing" if status is None else str(status)


def _finding(step: StepFinished, wrong: str, probe: Probe) -> Finding:
    entries = [f"{e.name} {e.version} {e.state or 'no state'} {e.reason}".rstrip() for e in probe.index or ()]
    return Finding(
        kind="wrong_state",
        checker=_NAME,
        title=f"{step.spec.label()} {wrong}",
        step=step.spec.label(),
        position=step.position,
        evidence=(
            f"index: {', '.join(entries) or 'empty'}",
            f"model ready: {_shown(probe.model_ready)}, metadata: {_shown(probe.metadata)}",
        ),
        undocumented=step.spec.undocumented,
    )
