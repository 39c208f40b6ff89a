"""Applies one scheduled step on one track and records what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.client import TritonClient, parse_index
from tritonchaos.observations import Answer, JsonValue, ModelState, Probe, Reply, StepFinished
from tritonchaos.plugins import Workbench
from tritonchaos.repository import ModelRepository
from tritonchaos.scenario_engine.interrupt import Interrupt
from tritonchaos.scenario_engine.journal import Journal
from tritonchaos.scenario_engine.measuring import Measuring
from tritonchaos.scenario_engine.server import ServerLife, log_size
from tritonchaos.schedule import ScheduledStep
from tritonchaos.templates import ServedModel

_ASK_S: Final = 5.0
_CHANGES_STATE: Final = frozenset({"load", "unload"})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all tracks share.

    Attributes:
        probes: Ask index, readiness and metadata after each load and unload, because a checker needs it.
        stop: Stop the server; on the main track this also ends the tracks beside it.
    """

    server: ServerLife
    repository: ModelRepository
    models: Mapping[str, ServedModel]
    measuring: Measuring
    journal: Journal
    interrupt: Interrupt
    log_file: Path
    probes: bool


class _Control:
    """Start and stop as steps see them: the track's own client is renewed with each start."""

    def __init__(self, server: ServerLife, renew: Callable[[], None]) -> None:
        self._server = server
        self._renew = renew

    def start(self) -> None:
        self._server.start()
        self._renew()

    def stop(self) -> None:
        self._server.stop()


class Track:
    """One line of steps with a client of its own.

    Args:
        around: What all tracks share.
    """

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._bench = Workbench(
            client=around.server.client(),
            repository=around.repository,
            models=around.models,
            server=_Control(around.server, self.renew_client),
            readings=around.measuring,
            pause=around.interrupt.pause,
        )

    def renew_client(self) -> None:
        """Talk to the server that runs now."""
        self._bench.client = self._around.server.client()

    @property
    def client(self) -> TritonClient:
        """The client of this track."""
        return self._bench.client

    def apply(self, scheduled: ScheduledStep) -> StepFinished:
        """Apply one step and record it, then read what the repository index says where that is asked for."""
        around, bench = self._around, self._bench
        bench.deadline_s = scheduled.spec.deadline_s
        bench.random = scheduled.random()
        bench.observed = {}
        if scheduled.position.track == "main":
            around.measuring.at(scheduled.position)
        log_start, started_ns = log_size(around.log_file), around.journal.now_ns()
        reply = scheduled.step.apply(bench)
        ended_ns = around.journal.now_ns()
        self._observe_index(scheduled)
        finished = StepFinished(
            position=scheduled.position,
            started_ns=started_ns,
            t_ns=ended_ns,
            spec=scheduled.spec,
            reply=reply,
            observed=dict(bench.observed),
            log_start=log_start,
            log_end=log_size(around.log_file),
        )
        around.journal.record(finished)
        self._look_after(finished)
        return finished

    def _observe_index(self, scheduled: ScheduledStep) -> None:
        """Ask the index only where the expectation names a state or a reason."""
        expect = scheduled.spec.expect
        if not expect.state and expect.reason is None:
            return
        index = parse_index(self._bench.client.index(_ASK_S)) or ()
        self._bench.observe(**_seen_in(index, scheduled.spec.model))

    def _look_after(self, finished: StepFinished) -> None:
        """Take the loaded reading and the probe that belong to a load or unload on the main track."""
        name, model = finished.spec.name, finished.spec.model
        if name not in _CHANGES_STATE or model is None or finished.position.track != "main":
            return
        is_answered = isinstance(finished.reply, Answer)
        if name == "load" and is_answered and _status(finished.reply) == 200:
            self._around.measuring.take("loaded")
        if self._around.probes and is_answered and self._around.server.is_running:
            self._around.journal.record(self._probe(finished, model))

    def _probe(self, finished: StepFinished, model: str) -> Probe:
        client = self._bench.client
        return Probe(
            position=finished.position,
            t_ns=self._around.journal.now_ns(),
            model=model,
            index=parse_index(client.index(_ASK_S)),
            model_ready=_status(client.model_ready(model, _ASK_S)),
            metadata=_status(client.metadata(model, _ASK_S)),
            live=_status(client.live(_ASK_S)),
            ready=_status(client.ready(_ASK_S)),
        )


def _status(reply: Reply | None) -> int | None:
    return reply.status if isinstance(reply, Answer) else None


def _seen_in(index: tuple[ModelState, ...], model: str | None) -> dict[str, JsonValue]:
    """States and reason as the index has them; with several versions the most alive one counts."""
    order = ("READY", "LOADING", "UNLOADING", "UNAVAILABLE", "")
    states: dict[str, str] = {}
    for entry in sorted(index, key=lambda entry: order.index(entry.state) if entry.state in order else 0, reverse=True):
        states[entry.name] = entry.state or "ABSENT"
    reasons = [entry.reason for entry in index if entry.name == model and entry.reason]
    return {"states": states, "reason": "; ".join(reasons)}
