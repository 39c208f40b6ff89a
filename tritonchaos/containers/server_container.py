"""One start of the server in a container: the container, what is seen of it from here, the relay beside it, its end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from tritonchaos.containers.container import Container, Ended, not_live
from tritonchaos.containers.engine import Engine
from tritonchaos.containers.faults import Faults
from tritonchaos.containers.log_pipe import LogPipe
from tritonchaos.containers.outside import Outside
from tritonchaos.containers.relay import Relay
from tritonchaos.containers.spec import ContainerSpec
from tritonchaos.errors import TargetError
from tritonchaos.plugins import Stop


class ServerContainer:
    """The server's container from its start to its removal; what is known of its end is kept.

    Args:
        log_file: What the server says is appended here.
        temp: The server's TMPDIR, a path in the container.
        log_pipe: By which the server writes its own log to the same file.

    Raises:
        TargetError: The engine refused; nothing of it is left.
    """

    def __init__(
        self, engine: Engine, spec: ContainerSpec, log_file: Path, temp: str, log_pipe: LogPipe | None = None
    ) -> None:
        self._engine = engine
        self.is_up = True
        self.container = Container(engine, spec, log_file, log_pipe)
        self.outside: Outside | None = None
        self.relay: Relay | None = None
        self.faults: Faults | None = None
        self._ended: Ended | None = None
        try:
            self.container.start()
            pid = self.container.inspect()["State"]["Pid"]
            self.outside = Outside(pid, self.container.id, temp, [mount.target for mount in spec.mounts])
            self.container.saw_memory_kill = self.outside.memory_kills.is_new
        except BaseException:
            self.take_down()
            raise

    def open_relay(self, program: Path, spec: ContainerSpec, folder: Path, ports: Mapping[str, int]) -> Relay:
        """Start the relay beside it; see `Relay`.

        Raises:
            TargetNotLive: The server has ended, so that there is nothing to be beside of.
            TargetError: The relay does not come up.
        """
        try:
            log_file = folder.with_suffix(".log")
            self.relay = Relay(self._engine, program, self.container.id, spec, folder, ports, log_file)
        except TargetError:
            if self.container.wait(1.0) is not None:
                raise not_live(self.container) from None
            raise
        return self.relay

    def take_faults(self, *, can_be_cut: bool) -> None:
        """Make what may be done to it; `can_be_cut`: all requests go where they can be stopped."""
        assert self.outside is not None
        self.faults = Faults(self._engine, self.container, self.outside, self.relay, can_be_cut=can_be_cut)

    def look(self) -> None:
        """Raise what ends the waiting for a server that starts: it has ended, or the relay has."""
        if self.container.ended() is not None:
            raise not_live(self.container)
        if self.relay is not None:
            self.relay.check()

    def exit_code(self) -> int | None:
        """Exit code, minus the signal number after a signal; None while it runs.

        Raises:
            TargetError: What the server does cannot be seen any more: the engine or the relay is gone, or the
                container reached its limit of processes, which is our doing and not the server's.
        """
        if not self.is_up:
            return None if self._ended is None else self._ended.exit_code
        self._ended = self.container.ended()
        if self.outside is not None and self.outside.pids_limit.times_reached():
            raise TargetError(
                f"the container reached its limit of {self.container.spec.pids_limit} processes and threads",
                hint="give the target a higher pids_limit",
            )
        if self._ended is not None:
            return self._ended.exit_code
        if self.relay is not None:
            self.relay.check()
        return None

    def end_facts(self) -> Mapping[str, str]:
        """What the engine says of its end; {} while it runs."""
        if self._ended is None:
            return {}
        told = {"oom_killed": "yes" if self._ended.was_oom_killed else "no"}
        return {**told, "engine_said": self._ended.error} if self._ended.error else told

    def kill(self, signal_number: int, pid: int) -> bool:
        """Signal the server or one of its processes; False if it has ended, or is not seen from here."""
        if not self.is_up or self.outside is None:
            return False
        return self.outside.kill(signal_number, pid, self.container.send_signal)

    def stop(self, grace_s: float, shm_prefix: str) -> Stop:
        """Send SIGTERM, wait, then SIGKILL; look at what it left behind and remove it.

        Args:
            shm_prefix: Of the names in /dev/shm that are the run's.
        """
        left: list[tuple[str, str, int]] = []
        try:
            if self.faults is not None:
                self.faults.unpause()  # a frozen process takes no signal
            sent = self.container.stop(grace_s)
            self._ended = self.container.ended()
            left = self.outside.left_behind(shm_prefix) if self.outside is not None else []
        finally:
            # Also when the user does not want to wait: the container is removed, without grace.
            self.take_down()
        return Stop(sent, None if self._ended is None else self._ended.exit_code, sent == "SIGKILL", tuple(left))

    def take_down(self) -> None:
        """Remove everything of this start, whatever goes wrong with a part of it; harmless when repeated."""
        self.is_up = False
        with ExitStack() as parts:
            parts.callback(self.container.remove)
            with suppress(TargetError):
                self._ended = self._ended or self.container.ended()
            if self.faults is not None:
                parts.callback(self.faults.free_scratch)
            if self.relay is not None:
                parts.callback(self.relay.close)
            if self.outside is not None:
                parts.callback(self.outside.close)
            self.relay, self.outside, self.faults = None, None, None
