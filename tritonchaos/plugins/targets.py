"""Targets: how a tritonserver is started, watched and stopped, and what else one may be able to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tritonchaos.processes import Process

from tritonchaos.plugins.naming import Named


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """How a tritonserver is to be started.

    Attributes:
        repository: The model repository folder, absolute.
        scratch: An existing folder of this run for whatever the target must lay out; removed at the run's end.
        temp: An existing empty folder that the server gets as TMPDIR.
        log_file: Where the server's output goes, from its first byte; appended to after a restart.
        shm_prefix: Prefix that the python backend must give its shared memory regions ("tc_<run id>_").
        backends: Backend name -> folder with our own backend library (the planted backend), to be made loadable.
        mode: Model control mode: "explicit", "poll" or "none".
        flags: Further tritonserver flags without the leading dashes; True becomes "true".
        env: Environment variables on top of the target's own; None: the server does not get that one.
        ulimits: Resource limits such as "nofile" -> value, -1 for none.
        startup_deadline_s: Longest time until the live endpoint answers.
        may_trim: The run will want `CanTrim.trim` of this server; what that takes may be prepared.
        may_cut_network: The run may cut this server off, so that no way to it may be taken that could not be cut.
    """

    repository: Path
    scratch: Path
    temp: Path
    log_file: Path
    shm_prefix: str
    backends: Mapping[str, Path] = field(default_factory=dict)
    mode: str = "explicit"
    flags: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    env: Mapping[str, str | None] = field(default_factory=dict)
    startup_deadline_s: float = 60.0
    ulimits: Mapping[str, int] = field(default_factory=dict)
    may_trim: bool = False
    may_cut_network: bool = True

    def with_settings(self, settings: ServerSettings) -> LaunchSpec:
        """The same start with other settings."""
        names = (one.name for one in fields(settings))
        return replace(self, **{name: getattr(settings, name) for name in names})


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a start of the server may differ from the one before it; the fields are those of `LaunchSpec`."""

    mode: str = "explicit"
    flags: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    env: Mapping[str, str | None] = field(default_factory=dict)
    ulimits: Mapping[str, int] = field(default_factory=dict)
    startup_deadline_s: float = 60.0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A tritonserver whose live endpoint has answered.

    Attributes:
        url: HTTP base URL, "http://127.0.0.1:PORT".
        grpc: "127.0.0.1:PORT", or None where gRPC is off.
        pid: Process as this host sees it; None where not knowable.
        is_ours: We started it, with the launch's TMPDIR and shared memory prefix.
        is_here: It runs on this machine, so that this machine's GPUs are those that it uses.
    """

    url: str
    grpc: str | None
    pid: int | None
    is_ours: bool = True
    is_here: bool = True


@dataclass(frozen=True, slots=True)
class Stop:
    """How a server ended when it was told to.

    Attributes:
        signal: Last signal sent, "SIGTERM" or "SIGKILL"; "" if it had already ended.
        exit_code: Exit code, or minus the signal number that ended it.
        forced: SIGKILL was needed.
        left: (kind, name, bytes) of what it left behind and what was cleaned up: "process" or "shm".
    """

    signal: str
    exit_code: int | None
    forced: bool
    left: tuple[tuple[str, str, int], ...] = ()


# What only some targets can do, and what it means; `Target.abilities` and `Step.needs` are made of these names.
ABILITIES: Final[Mapping[str, str]] = {
    "start": "start the server, with the flags and the environment that the scenario gives",
    "stop": "stop the server for good",
    "restart": "stop the server and start it again",
    "signal": "send signals to the server's processes",
    "log": "read the server's log",
    "grpc": "be asked over gRPC",
    "backends": "make our own backend libraries loadable beside the server's",
    "pause": "freeze the server with all its processes",
    "limit_memory": "limit the server's memory while it runs",
    "cut_network": "cut the server off from us",
    "fill_scratch": "fill up the server's scratch space",
}
# These need a container around the server.
OF_CONTAINERS: Final = frozenset({"pause", "limit_memory", "cut_network", "fill_scratch"})


@runtime_checkable
class HasAbilities(Protocol):
    """A target that says what it can do; one without this can do all but what needs a container."""

    abilities: frozenset[str]


def abilities_of(target: Target) -> frozenset[str]:
    """Names from `ABILITIES` that a target has."""
    return target.abilities if isinstance(target, HasAbilities) else frozenset(ABILITIES) - OF_CONTAINERS


@runtime_checkable
class CanTrim(Protocol):
    """A target whose server can be made to give back what its allocators keep, which tells retention from a leak."""

    def trim(self, deadline_s: float) -> str:
        """Call malloc_trim, and trim memory pools, in the running server; return why it was not done, "" if it was."""


@runtime_checkable
class HasStacks(Protocol):
    """A target that can look into the threads of its server."""

    def stacks(self) -> Mapping[int, str]:
        """Stacks of all threads of the server and its stubs, by process id; "not taken: WHY" for one that refuses.

        Raises:
            TargetError: They cannot be taken here; the hint says what to install.
        """


@dataclass(frozen=True, slots=True)
class RepositoryPlace:
    """Where the models of a run are laid out, and how the server gets them.

    Attributes:
        shared: Folder that the server reads too and that is not ours: only our models are put in, and removed again.
            None: a folder of the run.
        sends_files: The server does not read that folder; the files are sent along with every load.
    """

    shared: Path | None = None
    sends_files: bool = False


@runtime_checkable
class HasRepositoryPlace(Protocol):
    """A target whose server does not simply read the run's own model repository."""

    def repository_place(self) -> RepositoryPlace: ...


def repository_place(target: Target) -> RepositoryPlace:
    """Where the models of a run on a target are laid out; without a say of its own, in a folder of the run."""
    return target.repository_place() if isinstance(target, HasRepositoryPlace) else RepositoryPlace()


@runtime_checkable
class HasOwnModels(Protocol):
    """A target whose server has models of its own."""

    def check_models(self, names: Collection[str]) -> None:
        """Raise `TargetUnavailable` if one of these names is taken; else these are the models of the run."""


@runtime_checkable
class BuildsFiles(Protocol):
    """A target that builds model files where its server will run, by a process that ends before the server starts."""

    def build_place(self) -> str:
        """What a built file depends on beside its script and parameters, such as "sha256:… GPU-uuid"."""

    def run_to_build(self, folder: Path, command: Sequence[str], deadline_s: float) -> tuple[int | None, str]:
        """Run a command there, with the GPUs that the server will get, and wait for its end.

        Args:
            folder: Absolute path of a folder that it may write, under the same path there.

        Returns:
            Its exit code (minus the signal number after a signal; None: it was ended at the deadline), and what it
            printed.

        Raises:
            TargetError: It could not be run.
        """


@runtime_checkable
class CompilesLibraries(BuildsFiles, Protocol):
    """A target that also compiles our C sources for the place where its server will run."""

    def missing_compiler(self) -> str | None:
        """Say why there is no C compiler for it; None where there is one."""

    def compile_shared(self, name: str, sources: Sequence[Path], flags: Sequence[str] = ()) -> Path:
        """Compile C sources into a shared library; see `native.compile_shared`.

        Raises:
            TemplateError: It cannot be compiled.
        """


@runtime_checkable
class MayVanish(Protocol):
    """A target that can see that its server has ended, but not with which exit code."""

    def has_vanished(self) -> bool:
        """Tell whether the server that `start` gave has ended."""


class Target(Named, Protocol):
    """Starts, watches and stops one tritonserver (see also `HasAbilities`, `HasRepositoryPlace`, `MayVanish`)."""

    def check(self) -> None:
        """Raise `TargetUnavailable`, with the reason and a hint, if this target cannot be used here."""

    def describe(self) -> Mapping[str, str]:
        """Facts for the report: "target", "triton_version", "server_path" or "image", "gpu_uuids" (comma separated)."""

    def backends(self) -> frozenset[str] | None:
        """Names of the backends that this target's server brings itself; None: not known, so variants are named."""

    def start(self, launch: LaunchSpec) -> RunningServer:
        """Start the server and return once live answers.

        Raises:
            TargetNotLive: It ended or stayed silent; nothing of it is left running.
        """

    def exit_code(self) -> int | None:
        """Exit code (minus the signal number after a signal); None while running or not knowable."""

    def stop(self) -> Stop:
        """Stop the server as documented (SIGTERM, wait, SIGKILL) and reap all it started; harmless if it has ended."""


@runtime_checkable
class HasProcesses(Protocol):
    """A target that knows the processes of its server."""

    def processes(self) -> Sequence[Process]:
        """The server, its stubs and what else it started; empty when it does not run."""


@runtime_checkable
class Killable(HasProcesses, Protocol):
    """A target whose processes can be signalled."""

    def kill(self, signal_number: int, pid: int) -> bool:
        """Send a signal to one of `processes`; False if that process has ended."""
