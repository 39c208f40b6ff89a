"""Wait for a state, or for a time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, Literal

from tritonchaos.observations import Answer, Reply
from tritonchaos.plugins import STEPS, Contract, Seconds, Workbench

_POLL_S = 0.02


@STEPS.register
@dataclass(frozen=True, slots=True)
class WaitFor:
    """Wait until a model has a state in the index, or until the server is live or ready.

    Attributes:
        model: The scenario's name of the model.
        state: Wanted state of the model; ABSENT: in none of READY, LOADING, UNLOADING.
        server: "live" or "ready", instead of a model.
    """

    name: ClassVar[str] = "wait_for"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str | None = None
    state: Literal["READY", "UNAVAILABLE", "LOADING", "UNLOADING", "ABSENT"] = "READY"
    server: Literal["live", "ready"] | None = None

    def __post_init__(self) -> None:
        if (self.model is None) == (self.server is None):
            raise ValueError("found neither or both of `model` and `server`, expected one of them")

    def apply(self, bench: Workbench) -> Reply | None:
        """Poll until the state is there or the deadline has passed."""
        end = time.monotonic() + bench.deadline_s
        while True:
            reached, found = self._look(bench, max(end - time.monotonic(), _POLL_S))
            if reached:
                return None
            if time.monotonic() >= end:
                wanted = self.server or f"{self.model} {self.state}"
                bench.observe(not_reached=f"waited {bench.deadline_s:g} s for {wanted}, found {found}")
                return None
            bench.pause(_POLL_S)

    def _look(self, bench: Workbench, deadline_s: float) -> tuple[bool, str]:
        if self.server is not None:
            reply = bench.client.live(deadline_s) if self.server == "live" else bench.client.ready(deadline_s)
            return isinstance(reply, Answer) and reply.status == 200, _shown(reply)
        return self._look_at_model(bench, deadline_s)

    def _look_at_model(self, bench: Workbench, deadline_s: float) -> tuple[bool, str]:
        from tritonchaos.client import parse_index

        reply = bench.client.index(deadline_s)
        index = parse_index(reply)
        if index is None:
            return False, _shown(reply)
        states = {entry.state for entry in index if entry.name == self.model}
        if self.state == "ABSENT":
            return not states & {"READY", "LOADING", "UNLOADING"}, "/".join(sorted(states))
        return self.state in states, "/".join(sorted(states)) or "no entry in the index"


def _shown(reply: Reply) -> str:
    return f"status {reply.status}" if isinstance(reply, Answer) else f"no answer ({reply.reason})"


@STEPS.register
@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a time, such as 60s; prefer wait_for where there is a state to wait for.

    Attributes:
        seconds: How long.
    """

    name: ClassVar[str] = "wait"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    seconds: Seconds

    def apply(self, bench: Workbench) -> None:
        """Do nothing for a while; an interrupt of the run cuts it short."""
        bench.pause(self.seconds)
