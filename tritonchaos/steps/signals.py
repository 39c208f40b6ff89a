"""Send a signal to the server or to its python backend stubs."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from tritonchaos.plugins import STEPS, Contract, Workbench

SignalName = Literal[
    "SIGABRT", "SIGCONT", "SIGHUP", "SIGINT", "SIGKILL", "SIGSEGV", "SIGSTOP", "SIGTERM", "SIGUSR1", "SIGUSR2"
]
# The server's log tells these from a crash of its own by nothing.
_NOT_FOR_THE_SERVER: Final = frozenset({"SIGABRT", "SIGSEGV"})


@STEPS.register
@dataclass(frozen=True, slots=True)
class Signal:
    """Send a signal to the server, or to every stub that runs.

    A server that ends of it within the deadline was stopped by us and did not crash; start_server brings it back.

    Attributes:
        process: "server" or "stub".
        signal: Name of the signal, such as SIGKILL, or SIGSTOP and SIGCONT.
    """

    name: ClassVar[str] = "signal"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"signal"})

    process: Literal["server", "stub"]
    signal: SignalName

    def __post_init__(self) -> None:
        if self.process == "server" and self.signal in _NOT_FOR_THE_SERVER:
            raise ValueError(f"found {self.signal} for the server, expected SIGKILL: this looks like its own crash")

    def apply(self, bench: Workbench) -> None:
        """Send it; without such a process the step is not as expected."""
        number = signal.Signals[self.signal]
        bench.observe(signalled=bench.server.signal(self.process, number, bench.deadline_s))
