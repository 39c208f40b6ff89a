"""The plug-in points: protocols, the workbench that steps touch, registries, and how plug-ins are found."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BeforeValidator, WithJsonSchema

from tritonchaos.errors import PluginError
from tritonchaos.observations import Event, History, JsonValue, Reading, Reply
from tritonchaos.units import parse_bytes, parse_seconds
from tritonchaos.verdict import Assessment

if TYPE_CHECKING:
    from tritonchaos.client import TritonClient
    from tritonchaos.post_unload import CycleReading
    from tritonchaos.processes import Process
    from tritonchaos.repository import ModelRepository
    from tritonchaos.summary import FinishedRun
    from tritonchaos.templates import ServedModel

FAMILIES: Final = ("targets", "steps", "samplers", "checkers", "reporters")

# What plug-in fields are annotated with when the scenario file may give them with a unit.
Seconds = Annotated[
    float,
    BeforeValidator(parse_seconds),
    WithJsonSchema({"type": ["number", "string"], "description": 'Seconds, or a time with a unit such as "30s".'}),
]
ByteCount = Annotated[
    int,
    BeforeValidator(parse_bytes),
    WithJsonSchema({"type": ["integer", "string"], "description": 'Bytes, or a size with a unit such as "64MiB".'}),
]


class Contract(str, Enum):
    """Does a step stay within what Triton documents?"""

    DOCUMENTED = "documented"
    UNDOCUMENTED = "undocumented"


class Named(Protocol):
    """What every plug-in has; the first line of its docstring is its help."""

    name: ClassVar[str]


# --- targets -------------------------------------------------------------------------------------


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
    "backends": "make our own backend libraries loadable beside the server's",
}


@runtime_checkable
class HasAbilities(Protocol):
    """A target that cannot do everything; one without this can."""

    abilities: frozenset[str]


def abilities_of(target: Target) -> frozenset[str]:
    """Names from `ABILITIES` that a target has."""
    return target.abilities if isinstance(target, HasAbilities) else frozenset(ABILITIES)


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


# --- samplers ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SampleScope:
    """Whose numbers a sampler reads.

    Attributes:
        pid: The server process; None before it starts and after it ended (then only device metrics exist).
        gpu_uuids: GPUs to read; empty: every visible GPU.
        shm_prefix: Names in /dev/shm that are this run's.
        temp: The server's TMPDIR.
        is_here: The server runs on this machine; if not, the numbers of this machine are none of it.
    """

    pid: int | None
    gpu_uuids: tuple[str, ...] = ()
    shm_prefix: str = ""
    temp: Path | None = None
    is_here: bool = True


class Group(str, Enum):
    """Which metrics a reading covers: the fast group alone (50 Hz), or the slow group too."""

    FAST = "fast"
    ALL = "all"


class Sampler(Named, Protocol):
    """Reads numbers, fast; opened again after every start of a server."""

    def open(self, scope: SampleScope) -> Mapping[str, str]:
        """Get ready to read; return metric -> why it cannot be read here. Never raises for a missing driver."""

    def read(self, group: Group) -> Mapping[str, int]:
        """Metric with unit suffix -> value. A metric that cannot be read now is absent, never zero.

        Raises:
            SamplerError: Metrics that were there are lost for good.
        """

    def quanta(self) -> Mapping[str, int]:
        """Metric -> smallest step it can show (2 MiB on the device, 4096 bytes per host page, 1 for counts)."""

    def notes(self) -> Sequence[str]:
        """What a reader should know, such as who else uses the GPU."""

    def close(self) -> None:
        """Release what `open` took."""


@runtime_checkable
class HasCapacities(Protocol):
    """A sampler of memory that can run out."""

    def capacities(self) -> Mapping[str, int]:
        """Metric -> total bytes that there are."""


# --- steps ---------------------------------------------------------------------------------------


class ServerControl(Protocol):
    """Start and stop of the server, and its processes, as steps may ask for them."""

    def start(self, settings: ServerSettings | None = None) -> None:
        """Start the server unless it runs; None: as it was started the last time."""

    def stop(self) -> None: ...

    def signal(self, role: str, number: int, deadline_s: float) -> int:
        """Signal the server ("server") or all its stubs ("stub"); return how many processes got it.

        A server that ends of it within the deadline has been stopped by us: that is no crash.
        """


class Readings(Protocol):
    """Readings of all metrics, as steps may ask for them; both are recorded."""

    def take(self, name: str) -> Reading: ...
    def settle(self) -> None: ...


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

    def observe(self, **facts: JsonValue) -> None:
        """Record facts beyond the reply, under the keys listed at `StepFinished.observed`."""
        self.observed.update(facts)


class Step(Named, Protocol):
    """One thing done to the server or its model repository.

    A step that not every target can carry out has `needs`, names from `ABILITIES` (see `needs_of`).
    """

    contract: ClassVar[Contract]

    def apply(self, bench: Workbench) -> Reply | None:
        """Do it. A bad answer of the server is a reply, not an exception."""


def needs_of(step: Step) -> frozenset[str]:
    """Abilities that a target must have for a step; one that holds other steps answers for them too."""
    needs: frozenset[str] = getattr(step, "needs", frozenset())
    return needs


# --- checkers ------------------------------------------------------------------------------------


class Advice(str, Enum):
    """What a stopping rule says after a cycle."""

    GO_ON = "go_on"
    ENOUGH = "enough"


class Watch(Protocol):
    """A checker's stopping rule, fed one cycle at a time, live and again offline.

    Attributes:
        has_leak: What was seen so far is a leak; phases with `when: leak` are run.
    """

    @property
    def has_leak(self) -> bool: ...

    def see(self, reading: CycleReading) -> Advice: ...


class Checker(Named, Protocol):
    """Judges a history; pure. One that offers `watch() -> Watch` can end a phase (see `Watches`)."""

    def check(self, history: History) -> Sequence[Assessment]: ...


@runtime_checkable
class Watches(Protocol):
    """A checker that can say when the evidence is in."""

    def watch(self, uses_gpu: bool, metrics: Sequence[str]) -> Watch: ...


# --- reporters -----------------------------------------------------------------------------------


class Reporter(Named, Protocol):
    """Prints what `summary` computed, computes nothing."""

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        """Write into the run directory and return what was written."""


# --- registries ----------------------------------------------------------------------------------

PluginT = TypeVar("PluginT", bound=type)


@dataclass(frozen=True, slots=True)
class MissingPlugin:
    """A plug-in that could not be imported; it shows in `tritonchaos list` with the reason."""

    name: str
    reason: str


class Registry(Generic[PluginT]):
    """The plug-ins of one family, by name."""

    def __init__(self, family: str) -> None:
        self.family = family
        self._found: dict[str, type[Any]] = {}

    def register(self, plugin: PluginT) -> PluginT:
        """Class decorator: make a plug-in known under its `name`.

        Raises:
            PluginError: No name, no docstring, or the name is taken.
        """
        name = getattr(plugin, "name", None)
        if not isinstance(name, str) or not name:
            raise PluginError(f"{self.family}: {plugin.__name__} has no class attribute `name`")
        if not (plugin.__doc__ or "").strip():
            raise PluginError(f"{self.family}: {name} has no docstring; its first line is its help")
        taken = self._found.get(name)
        if taken is not None and taken.__qualname__ != plugin.__qualname__:
            raise PluginError(f"{self.family}: the name {name!r} is taken by {taken.__module__}")
        self._found[name] = plugin
        return plugin

    def __getitem__(self, name: str) -> type[Any]:
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def names(self) -> list[str]:
        """Names in alphabetical order."""
        return sorted(self._found)

    def help(self, name: str) -> str:
        """First line of the plug-in's docstring."""
        return (self._found[name].__doc__ or "").strip().splitlines()[0]


TARGETS: Final[Registry[Any]] = Registry("targets")
STEPS: Final[Registry[Any]] = Registry("steps")
SAMPLERS: Final[Registry[Any]] = Registry("samplers")
CHECKERS: Final[Registry[Any]] = Registry("checkers")
REPORTERS: Final[Registry[Any]] = Registry("reporters")

MISSING: Final[list[MissingPlugin]] = []


def _attempt(name: str, load: Callable[[], object]) -> None:
    try:
        load()
    except ImportError as error:
        missing = MissingPlugin(name, str(error))
        if missing not in MISSING:
            MISSING.append(missing)


def load_plugins(files: Sequence[Path] = ()) -> None:
    """Import every module of every family, the entry points `tritonchaos.plugins`, and single files.

    Args:
        files: Python files named with `--plugin`.

    Raises:
        PluginError: A named file is missing or fails; a built-in or entry point that cannot be imported is listed in
            `MISSING` instead.
    """
    for family in FAMILIES:
        package = importlib.import_module(f"tritonchaos.{family}")
        for module in pkgutil.iter_modules(package.__path__):
            name = f"tritonchaos.{family}.{module.name}"
            _attempt(f"{family}/{module.name}", lambda name=name: importlib.import_module(name))  # type: ignore[misc]
    for entry_point in importlib.metadata.entry_points(group="tritonchaos.plugins"):
        _attempt(entry_point.name, entry_point.load)
    for file in files:
        _load_file(file)


def _load_file(file: Path) -> None:
    if not file.is_file():
        raise PluginError(f"plug-in file {file} does not exist", hint="give the path of a Python file")
    spec = importlib.util.spec_from_file_location(f"tritonchaos_plugin_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise PluginError(f"plug-in file {file} is not a Python file", hint="its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and type hints look their module up by name.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except PluginError:
        raise
    except Exception as error:
        raise PluginError(f"plug-in file {file} failed: {type(error).__name__}: {error}") from error


class Recorder(Protocol):
    """Takes events in order; the store behind it decides when they are safe on disk."""

    def record(self, event: Event) -> None: ...
