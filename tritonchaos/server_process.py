"""One tritonserver process: started so that it dies with us, stopped as Triton documents, reaped with its stubs."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tritonchaos import die_with_parent, processes
from tritonchaos.errors import TritonChaosBug
from tritonchaos.processes import Process, ProcessStat

# Source: prctl(2), linux/prctl.h.
_PR_SET_CHILD_SUBREAPER: Final = 36
# A stub looks about once a second whether its server still lives.
_STUB_GRACE_S: Final = 2.5
_KILL_WAIT_S: Final = 30.0
_PAUSE_S: Final = 0.02


class ServerProcess:
    """A child process with its log, in a session of its own: Ctrl-C in the terminal does not reach it.

    Args:
        arguments: Absolute path of the program and its arguments.
        environment: All of its environment.
        log_file: Its output is appended here from the first byte.

    Raises:
        TritonChaosBug: Called outside the main thread: the server dies when the thread ends that started it.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log_file: Path) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise TritonChaosBug(
                "a server must be started from the main thread: it dies with the thread that starts it"
            )
        # What outlives the server becomes our child, so that it can be reaped and leaves no zombie.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._log_file = log_file
        with log_file.open("ab") as log:
            self._log_start = log.tell()
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-S", die_with_parent.__file__],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._start_ticks = processes.start_ticks(self._child.pid) or 0
            order = {"parent": os.getpid(), "arguments": list(arguments), "environment": dict(environment)}
            # It may have died already; then its exit status says so.
            with contextlib.suppress(BrokenPipeError):
                _write_all(self._child, json.dumps(order).encode())
        except BaseException:
            self._child.kill()
            self._child.wait()
            raise

    @property
    def pid(self) -> int:
        return self._child.pid

    def exit_code(self) -> int | None:
        """Exit code, or minus the signal number that ended it; None while it runs."""
        return self._child.poll()

    def processes(self) -> list[Process]:
        """The server, its stubs, and whatever else it started."""
        if self.exit_code() is not None:
            return []
        started = [stat for stat in processes.descendants(self.pid) if not stat.is_zombie]
        return [Process(self.pid, "server")] + [
            Process(stat.pid, "stub" if stat.is_stub else "other") for stat in started
        ]

    def log_lines(self) -> list[str]:
        """Its log since this start, undecodable bytes replaced."""
        with self._log_file.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace").splitlines()

    def terminate(self, grace_s: float) -> str:
        """Send SIGTERM, wait, then SIGKILL; return the last signal sent, "" if it had ended. It is reaped."""
        if self.exit_code() is not None:
            return ""
        try:
            self._child.send_signal(signal.SIGTERM)
            self._child.wait(grace_s)
            return "SIGTERM"
        except subprocess.TimeoutExpired:
            self.kill()
            return "SIGKILL"
        except BaseException:
            # The user does not want to wait.
            self.kill()
            raise

    def kill(self) -> None:
        """Send SIGKILL and reap it; harmless if it has ended."""
        self._child.kill()
        self._child.wait(_KILL_WAIT_S)

    def end_survivors(self, started: Sequence[ProcessStat]) -> list[str]:
        """End what outlived the server, after a moment to end by itself.

        Args:
            started: Its descendants before it was stopped; those that left its session are only known from here.

        Returns:
            Commands of the processes that had to be killed, in alphabetical order.
        """

        def survivors() -> list[ProcessStat]:
            known = [stat for stat in started if processes.is_running(stat.pid, stat.start_ticks)]
            return list({stat.pid: stat for stat in [*known, *processes.session_members(self.pid)]}.values())

        _wait_until(lambda: not survivors(), _STUB_GRACE_S)
        killed = [stat.command for stat in survivors() if processes.end(stat.pid, stat.start_ticks, signal.SIGKILL)]
        _wait_until(lambda: not survivors(), _STUB_GRACE_S)
        _reap_stubs()
        return sorted(killed)


def _write_all(child: subprocess.Popen[bytes], data: bytes) -> None:
    """Write to a child's standard input and close it; unlike `communicate` this does not wait for its end."""
    assert child.stdin is not None
    with child.stdin as pipe:
        pipe.write(data)


def _reap_stubs() -> None:
    for stat in processes.descendants(os.getpid()):
        if stat.is_stub and stat.is_zombie and stat.parent_pid == os.getpid():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(stat.pid, os.WNOHANG)


def _wait_until(is_true: Callable[[], bool], at_most_s: float) -> None:
    end = time.monotonic() + at_most_s
    while not is_true() and time.monotonic() < end:
        time.sleep(_PAUSE_S)
