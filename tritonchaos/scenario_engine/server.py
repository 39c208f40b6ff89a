"""The life of the server during a run: started, watched, stopped, and what it said when it died."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tritonchaos.client import TritonClient
from tritonchaos.errors import TritonChaosBug
from tritonchaos.observations import (
    Evidence,
    Left,
    NoAnswer,
    Note,
    Position,
    Reply,
    ServerExited,
    ServerStarted,
    ServerStopped,
)
from tritonchaos.plugins import (
    CanTrim,
    ContainerFaults,
    HasEndFacts,
    HasFaults,
    HasNotes,
    HasOwnFolders,
    HasProcesses,
    Killable,
    LaunchSpec,
    MayVanish,
    RunningServer,
    SampleScope,
    ServerSettings,
    Stop,
    Target,
    abilities_of,
)
from tritonchaos.processes import is_running, start_ticks
from tritonchaos.sampling import Sampling
from tritonchaos.scenario_engine.gate import Gate
from tritonchaos.scenario_engine.journal import Journal
from tritonchaos.scenario_engine.measuring import Measuring

_LAST_LOG_BYTES: Final = 16 * 1024
_LAST_LOG_LINES: Final = 60
_DEATH_S: Final = 3.0  # a crash writes its stack (and perhaps a core) between closing our connection and its end
_TOLD_S: Final = 15.0  # it is gone, and a busy container engine tells late how it ended
_DRAIN_S: Final = 5.0  # for requests beside the main track that are under way when the server is to stop
_EXIT_EXPIRED: Final = re.compile(r"Exit timeout expired")

_GO_ON: Final = frozenset({signal.SIGSTOP, signal.SIGCONT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2})

Started = Callable[[RunningServer, Mapping[str, str]], None]


class ServerLife:
    """Starts and stops the target's server and keeps everything that belongs to one start of it together.

    Args:
        launch: How it is started; the same for every start.
        gpu_uuids: GPUs to sample.
        started: Called after each start, with metric -> why it cannot be read of this server.
    """

    def __init__(
        self,
        target: Target,
        launch: LaunchSpec,
        journal: Journal,
        sampling: Sampling,
        measuring: Measuring,
        gpu_uuids: tuple[str, ...],
        started: Started,
    ) -> None:
        self._target = target
        self._launch = launch
        self._journal = journal
        self._sampling = sampling
        self._measuring = measuring
        self._gpu_uuids = gpu_uuids
        self._started = started
        self._running: RunningServer | None = None
        self._clients: list[TritonClient] = []
        self._start_ticks: int | None = None
        self._starts = 0
        self._left_temp: set[str] = set()
        self.gate = Gate()

    @property
    def can_restart(self) -> bool:
        """The target can stop its server and start it again."""
        return "restart" in abilities_of(self._target)

    @property
    def is_ours(self) -> bool:
        """The target starts and stops its server, so that there is a time before and after it."""
        return "start" in abilities_of(self._target)

    @property
    def can_trim(self) -> bool:
        """The target can make its server's allocators give back what they keep."""
        return isinstance(self._target, CanTrim)

    @property
    def is_running(self) -> bool:
        """Started by us, and not ended as far as we have seen."""
        return self._running is not None

    def client(self) -> TritonClient:
        """Make a client of the running server for one track; it is closed before the server is stopped."""
        running = self._running or RunningServer("http://127.0.0.1:9", None, None)
        client = TritonClient(running.url, running.grpc)
        self._clients.append(client)
        return client

    def drop(self, client: TritonClient) -> None:
        """Close a client that is not needed any more."""
        client.close()
        if client in self._clients:
            self._clients.remove(client)

    def start(self, settings: ServerSettings | None = None) -> None:
        """Start the server unless it runs; returns once live answers and the "ready" reading is taken.

        Args:
            settings: For this start and those after it; None: as before.
        """
        if self._running is not None:
            return
        if settings is not None:
            self._launch = self._launch.with_settings(settings)
        began = time.monotonic_ns()
        running = self._target.start(self._launch)
        self._running = running
        self._start_ticks = start_ticks(running.pid) if running.pid is not None and running.is_here else None
        self._starts += 1
        self._measuring.start_number = self._starts
        boot_ns = time.monotonic_ns() - began
        self._journal.record(ServerStarted(self._journal.now_ns(), self._starts, running.pid, running.url, boot_ns))
        self._started(running, self._sampling.open(self._scope(running)))
        self._measuring.take("ready")
        if self._starts == 1:  # the counts in them would differ at each start
            self._measuring.record_notes()
            for note in self._target.notes() if isinstance(self._target, HasNotes) else ():
                self._journal.record(Note(self._journal.now_ns(), note))
        self._sampling.start()
        self.gate.open()

    def measure_without_it(self) -> None:
        """Let the samplers read what exists without a server: devices, shared memory, temp files.

        Done first of all, so that shared memory which was there before is never taken for the server's. A server that
        is not ours is never absent.
        """
        if self.is_ours:
            self._sampling.open(self._place(None))

    def stop(self, sent: str = "") -> None:
        """Close our connections, stop the server and record how it ended; harmless if none runs.

        Args:
            sent: Name of a signal that has made it end already.
        """
        if self._running is None:
            return
        if not self.is_ours and self._has_vanished():
            # It ended after its last answer; "left running" would be untrue.
            self._journal.record(ServerExited(self._journal.now_ns(), None, None))
        log_start = log_size(self._launch.log_file)
        self.gate.close(_DRAIN_S)
        began = time.monotonic_ns()
        self.close_connections()
        self._sampling.stop()
        self._measuring.record_notes()
        stop = self._target.stop()
        self._running = None
        log = read_log(self._launch.log_file, log_start)
        self._journal.record(
            ServerStopped(
                t_ns=self._journal.now_ns(),
                signal=stop.signal or sent,
                exit_code=stop.exit_code,
                forced=stop.forced,
                exit_timeout_expired=_EXIT_EXPIRED.search(log) is not None,
                elapsed_ns=time.monotonic_ns() - began,
            )
        )
        self._record_left(stop)
        if not (stop.signal or sent) and stop.exit_code is not None:
            facts = {"exit_code": str(stop.exit_code), **self._end_facts()}
            self._journal.record(Evidence(self._journal.now_ns(), None, "crash", facts, tuple(last_lines(log))))
        if stop.forced or _EXIT_EXPIRED.search(log):
            self._journal.record(
                Evidence(self._journal.now_ns(), None, "stop", {"signal": stop.signal}, tuple(last_lines(log)))
            )
        self.measure_without_it()

    def _record_left(self, stop: Stop) -> None:
        now_ns = self._journal.now_ns()
        for kind, name, size_bytes in stop.left:
            self._journal.record(Left(now_ns, kind, name, size_bytes))
        for file in sorted(path for path in self._launch.temp.rglob("*") if path.is_file()):
            name = str(file.relative_to(self._launch.temp))
            if name not in self._left_temp:  # it may be there already since an earlier start
                self._left_temp.add(name)
                self._journal.record(Left(now_ns, "temp", name, file.stat().st_size))

    def signal(self, role: str, number: int, deadline_s: float) -> int:
        """Signal the server or its stubs; see `ServerControl.signal`."""
        target = self._target
        if self._running is None or not isinstance(target, Killable):
            return 0
        found = [process.pid for process in target.processes() if process.role == role]
        sent = sum(target.kill(number, pid) for pid in found)
        if role == "server" and sent and number not in _GO_ON and self._wait_for_exit(deadline_s) is not None:
            self.stop(signal.Signals(number).name)
        return sent

    def faults(self) -> ContainerFaults:
        """Faults of the server's container; see `ServerControl.faults`."""
        if not isinstance(self._target, HasFaults):
            raise TritonChaosBug(f"a step asked target {self._target.name} for faults of a container")
        return self._target.faults()

    def trim(self, deadline_s: float) -> str:
        """Make the server give back what its allocators keep; see `ServerControl.trim`."""
        if self._running is None:
            return "no server runs"
        if not isinstance(self._target, CanTrim):
            return f"the target {self._target.name} cannot"
        return self._target.trim(deadline_s)

    def process_counts(self) -> dict[str, int]:
        """Number of processes by role; {} where the target does not know them."""
        if not isinstance(self._target, HasProcesses):
            return {}
        counts = {"server": 0, "stub": 0, "other": 0}
        for process in self._target.processes():
            counts[process.role] += 1
        return counts

    def close_connections(self) -> None:
        """Close every client made so far: one open connection makes SIGTERM take the whole exit timeout."""
        for client in self._clients:
            client.close()
        self._clients.clear()

    def has_ended(self, position: Position | None, reply: Reply | None) -> bool:
        """Look whether the server ended by itself; if so record it with the crash's evidence.

        Args:
            reply: Of the step just done; a connection that broke is given a moment to become an exit status.
        """
        if self._running is None:
            return False
        broke = isinstance(reply, NoAnswer) and not reply.reason.startswith("deadline")
        exit_code = self._wait_for_exit(_DEATH_S if broke else 0.0)
        if exit_code is None and self._is_another_process():
            exit_code = self._wait_for_exit(_TOLD_S if self.is_ours else _DEATH_S)
        elif exit_code is None and not (broke and self._has_vanished()):
            return False
        self._journal.record(ServerExited(self._journal.now_ns(), position, exit_code))
        lines = tuple(last_lines(read_log(self._launch.log_file)))
        facts = {"exit_code": str(exit_code), **self._end_facts()}
        self._journal.record(Evidence(self._journal.now_ns(), position, "crash", facts, lines))
        self.gate.close(0.0)
        self.close_connections()
        self._sampling.stop()
        self._record_left(self._target.stop())  # reaps what the dead server left running
        self._running = None
        self.measure_without_it()
        return True

    def _is_another_process(self) -> bool:
        """The process that was started is gone, and perhaps another one has its pid or its port."""
        pid = self._running.pid if self._running is not None else None
        return pid is not None and self._start_ticks is not None and not is_running(pid, self._start_ticks)

    def _wait_for_exit(self, deadline_s: float) -> int | None:
        end = time.monotonic() + deadline_s
        while True:
            exit_code = self._target.exit_code()
            if exit_code is not None or time.monotonic() >= end:
                return exit_code
            time.sleep(0.02)

    def _end_facts(self) -> Mapping[str, str]:
        return self._target.end_facts() if isinstance(self._target, HasEndFacts) else {}

    def _has_vanished(self) -> bool:
        return isinstance(self._target, MayVanish) and self._target.has_vanished()

    def _scope(self, running: RunningServer) -> SampleScope:
        """What can be read of a server: TMPDIR and shared memory prefix are known only of one that we started."""
        if running.is_ours:
            return self._place(running.pid)
        return SampleScope(running.pid, self._gpu_uuids, "", None, running.is_here)

    def _place(self, pid: int | None) -> SampleScope:
        """What can be read of a server of ours, running or not."""
        launch, target = self._launch, self._target
        if not isinstance(target, HasOwnFolders):
            return SampleScope(pid, self._gpu_uuids, launch.shm_prefix, launch.temp)
        own = target.own_folders(launch)
        return SampleScope(
            pid, self._gpu_uuids, launch.shm_prefix, own.temp, shared_memory=own.shared_memory, cgroups=own.cgroups
        )


def log_size(log_file: Path) -> int:
    """Size of server.log in bytes; 0 before it exists."""
    try:
        return log_file.stat().st_size
    except FileNotFoundError:
        return 0


def read_log(log_file: Path, start: int | None = None) -> str:
    """Text of server.log from a byte offset, or its last 16 KiB."""
    if not log_file.exists():
        return ""
    with log_file.open("rb") as file:
        file.seek(max(0, log_size(log_file) - _LAST_LOG_BYTES) if start is None else start)
        return file.read().decode("utf-8", "replace")


def last_lines(text: str) -> list[str]:
    """Lines of a log that are kept as evidence."""
    return text.splitlines()[-_LAST_LOG_LINES:]
