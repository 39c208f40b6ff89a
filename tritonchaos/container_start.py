"""One start of a tritonserver in a container: what the engine is asked for, and the way to the server that is live."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tritonchaos.client import wait_until_live
from tritonchaos.containers import launching
from tritonchaos.containers.container import not_live
from tritonchaos.containers.finding import Found
from tritonchaos.containers.libc import why_not_loadable
from tritonchaos.containers.log_pipe import LogPipe
from tritonchaos.containers.relay import GRPC, HANDED_OVER, HTTP, Relay, relay_program
from tritonchaos.containers.server_container import ServerContainer
from tritonchaos.containers.spec import ContainerSpec, Mount
from tritonchaos.containers.ways_in import WayIn, handed_over, own_addresses, published, relayed
from tritonchaos.local_server.server_flags import (
    asked_flags,
    free_ports,
    parse_help,
    refuse_unloaded_library,
    spell,
)
from tritonchaos.local_server.trimming import Trimmer
from tritonchaos.plugins import LaunchSpec

if TYPE_CHECKING:
    from tritonchaos.targets.docker import DockerTarget

_LOG_FILE: Final = "log-file"
_OWNER_MAY_WRITE: Final = 0o600
_ANYBODY_MAY_WRITE: Final = 0o622


@dataclass(frozen=True, slots=True)
class Live:
    """A server that has answered.

    Attributes:
        version: Triton's.
        grpc: gRPC address; None where it is off.
    """

    way: WayIn
    version: str
    grpc: str | None


class ContainerStart:
    """A start with all its choices made; nothing is started before `begin`.

    Args:
        settings: The target.
        number: Of this start.

    Attributes:
        spec: The container.
        trimmer: What `trim` asks; None where nobody will.
        server: From the start of the container on, also of one that did not become live.
    """

    def __init__(self, settings: DockerTarget, found: Found, launch: LaunchSpec, number: int) -> None:
        self._settings = settings
        self._found = found
        self._launch = launch
        self._number = number
        first, second = free_ports(2)
        self._ports = launching.choose_ports(settings.network, (first, second))
        self._flags = launching.server_flags(launch, settings.network, self._ports, dict(asked_flags(launch)))
        self._log_pipe: Path | None = None
        self.trimmer: Trimmer | None = None
        self.server: ServerContainer | None = None
        self.spec = self._complete()

    def begin(self) -> Live:
        """Start the container and return once live answers.

        Raises:
            TargetError: The engine refused; nothing of it is left.
            TargetNotLive: The server ended or stayed silent; nothing of it is left.
        """
        launch = self._launch
        pipe = None
        if self._log_pipe is not None:
            is_ours = self._settings.user == "caller"
            pipe = LogPipe(self._log_pipe, launch.log_file, _OWNER_MAY_WRITE if is_ours else _ANYBODY_MAY_WRITE)
        server = ServerContainer(self._found.engine, self.spec, launch.log_file, launching.TEMP, pipe)
        self.server = server
        try:
            way, version = self._way_in(server)
            server.take_faults(can_be_cut=launch.may_cut_network)
            refuse_unloaded_library(server.container.log_lines())
        except BaseException:
            server.take_down()
            raise
        has_grpc = self._flags.get("allow-grpc", "true") != "false"
        return Live(way, version, way.grpc if has_grpc else None)

    # --- what the engine is asked for ----------------------------------------------------------------

    def _complete(self) -> ContainerSpec:
        """The container, with what is laid out for it: a pipe for its log, a library that trims.

        Where nothing is laid out yet, as for a `docker run` line to read, it has neither.
        """
        known = parse_help(self._found.facts.help)
        is_laid_out = self._launch.scratch.exists()
        if is_laid_out and _LOG_FILE in known and _LOG_FILE not in self._flags:
            self._log_pipe = self._launch.scratch / f"log-{self._number}"
            self._flags[_LOG_FILE] = launching.LOG
        spec = launching.server_spec(
            self._settings,
            self._launch,
            spell(self._flags, self._launch, known),
            self._ports,
            self._found.image,
            self._found.engine.facts,
            self._found.gpus,
            self._number,
        )
        if self._log_pipe is not None:
            # A pipe can be written to through a read-only mount: nothing else becomes writable.
            spec = replace(spec, mounts=(*spec.mounts, Mount(str(self._log_pipe), launching.LOG)))
        return self._with_trimmer(spec) if is_laid_out and self._launch.may_trim else spec

    def _with_trimmer(self, spec: ContainerSpec) -> ContainerSpec:
        """Give the server the library that `trim` needs."""
        self.trimmer = Trimmer(self._launch.scratch / "trim", self._found.compiling.compile_shared)
        if "LD_PRELOAD" in spec.env:
            self.trimmer.why_not = "not called: LD_PRELOAD is the scenario's own choice"
            return spec
        env = self.trimmer.environment({})
        if not env:
            return spec
        library = Path(env["LD_PRELOAD"])
        self.trimmer.why_not = why_not_loadable(library, self._found.facts.libc)
        if self.trimmer.why_not:
            return spec
        there = {"LD_PRELOAD": f"{launching.TRIM}/{library.name}", "TRITONCHAOS_TRIM": f"{launching.TRIM}/fifos"}
        mounts = (Mount(str(library), there["LD_PRELOAD"]), Mount(env["TRITONCHAOS_TRIM"], there["TRITONCHAOS_TRIM"]))
        return replace(spec, env={**spec.env, **there}, mounts=(*spec.mounts, *mounts))

    # --- the way to it -------------------------------------------------------------------------------

    def _way_in(self, server: ServerContainer) -> tuple[WayIn, str]:
        """Wait until the server is live; then take the shortest way that leads to it and can be cut if it may be.

        Returns:
            That way, and Triton's version.
        """
        network, server_id, deadline_s = self._settings.network, self._flags["id"], self._launch.startup_deadline_s
        relay = self._open_relay(server) if network == launching.NONE else None
        sure = relayed(relay) if relay is not None else published(network, self._ports)
        version = wait_until_live(sure.url, server_id, deadline_s, server.look)
        if version is None:
            raise not_live(server.container, f"was not live after {deadline_s:g} s")
        for way in self._shorter_ways(server, relay):
            if wait_until_live(way.url, server_id, 0, server.look) is not None:
                return way, version
        return sure, version

    def _shorter_ways(self, server: ServerContainer, relay: Relay | None) -> Iterable[WayIn]:
        if self._launch.may_cut_network:
            return ()
        if relay is not None:
            return (handed_over(relay),)
        if self._settings.network == launching.HOST or self._found.engine.facts.is_rootless:
            return ()
        return own_addresses(server.container.inspect(), self._ports)

    def _open_relay(self, server: ServerContainer) -> Relay:
        folder = self._launch.scratch / f"relay-{self._number}"
        folder.mkdir()
        spec = launching.relay_spec(self.spec, self._launch, self._found.engine.facts, self._number)
        sockets = {HTTP: self._ports.http, HANDED_OVER: self._ports.http, GRPC: self._ports.grpc}
        return server.open_relay(relay_program(self._found.compiling.compile_program), spec, folder, sockets)
