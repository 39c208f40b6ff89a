"""Start, stop and restart the server in the middle of a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tritonchaos.plugins import STEPS, Contract, Workbench


@STEPS.register
@dataclass(frozen=True, slots=True)
class StartServer:
    """Start the server if it is not running; every series of readings begins anew."""

    name: ClassVar[str] = "start_server"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"start"})

    def apply(self, bench: Workbench) -> None:
        """Return once live answers."""
        bench.server.start()


@STEPS.register
@dataclass(frozen=True, slots=True)
class StopServer:
    """Stop the server with SIGTERM, and with SIGKILL if it will not stop."""

    name: ClassVar[str] = "stop_server"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"stop"})

    def apply(self, bench: Workbench) -> None:
        """Close our own connections first: one that is open makes the server wait for its whole exit timeout."""
        bench.server.stop()


@STEPS.register
@dataclass(frozen=True, slots=True)
class RestartServer:
    """Stop the server and start it again."""

    name: ClassVar[str] = "restart_server"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"restart"})

    def apply(self, bench: Workbench) -> None:
        """Stop, then start."""
        bench.server.stop()
        bench.server.start()
