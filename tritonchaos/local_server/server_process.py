"""One tritonserver process: started so that it dies with us, stopped as Triton documents, reaped with its stubs."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tritonchaos import processes
from tritonchaos.errors import TritonChaosBug
from tritonchaos.local_server import keeper
from tritonchaos.processes import Process, ProcessStat

# A stub looks about once a second whether its server still lives.
_STUB_GRACE_S: Final = 2.5
_KILL_WAIT_S: Final = 30.0
_KEEPER_WAIT_S: Final = 10.0
_PAUSE_S: Final = 0.02


class ServerProcess:
    """A server below a keeper (see `keeper`), in a session of their own: Ctrl-C in the terminal does not reach them.

    Args:
        arguments: Absolute path of the program and its arguments.
        environment: All of its environment.
        log_file: Its output is appended here from the first byte.
        ulimits: Resource limits by their name in getrlimit(2) without RLIMIT_, in small letters; -1: none.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log_file: Path,
        ulimits: Mapping[str, int] | None = None,
    ) -> None:
        self._log_file = log_file
        self._told = b""
        self._exit_code: int | None = None
        order = {"arguments": list(arguments), "environment": dict(environment), "ulimits": dict(ulimits or {})}
        with log_file.open("ab") as log:
            self._log_start = log.tell()
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                bufsize=0,
            )
        try:
            self.pid = self._give(json.dumps(order).encode() + b"\n")
            self._start_ticks = processes.start_ticks(self.pid) or 0
        except BaseException:
            self.release()
            raise

    def exit_code(self) -> int | None:
        """Exit code, or minus the signal number that ended it; None while it runs."""
        return self._wait(0)

    def processes(self) -> list[Process]:
        """The server, its stubs, and whatever else it started."""
        if self.exit_code() is not None:
            return []
        started = [stat for stat in processes.descendants(self.pid) if not stat.is_zombie]
        return [Process(self.pid, "server")] + [
            Process(stat.pid, "stub" if stat.is_stub else "other") for stat in started
        ]

    def signal(self, number: int, pid: int) -> bool:
        """Signal the server or a process that it started; False if that one has ended or is none of them."""
        known = {self.pid: self._start_ticks}
        known |= {stat.pid: stat.start_ticks for stat in processes.descendants(self.pid)}
        return pid in known and processes.end(pid, known[pid], signal.Signals(number))

    def log_lines(self) -> list[str]:
        """Its log since this start, undecodable bytes replaced."""
        with self._log_file.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace").splitlines()

    def terminate(self, grace_s: float) -> str:
        """Send SIGTERM, wait, then SIGKILL; return the last signal sent, "" if it had ended."""
        if self.exit_code() is not None:
            return ""
        processes.end(self.pid, self._start_ticks, signal.SIGTERM)
        if self._wait(grace_s) is not None:
            return "SIGTERM"
        self.kill()
        return "SIGKILL"

    def kill(self) -> None:
        """Send SIGKILL and wait for its end; harmless if it has ended."""
        if self.exit_code() is None:
            processes.end(self.pid, self._start_ticks, signal.SIGKILL)
            self._wait(_KILL_WAIT_S)

    def end_survivors(self, started: Sequence[ProcessStat]) -> list[str]:
        """End what outlived the server, after a moment to end by itself.

        Args:
            started: Its descendants before it was stopped; those that left its session are only known from here.

        Returns:
            Commands of the processes that had to be killed, in alphabetical order.
        """

        def survivors() -> list[ProcessStat]:
            known = [stat for stat in started if processes.is_running(stat.pid, stat.start_ticks)]
            return list({stat.pid: stat for stat in [*known, *self._session_members()]}.values())

        _wait_until(lambda: not survivors(), _STUB_GRACE_S)
        killed = [stat.command for stat in survivors() if processes.end(stat.pid, stat.start_ticks, signal.SIGKILL)]
        _wait_until(lambda: not survivors(), _STUB_GRACE_S)
        return sorted(killed)

    def release(self) -> None:
        """Let the keeper end whatever is left, and end itself; harmless when repeated."""
        for pipe in (self._keeper.stdin, self._keeper.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._keeper.wait(_KEEPER_WAIT_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()

    def _session_members(self) -> list[ProcessStat]:
        # While the keeper lives its id cannot be given to another session.
        return processes.session_members(self._keeper.pid) if self._keeper.poll() is None else []

    def _give(self, order: bytes) -> int:
        """Hand the order to the keeper and return the server's process id."""
        assert self._keeper.stdin is not None
        view = memoryview(order)
        while view:
            view = view[self._keeper.stdin.write(view) :]
        _wait_until(lambda: self._listen(_PAUSE_S) or b"\n" in self._told, _KEEPER_WAIT_S)
        word, _, number = self._told.partition(b"\n")[0].partition(b" ")
        if word != b"pid":
            raise TritonChaosBug(f"the keeper of the server said {self._told!r}, expected its process id")
        return int(number)

    def _wait(self, at_most_s: float) -> int | None:
        end = time.monotonic() + at_most_s
        while self._exit_code is None:
            left_s = max(0.0, end - time.monotonic())
            has_ended = self._listen(left_s)
            line = next((line for line in self._told.split(b"\n") if line.startswith(b"exit ")), None)
            if line is not None:
                self._exit_code = int(line[5:])
            elif has_ended:
                # The keeper was killed; the kernel then killed the server.
                self._exit_code = -signal.SIGKILL
            elif left_s == 0:
                break
        return self._exit_code

    def _listen(self, at_most_s: float) -> bool:
        """Take in what the keeper says within a time; True if it will say no more."""
        pipe = self._keeper.stdout
        if pipe is None or pipe.closed:
            return True
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        if not poll.poll(at_most_s * 1000):
            return False
        said = os.read(pipe.fileno(), 4096)
        self._told += said
        return not said


def _wait_until(is_true: Callable[[], bool], at_most_s: float) -> None:
    end = time.monotonic() + at_most_s
    while not is_true() and time.monotonic() < end:
        time.sleep(_PAUSE_S)
