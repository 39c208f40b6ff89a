"""What only a target that runs its server in a container may be able to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tritonchaos.plugins.targets import LaunchSpec

# Where a server can be made to find no space: its TMPDIR, or its /dev/shm.
Place = Literal["temp", "shared_memory"]


@dataclass(frozen=True, slots=True)
class OwnFolders:
    """Folders of a server that are not those of this machine, as paths of this process.

    Attributes:
        temp: Its TMPDIR; None where it may not be read.
        shared_memory: Its /dev/shm; None where it may not be read.
        cgroups: Controller -> folder of its cgroup, "" for the one of cgroup v2.
    """

    temp: Path | None
    shared_memory: Path | None
    cgroups: Mapping[str, Path] = field(default_factory=dict)


@runtime_checkable
class HasOwnFolders(Protocol):
    """A target whose server has a temp folder and a /dev/shm of its own."""

    def own_folders(self, launch: LaunchSpec) -> OwnFolders:
        """Those of the server that runs; empty folders of the run while none does."""


@runtime_checkable
class HasNotes(Protocol):
    """A target that has something to say to the reader of a report."""

    def notes(self) -> Sequence[str]:
        """Sentences; asked once, when its server has started."""


@runtime_checkable
class HasRunLine(Protocol):
    """A target that starts its server with a command that people know."""

    def run_line(self, launch: LaunchSpec) -> str:
        """The shell command that would start an equal server."""


@runtime_checkable
class HasEndFacts(Protocol):
    """A target that knows more of an end than the exit code."""

    def end_facts(self) -> Mapping[str, str]:
        """Facts of the last end; {} while the server runs."""


@runtime_checkable
class Pausable(Protocol):
    """A target whose server can be frozen, with all its processes."""

    def pause(self) -> None: ...
    def unpause(self) -> None: ...


@runtime_checkable
class Limited(Protocol):
    """A target whose server's memory can be limited while it runs."""

    def limit_memory(self, limit_bytes: int) -> str:
        """Set the limit; return why it could not be set, "" if it was."""


@runtime_checkable
class Networked(Protocol):
    """A target whose server can be cut off from us."""

    def cut_network(self) -> None: ...
    def join_network(self) -> None: ...


@runtime_checkable
class HasScratch(Protocol):
    """A target whose server has scratch space of its own that can be filled up."""

    def fill_scratch(self, place: Place, leave_bytes: int) -> str:
        """Take all space but some; return why it could not be taken, "" if it was."""

    def free_scratch(self) -> None:
        """Give back what `fill_scratch` took; harmless if nothing was."""


@runtime_checkable
class ContainerFaults(Pausable, Limited, Networked, HasScratch, Protocol):
    """All of these: what steps that break a container ask for."""


@runtime_checkable
class HasFaults(Protocol):
    """A target whose server runs in a container that can be broken."""

    def faults(self) -> ContainerFaults:
        """What may be done to it while the server runs.

        Raises:
            TargetError: It does not run.
        """
