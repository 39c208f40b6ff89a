"""Unload a model over the repository API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tritonchaos.observations import Answer, Reply
from tritonchaos.plugins import STEPS, Contract, Workbench


@STEPS.register
@dataclass(frozen=True, slots=True)
class Unload:
    """Unload a model and wait until the repository index shows it gone.

    Attributes:
        model: The scenario's name of the model.
        unload_dependents: Unload the models that an ensemble is made of too.

    Source: Triton model repository extension, "Unload": the answer comes before the model is gone.
    """

    name: ClassVar[str] = "unload"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    ways: ClassVar[tuple[str, ...]] = ("http", "grpc")

    model: str
    unload_dependents: bool = False

    def apply(self, bench: Workbench) -> Reply:
        """Send the unload request, then watch the index (always over HTTP) for the rest of the deadline."""
        reply = bench.asked.unload(self.model, bench.deadline_s, unload_dependents=self.unload_dependents)
        if isinstance(reply, Answer) and reply.status == 200:
            _observe_gone(self.model, bench, bench.deadline_s - reply.elapsed_ns / 1e9)
        return reply


def _observe_gone(model: str, bench: Workbench, deadline_s: float) -> None:
    from tritonchaos.client import wait_until_gone

    result = wait_until_gone(bench.client, model, max(deadline_s, 0.1))
    bench.observe(state=result.state, reason=result.reason)
    if result.gone:
        bench.observe(gone_after_ns=result.after_ns)
    else:
        bench.observe(stuck=result.state or "an index that does not answer")
