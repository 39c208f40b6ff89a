"""Steps, and the workbench that they touch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, ClassVar, Protocol

from tritonchaos.observations import JsonValue, Reading, Reply

if TYPE_CHECKING:
    from tritonchaos.client import ModelCalls, TritonClient
    from tritonchaos.repository import ModelRepository
    from tritonchaos.templates import ServedModel

from tritonchaos.plugins.container_targets import ContainerFaults
from tritonchaos.plugins.naming import Contract, Named
from tritonchaos.plugins.targets import ServerSettings


class ServerControl(Protocol):
    """Start and stop of the server, and its processes, as steps may ask for them."""

    def start(self, settings: ServerSettings | None = None) -> None:
        """Start the server unless it runs; None: as it was started the last time."""

    def stop(self) -> None: ...

    def signal(self, role: str, number: int, deadline_s: float) -> int:
        """Signal the server ("server") or all its stubs ("stub"); return how many processes got it.

        A server that ends of it within the deadline has been stopped by us: that is no crash.
        """

    def faults(self) -> ContainerFaults:
        """Faults of the server's container; only for steps whose `needs` say so."""

    def trim(self, deadline_s: float) -> str:
        """Make the server give back what its allocators keep; return why it was not done, "" if it was."""


class Readings(Protocol):
    """Readings of all metrics, as steps may ask for them; both are recorded."""

    def take(self, name: str) -> Reading: ...
    def settle(self) -> None: ...

    def around_trim(self, trim: Callable[[], str]) -> str:
        """Take the readings "before_trim" and "after_trim"; return what `trim` says: why it was not done, or ""."""


@dataclass(slots=True)
class Workbench:
    """What a step may touch. One per track; the engine renews the fields below `observed` for each step.

    Attributes:
        client: Talks to the server; one per track, as connections are not shared.
        repository: The model repository on disk.
        models: Served models by the scenario's name for them.
        server: Start and stop.
        readings: Named readings and settle windows.
        pause: Wait for a number of seconds; an interrupt of the run cuts it short.
        deadline_s: How long this step may take.
        random: Seeded for this very step.
        observed: What the step saw beyond its reply; filled by `observe`.
        via: How the server is to be asked by a step with `ways`: "http" or "grpc".
    """

    client: TritonClient
    repository: ModelRepository
    models: Mapping[str, ServedModel]
    server: ServerControl
    readings: Readings
    pause: Callable[[float], None]
    deadline_s: float = 30.0
    random: Random = field(default_factory=Random)
    observed: dict[str, JsonValue] = field(default_factory=dict)
    via: str = "http"

    @property
    def asked(self) -> ModelCalls:
        """The client, or the one with the same calls over gRPC."""
        return self.client if self.via == "http" else self.client.over(self.via)

    def observe(self, **facts: JsonValue) -> None:
        """Record facts beyond the reply, under the keys listed at `StepFinished.observed`."""
        self.observed.update(facts)


class Step(Named, Protocol):
    """One thing done to the server or its model repository.

    A step that not every target can carry out has `needs`, names from `ABILITIES` (see `needs_of`). One that can ask
    the server in another way than over HTTP has `ways` (see `ways_of`) and asks `Workbench.asked`.
    """

    contract: ClassVar[Contract]

    def apply(self, bench: Workbench) -> Reply | None:
        """Do it. A bad answer of the server is a reply, not an exception."""


def needs_of(step: Step) -> frozenset[str]:
    """Abilities that a target must have for a step; one that holds other steps answers for them too."""
    needs: frozenset[str] = getattr(step, "needs", frozenset())
    return needs


def ways_of(step: type[Step] | Step) -> tuple[str, ...]:
    """Values of `via` that a step takes: "http", "grpc", and "both" where one after the other has a meaning."""
    ways: tuple[str, ...] = getattr(step, "ways", ("http",))
    return ways
