"""Keeps what a track did: requests that went wrong one by one, the many that went well as a summary per second."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from tritonchaos.expectation import unmet
from tritonchaos.observations import NoAnswer, StepFinished, StepSpec, TrafficSummary

_SECOND_NS: Final = 1_000_000_000
# A track that is slower than this in a second is kept step by step in the next.
_KEPT_PER_SECOND: Final = 20
# A server that refuses everything refuses thousands in a second.
_KEPT_WRONG_PER_SECOND: Final = 100
# How late a round may begin without being counted as late: a sleeping thread wakes up later than asked.
LATE_NS: Final = 10_000_000
_QUANTILES: Final = (0.5, 0.9, 0.99, 1.0)


@dataclass(slots=True)
class _Second:
    """What one step of a track did within one second.

    Attributes:
        most_kept: Successes that may be recorded one by one.
    """

    spec: StepSpec
    started_ns: int
    most_kept: int
    ended_ns: int = 0
    seen: int = 0
    kept: int = 0
    kept_wrong: int = 0
    ok: int = 0
    late: int = 0
    latency_ns: list[int] = field(default_factory=list)


class Tally:
    """Decides for each step of one track whether it is recorded by itself; safe from several workers.

    Args:
        record: Takes the summaries.
    """

    def __init__(self, record: Callable[[TrafficSummary], None]) -> None:
        self._record = record
        self._lock = threading.Lock()
        self._second = -1
        self._steps: dict[int, _Second] = {}
        self._most_kept: dict[int, int] = {}
        self._track: tuple[str, str] = ("", "")

    def take(self, finished: StepFinished, late_ns: int) -> StepFinished | None:
        """Return the step as it is to be recorded, or None if it is only counted.

        Args:
            late_ns: How long after it was due its round began.
        """
        is_late = late_ns > LATE_NS
        with self._lock:
            self._turn_to(finished.t_ns // _SECOND_NS)
            self._track = finished.position.phase, finished.position.track
            step = self._step(finished)
            step.seen += 1
            is_good = unmet(finished) is None and not isinstance(finished.reply, NoAnswer)
            if self._is_kept(step, is_good):
                seen = {**finished.observed, "late_ns": late_ns}
                return replace(finished, observed=seen) if is_late else finished
            step.ok += is_good
            step.late += is_late
            step.ended_ns = max(step.ended_ns, finished.t_ns)
            # What a client waits for counts from when it meant to ask, or a slow server would hide its own slowness.
            step.latency_ns.append(_took_ns(finished) + late_ns)
            return None

    def close(self) -> None:
        """Record what was only counted so far."""
        with self._lock:
            self._turn_to(-1)

    def _step(self, finished: StepFinished) -> _Second:
        number = finished.position.step_number
        if number not in self._steps:
            most = self._most_kept.get(number, _KEPT_PER_SECOND)
            self._steps[number] = _Second(finished.spec, finished.started_ns, most)
        return self._steps[number]

    @staticmethod
    def _is_kept(step: _Second, is_good: bool) -> bool:
        if is_good:
            step.kept += 1
            return step.kept <= step.most_kept
        step.kept_wrong += 1
        return step.kept_wrong <= _KEPT_WRONG_PER_SECOND

    def _turn_to(self, second: int) -> None:
        if second == self._second:
            return
        self._second = second
        steps, self._steps = self._steps, {}
        for number, step in steps.items():
            self._most_kept[number] = _KEPT_PER_SECOND if step.seen < _KEPT_PER_SECOND else 0
            if step.latency_ns:
                self._record(self._summary(step))

    def _summary(self, step: _Second) -> TrafficSummary:
        phase, track = self._track
        return TrafficSummary(
            t_ns=step.ended_ns,
            started_ns=step.started_ns,
            phase=phase,
            track=track,
            spec=step.spec,
            count=len(step.latency_ns),
            ok=step.ok,
            late=step.late,
            latency_ns=quantiles(step.latency_ns),
        )


def _took_ns(finished: StepFinished) -> int:
    return finished.t_ns - finished.started_ns if finished.reply is None else finished.reply.elapsed_ns


def quantiles(values: list[int]) -> tuple[int, ...]:
    """Return median, 90 %, 99 % and largest value, each one that was really seen (nearest rank)."""
    ordered = sorted(values)
    return tuple(ordered[max(0, -(-len(ordered) * round(share * 100) // 100) - 1)] for share in _QUANTILES)
