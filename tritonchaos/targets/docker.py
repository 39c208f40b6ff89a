"""A tritonserver in a container: the pinned image, as users run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from tritonchaos.container_start import ContainerStart
from tritonchaos.containers import launching
from tritonchaos.containers.faults import Faults
from tritonchaos.containers.finding import Found, describe, find, notes
from tritonchaos.containers.libc import refuse_unloadable
from tritonchaos.containers.outside import Outside
from tritonchaos.containers.server_container import ServerContainer
from tritonchaos.containers.spec import ContainerSpec, docker_run_line
from tritonchaos.containers.stacks import take_stacks_beside
from tritonchaos.errors import TargetError, TritonChaosBug
from tritonchaos.local_server.server_flags import (
    exit_timeout_s,
    parse_help,
    refuse_unknown,
)
from tritonchaos.local_server.stacks import ARGUMENTS, find_debugger, take_stacks
from tritonchaos.local_server.trimming import Trimmer
from tritonchaos.plugins import ABILITIES, TARGETS, ByteCount, LaunchSpec, OwnFolders, RunningServer, Stop
from tritonchaos.processes import Process
from tritonchaos.units import GIB

_PORT_ATTEMPTS: Final = 3
_PORT_TAKEN: Final = ("port is already allocated", "address already in use", "Address already in use")
_SHOWN_LOG_LINES: Final = 20


class _PortTaken(Exception):
    """Somebody took one of the ports between our choice of it and the container's start."""


@TARGETS.register
@dataclass
class DockerTarget:
    """Run the tritonserver of an image in a container, through Docker or Podman, with no more rights than it needs.

    Attributes:
        image: NAME[:TAG][@sha256:DIGEST]; a digest is a pin, and any other image of that tag is refused.
        pull: When the image is fetched: missing, always or never.
        gpus: GPUs by number or UUID, or "all".
        gpu_access: How they come into the container: toolkit (NVIDIA Container Toolkit), cdi, devices (plain device
            nodes and the driver's libraries), or auto, the first of these that works.
        network: publish (on 127.0.0.1, at free ports), none (nothing is published, a relay in the same network
            namespace carries our requests), host, or the name of a network, published too.
        user: caller (so that every file is theirs), image (the image's own), or "UID:GID".
        shm_size: Size of /dev/shm.
        scratch_size: Size of /tmp, a tmpfs and the server's TMPDIR.
        memory: Most memory, such as 8GiB; none: no limit.
        pids_limit: Most processes and threads, 4096 or more; -1: no limit.
        mounts: Further folders, "SOURCE:TARGET", read-only unless "SOURCE:TARGET:rw".
        init: An init runs as process 1; without it tritonserver does, which survives signals that should end it.
        read_only: The root file system cannot be written.
        writable_models: The server may write into its copy of the model repository.
        no_new_privileges: No program in it gains privileges.
        keep_capabilities: Keep the capabilities that the engine gives by default; none are kept otherwise.
        cap_add: Capabilities that it gets, such as [SYS_PTRACE].
        security_opt: Security options as of docker run, such as [label=disable].
        entrypoint: In place of the image's own.
        command: What runs the server; its flags are appended.
        engine: Address of the engine, such as unix:///run/podman/podman.sock; none: as the docker command finds it.
    """

    name: ClassVar[str] = "docker"

    image: str
    pull: Literal["missing", "always", "never"] = "missing"
    gpus: tuple[int | str, ...] | Literal["all"] = ()
    gpu_access: Literal["auto", "toolkit", "cdi", "devices"] = "auto"
    network: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] = launching.PUBLISH
    user: Annotated[str, Field(pattern=r"^(caller|image|[0-9]+(:[0-9]+)?)$")] = "caller"
    shm_size: ByteCount = GIB
    scratch_size: ByteCount = GIB
    memory: ByteCount | None = None
    pids_limit: int = launching.LEAST_PIDS
    mounts: tuple[str, ...] = ()
    init: bool = True
    read_only: bool = True
    writable_models: bool = False
    no_new_privileges: bool = True
    keep_capabilities: bool = False
    cap_add: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] = ("tritonserver",)
    engine: str | None = None

    def __post_init__(self) -> None:
        if self.pids_limit != -1 and self.pids_limit < launching.LEAST_PIDS:
            raise ValueError(
                f"found pids_limit {self.pids_limit}, expected {launching.LEAST_PIDS} or more, or -1: it counts threads"
            )
        for mount in self.mounts:
            launching.read_mount(mount)
        self._found: Found | None = None
        self._server: ServerContainer | None = None
        self._trimmer: Trimmer | None = None
        self._launch: LaunchSpec | None = None
        self._version, self._way, self._starts = "", "", 0
        self._last_spec: ContainerSpec | None = None

    # --- before a start --------------------------------------------------------------------------

    @property
    def abilities(self) -> frozenset[str]:
        """All there are, but what belongs to this machine's network is not cut off."""
        return frozenset(ABILITIES) - ({"cut_network"} if self.network == launching.HOST else set())

    def check(self) -> None:
        """Find engine, GPUs and image, fetch the image where it may be fetched, and ask it what it holds.

        Raises:
            UsageError: The image's name is none.
            TargetUnavailable: One of them cannot be had; says which, why, and what to do.
        """
        if self._found is None:
            self._found = find(self)

    def describe(self) -> Mapping[str, str]:
        """Facts for the report: image, id and digest, versions, GPUs, limits, and what was loosened."""
        described = {"target": self.name, **describe(self, self._all())}
        if self._version:
            described["triton_version"] = self._version
        if self._way:
            described["container_reached"] = f"over {self._way}"
        if self._last_spec is not None:
            described["server_command"] = " ".join(self._last_spec.command)
        return described

    def notes(self) -> Sequence[str]:
        """What a reader of the report should know."""
        unseen = self._outside.why_not if self._outside is not None else ""
        return [*notes(self, self._all()), *([unseen] if unseen else [])]

    def backends(self) -> frozenset[str]:
        """Names of the backends in the image."""
        return frozenset(self._all().facts.backends)

    def build_place(self) -> str:
        """What is built in a container depends on the image and on the GPUs that it is given."""
        found = self._all()
        return f"{found.image.id} {found.gpu_uuids}".strip()

    def run_to_build(self, folder: Path, command: Sequence[str], deadline_s: float) -> tuple[int | None, str]:
        """Run a command in a container of the same image, with the same GPUs; it is removed when this returns."""
        return self._all().run_to_build(folder, command, deadline_s)

    def missing_compiler(self) -> str | None:
        """Say why our backends cannot be compiled: neither the image nor this machine has a C compiler."""
        return self._all().compiling.missing_compiler()

    def compile_shared(self, name: str, sources: Sequence[Path], flags: Sequence[str] = ()) -> Path:
        """Compile in a container of the same image, which is gone when this returns; if that fails, on this machine."""
        return self._all().compiling.compile_shared(name, sources, flags)

    def run_line(self, launch: LaunchSpec) -> str:
        """The `docker run` line that starts an equal container."""
        return docker_run_line(ContainerStart(self, self._all(), launch, max(self._starts, 1)).spec)

    # --- start -----------------------------------------------------------------------------------

    def start(self, launch: LaunchSpec) -> RunningServer:
        """Start the server in a new container and return once live answers.

        Raises:
            TargetUnavailable: Engine, GPU or image cannot be had.
            UsageError: This tritonserver has no such flag.
            TargetNotLive: It ended or stayed silent; nothing of it is left.
        """
        if self._running is not None:
            raise TritonChaosBug("the server's container was started while it runs")
        refuse_unloadable(launch.backends, self._all().facts.libc)
        refuse_unknown(launch.flags, parse_help(self._all().facts.help))
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            try:
                return self._start_once(launch)
            except _PortTaken as taken:
                if attempt == _PORT_ATTEMPTS:
                    raise TargetError(f"the server's ports were taken {attempt} times: {taken}") from None
        raise TritonChaosBug("unreachable: the last attempt returns or raises")

    def _start_once(self, launch: LaunchSpec) -> RunningServer:
        self._starts += 1
        start = ContainerStart(self, self._all(), launch, self._starts)
        self._launch, self._last_spec, self._trimmer = launch, start.spec, start.trimmer
        try:
            live = start.begin()
        except TargetError as error:
            if any(sign in error.message for sign in _PORT_TAKEN):
                raise _PortTaken(error.message) from None
            raise
        finally:
            self._server = start.server
        self._version, self._way = live.version, live.way.name
        process = self._outside.server if self._outside is not None else None
        return RunningServer(live.way.url, live.grpc, process.pid if process else None)

    # --- while it runs ---------------------------------------------------------------------------

    def exit_code(self) -> int | None:
        """Exit code of the last server, minus the signal number after a signal; None while it runs or before any.

        Raises:
            TargetError: What the server does cannot be seen any more.
        """
        return None if self._server is None else self._server.exit_code()

    def end_facts(self) -> Mapping[str, str]:
        """What the engine says of the container's end."""
        return {} if self._server is None else self._server.end_facts()

    def processes(self) -> list[Process]:
        """The server and what it started, as this machine sees them; empty when it does not run, or is not seen."""
        return [] if self._outside is None else self._outside.processes()

    def own_folders(self, launch: LaunchSpec) -> OwnFolders:
        """The container's temp folder and /dev/shm; empty ones of the run while there is no container."""
        outside = self._outside
        if outside is not None:
            return OwnFolders(outside.folder("temp"), outside.folder("shm"), outside.cgroups)
        empty = launch.scratch / "no_shared_memory"
        empty.mkdir(exist_ok=True)
        return OwnFolders(launch.temp, empty)

    def stacks(self) -> Mapping[int, str]:
        """Stacks of all threads of the server and its stubs, by process id.

        Raises:
            TargetError: There is no debugger, here or in the image.
        """
        pids = [process.pid for process in self.processes() if process.role in ("server", "stub")]
        if find_debugger() is not None or self._running is None:
            return take_stacks(pids)
        found, container = self._all(), self._running.container
        return take_stacks_beside(found.engine, found.facts, container.spec, container.id, pids, ARGUMENTS)

    def trim(self, deadline_s: float) -> str:
        """Call malloc_trim in the server, and trim its CUDA memory pools."""
        if self._trimmer is None or self._running is None:
            return "no server runs that could be told to"
        return self._trimmer.trim(deadline_s)

    def kill(self, signal_number: int, pid: int) -> bool:
        """Signal the server or one of its processes; False if it has ended."""
        return self._running is not None and self._running.kill(signal_number, pid)

    def faults(self) -> Faults:
        """What may be done to the container.

        Raises:
            TargetError: The server does not run.
        """
        faults = None if self._running is None else self._running.faults
        if faults is None:
            raise TargetError("the server does not run, so that nothing can be done to its container")
        return faults

    # --- stop ------------------------------------------------------------------------------------

    def stop(self) -> Stop:
        """Stop the server: SIGTERM, wait twice its exit timeout and 5 s, SIGKILL; then remove its container.

        Connections to it must be closed first, else SIGTERM takes the whole exit timeout.
        """
        if self._running is None or self._launch is None:
            return Stop(signal="", exit_code=None, forced=False)
        return self._running.stop(2 * exit_timeout_s(self._launch) + 5, self._launch.shm_prefix)

    @property
    def _running(self) -> ServerContainer | None:
        """The last start, unless it has been taken down."""
        return self._server if self._server is not None and self._server.is_up else None

    @property
    def _outside(self) -> Outside | None:
        return None if self._running is None else self._running.outside

    def _all(self) -> Found:
        self.check()
        assert self._found is not None
        return self._found
