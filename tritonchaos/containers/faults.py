"""Faults of one running container: frozen, short of memory, cut off, out of scratch space."""

from __future__ import annotations

from tritonchaos.containers.container import Container
from tritonchaos.containers.engine import Engine, asking
from tritonchaos.containers.outside import Outside
from tritonchaos.containers.relay import Relay
from tritonchaos.containers.scratch import Filler
from tritonchaos.errors import TargetError, TritonChaosBug
from tritonchaos.plugins import Place
from tritonchaos.units import format_bytes


class Faults:
    """What may be done to a container while it runs; see `plugins.ContainerFaults`.

    Args:
        relay: Through which requests go; None: they go through the engine's network.
        can_be_cut: Requests go only where they can be stopped.
    """

    def __init__(
        self, engine: Engine, container: Container, outside: Outside, relay: Relay | None, *, can_be_cut: bool
    ) -> None:
        self._engine = engine
        self._container = container
        self._outside = outside
        self._relay = relay
        self._can_be_cut = can_be_cut
        self._filler = Filler()
        self._is_paused = False
        self._is_cut = False

    def pause(self) -> None:
        """Freeze all processes of the container."""
        if not self._is_paused:
            with asking("pause the container"):
                self._engine.api.pause(self._container.id)
            self._is_paused = True

    def unpause(self) -> None:
        """Let them go on; harmless if they are not frozen."""
        if self._is_paused:
            self._is_paused = False
            with asking("unpause the container"):
                self._engine.api.unpause(self._container.id)

    def limit_memory(self, limit_bytes: int) -> str:
        """Set the container's memory limit, swap included; return why it could not be set."""
        try:
            with asking(f"limit the container's memory to {format_bytes(limit_bytes)}"):
                self._engine.limit_memory(self._container.id, limit_bytes)
        except TargetError as error:
            return error.message
        return ""

    def cut_network(self) -> None:
        """Let nothing through any more."""
        if not self._can_be_cut:
            raise TritonChaosBug("the network is cut in a run that was not to cut it: requests would still get through")
        if self._is_cut:
            return
        self._is_cut = True
        if self._relay is not None:
            self._relay.cut()
            return
        with asking("take the container off its network"):
            self._engine.api.disconnect_container_from_network(self._container.id, self._container.spec.network)

    def join_network(self) -> None:
        """Let everything through again; harmless if it is not cut off."""
        if not self._is_cut:
            return
        self._is_cut = False
        if self._relay is not None:
            self._relay.join()
            return
        with asking("put the container on its network again"):
            self._engine.api.connect_container_to_network(self._container.id, self._container.spec.network)

    def fill_scratch(self, place: Place, leave_bytes: int) -> str:
        """Take the space of /tmp or /dev/shm; return why it could not be taken."""
        name = "temp" if place == "temp" else "shm"
        folder = self._outside.folder(name)
        return self._filler.fill(folder, leave_bytes) if folder is not None else f"the container's {name} is not seen"

    def free_scratch(self) -> None:
        """Give back what `fill_scratch` took."""
        self._filler.free()
