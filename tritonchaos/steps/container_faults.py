"""Faults of the container that the server runs in: frozen, short of memory, cut off, out of scratch space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from tritonchaos.plugins import STEPS, ByteCount, Contract, Place, Seconds, Workbench


@STEPS.register
@dataclass(frozen=True, slots=True)
class Pause:
    """Freeze the server with all its processes; it answers nothing until it goes on.

    Attributes:
        seconds: How long, written `for`; none: until unpause, or the end of the run.
    """

    name: ClassVar[str] = "pause"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"pause"})

    seconds: Annotated[Seconds | None, Field(alias="for")] = None

    def apply(self, bench: Workbench) -> None:
        """Freeze it, and let it go on after the time."""
        faults = bench.server.faults()
        faults.pause()
        if self.seconds is not None:
            try:
                bench.pause(self.seconds)
            finally:
                faults.unpause()


@STEPS.register
@dataclass(frozen=True, slots=True)
class Unpause:
    """Let a frozen server go on."""

    name: ClassVar[str] = "unpause"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"pause"})

    def apply(self, bench: Workbench) -> None:
        """Harmless if it is not frozen."""
        bench.server.faults().unpause()


@STEPS.register
@dataclass(frozen=True, slots=True)
class LimitMemory:
    """Limit the server's memory while it runs; a server that needs more is killed by the kernel, a crash.

    Attributes:
        limit: Most memory of the container, such as 512MiB.
    """

    name: ClassVar[str] = "limit_memory"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"limit_memory"})

    limit: ByteCount

    def apply(self, bench: Workbench) -> None:
        """Set the limit; one that the kernel refuses (less than what is in use) is not as expected."""
        _observe(bench, bench.server.faults().limit_memory(self.limit))


@STEPS.register
@dataclass(frozen=True, slots=True)
class CutNetwork:
    """Cut the server off from us: nothing comes through, and nobody is told.

    Attributes:
        seconds: How long, written `for`; none: until join_network, or the next start of the server.
    """

    name: ClassVar[str] = "cut_network"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"cut_network"})

    seconds: Annotated[Seconds | None, Field(alias="for")] = None

    def apply(self, bench: Workbench) -> None:
        """Cut it off, and join it again after the time."""
        faults = bench.server.faults()
        faults.cut_network()
        if self.seconds is not None:
            try:
                bench.pause(self.seconds)
            finally:
                faults.join_network()


@STEPS.register
@dataclass(frozen=True, slots=True)
class JoinNetwork:
    """Let requests come through to the server again."""

    name: ClassVar[str] = "join_network"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"cut_network"})

    def apply(self, bench: Workbench) -> None:
        """Harmless if it is not cut off."""
        bench.server.faults().join_network()


@STEPS.register
@dataclass(frozen=True, slots=True)
class FillScratch:
    """Take the space of the server's TMPDIR or /dev/shm, so that whoever writes there finds none.

    Attributes:
        place: temp or shared_memory.
        leave: Space that is left.
    """

    name: ClassVar[str] = "fill_scratch"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"fill_scratch"})

    place: Place = "temp"
    leave: ByteCount = 0

    def apply(self, bench: Workbench) -> None:
        """Take it until free_scratch, or the end of the server."""
        _observe(bench, bench.server.faults().fill_scratch(self.place, self.leave))


@STEPS.register
@dataclass(frozen=True, slots=True)
class FreeScratch:
    """Give back the space that fill_scratch took."""

    name: ClassVar[str] = "free_scratch"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    needs: ClassVar[frozenset[str]] = frozenset({"fill_scratch"})

    def apply(self, bench: Workbench) -> None:
        """Harmless if nothing was taken."""
        bench.server.faults().free_scratch()


def _observe(bench: Workbench, why_not: str) -> None:
    if why_not:
        bench.observe(not_reached=why_not)
