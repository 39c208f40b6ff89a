"""How the server is started: for the run, and for one phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from tritonchaos.plugins import ServerSettings
from tritonchaos.scenario.expect_fields import PositiveSeconds
from tritonchaos.scenario.record import Record
from tritonchaos.scenario.values import (
    Flags,
    LimitName,
    LimitValue,
    ModelControlMode,
    VariableName,
    VariableValue,
)

Fresh = Literal["run", "phase", "cycle"]


class ServerOptions(Record):
    """How tritonserver is started.

    Attributes:
        mode: Model control mode; the server loads every model by itself in poll and none.
        flags: Further tritonserver flags, without the dashes in front.
        env: Environment variables; nothing as value: the server does not get the one that we have.
        ulimits: Resource limits of the server, such as {nofile: 1024, as: 8GiB, core: unlimited}.
        fresh: Start it anew for the run, before each phase, or before each cycle. A new server breaks every series of
            readings, so nothing can be said of growth over cycles with fresh: cycle.
        startup_deadline: Longest time until the server's live endpoint answers.
        restarts_at_most: How often in the run it is started again after a crash or a hang.
    """

    mode: ModelControlMode = "explicit"
    flags: Flags = Field(default_factory=dict)
    env: Mapping[VariableName, VariableValue] = Field(default_factory=dict)
    ulimits: Mapping[LimitName, LimitValue] = Field(default_factory=dict)
    fresh: Fresh = "run"
    startup_deadline: PositiveSeconds = 60.0
    restarts_at_most: Annotated[StrictInt, Field(ge=0, le=10**9)] = 20

    @property
    def startup_deadline_s(self) -> float:
        """The same, with its unit in the name."""
        return self.startup_deadline

    def settings(self) -> ServerSettings:
        """What a start of the server needs of it."""
        ulimits = {str(name): value for name, value in self.ulimits.items()}
        return ServerSettings(self.mode, self.flags, self.env, ulimits, self.startup_deadline)


class PhaseServer(Record):
    """How the server is started for one phase; what is absent is as at the top of the file.

    Attributes:
        mode: Model control mode.
        flags: Flags beside those at the top; one that is there too is replaced.
        env: Environment variables, likewise.
        ulimits: Resource limits, likewise.
        fresh: Start it anew before this phase, or before each of its cycles.
        startup_deadline: Longest time until the server's live endpoint answers.
    """

    mode: ModelControlMode | None = None
    flags: Flags = Field(default_factory=dict)
    env: Mapping[VariableName, VariableValue] = Field(default_factory=dict)
    ulimits: Mapping[LimitName, LimitValue] = Field(default_factory=dict)
    fresh: Fresh | None = None
    startup_deadline: PositiveSeconds | None = None

    def over(self, server: ServerOptions) -> ServerOptions:
        """Lay these options over those at the top of the file."""
        update: dict[str, Any] = {
            "flags": {**server.flags, **self.flags},
            "env": {**server.env, **self.env},
            "ulimits": {**server.ulimits, **self.ulimits},
        }
        single = {"mode": self.mode, "fresh": self.fresh, "startup_deadline": self.startup_deadline}
        update |= {key: value for key, value in single.items() if value is not None}
        return server.model_copy(update=update)
