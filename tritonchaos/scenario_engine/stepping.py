"""Applies one scheduled step on one track and records what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tritonchaos.client import TritonClient, parse_index
from tritonchaos.observations import Answer, NoAnswer, Position, Probe, Reading, StepFinished
from tritonchaos.plugins import ContainerFaults, ServerSettings, Workbench
from tritonchaos.repository import ModelRepository
from tritonchaos.scenario_engine.interrupt import Interrupt
from tritonchaos.scenario_engine.journal import Journal
from tritonchaos.scenario_engine.looking import look, status
from tritonchaos.scenario_engine.measuring import Measuring
from tritonchaos.scenario_engine.moments import Moments
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
        takes_loaded: Take the "loaded" reading after each load that succeeded.
        take: Returns a step as it is to be recorded, or None where it is only counted.
        moments: Hears of every step.
    """

    server: ServerLife
    repository: ModelRepository
    models: Mapping[str, ServedModel]
    measuring: Measuring
    journal: Journal
    interrupt: Interrupt
    log_file: Path
    probes: bool
    takes_loaded: bool = True
    take: Callable[[StepFinished], StepFinished | None] = lambda finished: finished
    moments: Moments = field(default_factory=Moments)


class _Control:
    """Start and stop as steps see them: the track's own client is renewed with each start."""

    def __init__(self, server: ServerLife, renew: Callable[[], None]) -> None:
        self._server = server
        self._renew = renew

    def start(self, settings: ServerSettings | None = None) -> None:
        self._server.start(settings)
        self._renew()

    def stop(self) -> None:
        self._server.stop()

    def signal(self, role: str, number: int, deadline_s: float) -> int:
        return self._server.signal(role, number, deadline_s)

    def faults(self) -> ContainerFaults:
        return self._server.faults()

    def trim(self, deadline_s: float) -> str:
        return self._server.trim(deadline_s)


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
        self.close()
        self._bench.client = self._around.server.client()

    def close(self) -> None:
        """Close this track's connection."""
        self._around.server.drop(self._bench.client)

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
        bench.via = scheduled.spec.via
        if scheduled.position.track == "main":
            around.measuring.at(scheduled.position)
        log_start, started_ns = log_size(around.log_file), around.journal.now_ns()
        around.moments.tell(scheduled.position, scheduled.spec, "started")
        reply = scheduled.step.apply(bench)
        ended_ns = around.journal.now_ns()
        log = around.log_file, log_start
        bench.observe(**look(scheduled.spec.expect, scheduled.spec.model, bench.client, around.server, log))
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
        around.moments.tell(scheduled.position, scheduled.spec, "finished")
        kept = around.take(finished)
        if kept is not None:
            around.journal.record(kept)
            self._record_latency(kept)
        self._look_after(finished)
        return finished

    def _record_latency(self, finished: StepFinished) -> None:
        """A step with `record` gives its cycle one more reading; a call without an answer has no latency."""
        name, reply = finished.spec.record, finished.reply
        if not name or isinstance(reply, NoAnswer):
            return
        took_ns = finished.t_ns - finished.started_ns if reply is None else reply.elapsed_ns
        values = {f"latency_{name}_ns": took_ns}
        self._around.journal.record(Reading(finished.t_ns, "record", finished.position, values))

    def _look_after(self, finished: StepFinished) -> None:
        """Take the loaded reading and the probe that belong to a load or unload on the main track."""
        name, model = finished.spec.name, finished.spec.model
        if name not in _CHANGES_STATE or model is None or finished.position.track != "main":
            return
        is_answered = isinstance(finished.reply, Answer)
        if name == "load" and self._around.takes_loaded and status(finished.reply) == 200:
            self._around.measuring.take_loaded()
        if self._around.probes and is_answered and self._around.server.is_running:
            self.probe(finished.position, model)

    def probe(self, position: Position, model: str) -> None:
        """Record what the server says of a model and of itself."""
        client = self._bench.client
        index = parse_index(client.index(_ASK_S))
        probe = Probe(
            position=position,
            t_ns=self._around.journal.now_ns(),
            model=model,
            index=index,
            model_ready=status(client.model_ready(model, _ASK_S)),
            metadata=status(client.metadata(model, _ASK_S)),
            live=status(client.live(_ASK_S)) if index is None else None,
            ready=status(client.ready(_ASK_S)) if index is None else None,
        )
        self._around.journal.record(probe)
