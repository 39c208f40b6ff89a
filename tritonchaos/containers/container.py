"""One container: made, started, its log written from the first byte to the last, its end learned, and removed."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from tritonchaos.containers.engine import Engine, asking
from tritonchaos.containers.log_pipe import LogPipe
from tritonchaos.containers.output import copy_output
from tritonchaos.containers.spec import ContainerSpec, engine_config
from tritonchaos.errors import TargetError, TargetNotLive

# The log's last bytes come after the end; an engine that hangs must not hang us.
_LOG_END_S: Final = 20.0
_REMOVE_S: Final = 20.0
_SHOWN_LOG_LINES: Final = 20
_FIRST_SIGNAL_CODE: Final = 128


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container ended.

    Attributes:
        exit_code: Exit code, or minus the number of the signal that ended it: the engine says 128 plus that number.
        was_oom_killed: The kernel killed one of its processes for its memory limit.
        error: What the engine says went wrong; "" if nothing.
    """

    exit_code: int
    was_oom_killed: bool = False
    error: str = ""


class Container:
    """A container that was made from a spec; it is there until `remove`.

    Args:
        log_file: Its output is appended here, from its first byte; None: it is kept by the engine only.
        log_pipe: By which it writes more to the same file; finished when the container has ended.

    Raises:
        TargetError: The engine refused.
    """

    def __init__(
        self, engine: Engine, spec: ContainerSpec, log_file: Path | None = None, log_pipe: LogPipe | None = None
    ) -> None:
        self.spec = spec
        self._engine = engine
        self._log_file = log_file
        self._log_pipe = log_pipe
        self._log_start = log_file.stat().st_size if log_file is not None and log_file.exists() else 0
        self._apis: list[Any] = []
        self._threads: list[threading.Thread] = []
        self.saw_memory_kill: Callable[[], bool] = lambda: False
        self._ended: Ended | None = None
        self._lost: BaseException | None = None
        self._has_ended = threading.Event()
        try:
            with asking(f"make the container {spec.name}"):
                made = engine.api.create_container_from_config(engine_config(spec), spec.name)
        except BaseException:
            self.wait_for_log()
            raise
        self.id: str = made["Id"]

    def start(self) -> None:
        """Start it; what it says is written from now on.

        Raises:
            TargetError: The engine refused; the container is removed.
        """
        try:
            if self._log_file is not None:
                self._follow_log(self._log_file)
            with asking(f"start the container {self.spec.name}"):
                self._engine.api.start(self.id)
            self._follow(self._await_end)
        except BaseException:
            self.remove()
            raise

    def ended(self) -> Ended | None:
        """How it ended; None while it runs.

        Raises:
            TargetError: The engine cannot say any more.
        """
        if self._lost is not None:
            raise TargetError(f"the engine does not say any more how {self.spec.name} is: {self._lost}") from self._lost
        return self._ended if self._has_ended.is_set() else None

    def wait(self, at_most_s: float) -> Ended | None:
        """Wait for its end."""
        self._has_ended.wait(at_most_s)
        return self.ended()

    def wait_for_log(self) -> None:
        """Wait until the last byte of an ended container's output is written."""
        for thread in self._threads:
            thread.join(_LOG_END_S)
        if self._log_pipe is not None:
            self._log_pipe.finish()

    def log_lines(self) -> list[str]:
        """What it has said since it was made, undecodable bytes replaced."""
        if self._log_file is None or not self._log_file.exists():
            return []
        with self._log_file.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace").splitlines()

    def inspect(self) -> Mapping[str, Any]:
        """What the engine says of it."""
        with asking(f"say how {self.spec.name} is"):
            found: Mapping[str, Any] = self._engine.api.inspect_container(self.id)
        return found

    def send_signal(self, name: str) -> None:
        """Signal its first process; one that has ended is left alone."""
        from docker.errors import DockerException

        with contextlib.suppress(DockerException):
            self._engine.api.kill(self.id, name)

    def stop(self, grace_s: float) -> str:
        """Send SIGTERM, wait, then SIGKILL; return the last signal sent, "" if it had ended."""
        if self.ended() is not None:
            return ""
        self.send_signal("SIGTERM")
        if self.wait(grace_s) is not None:
            return "SIGTERM"
        self.send_signal("SIGKILL")
        self.wait(_REMOVE_S)
        return "SIGKILL"

    def remove(self) -> None:
        """End it at once if it runs, and remove it with its anonymous volumes; harmless when repeated."""
        remove_container(self._engine, self.id)
        self.wait_for_log()
        while self._apis:
            self._apis.pop().close()

    # --- what is learned in threads of their own ------------------------------------------------------

    def _follow_log(self, log_file: Path) -> None:
        api = self._another_api()
        with asking(f"attach to the container {self.spec.name}"):
            # Before the start, so that nothing is missed, whatever the engine's log driver keeps.
            stream = api.attach_socket(self.id, params={"stdout": 1, "stderr": 1, "stream": 1})
        log = log_file.open("ab", buffering=0)
        self._follow(lambda: _copy(stream, log))

    def _await_end(self) -> None:
        api = self._another_api()
        try:
            api.wait(self.id)
            ended = _ended(api.inspect_container(self.id)["State"])
            is_missed = ended.exit_code == -signal.SIGKILL and not ended.was_oom_killed
            self._ended = replace(ended, was_oom_killed=True) if is_missed and self.saw_memory_kill() else ended
        except Exception as error:  # told to whoever asks how it is
            self._lost = self._lost or error
        finally:
            self._has_ended.set()

    def _follow(self, work: Any) -> None:
        thread = threading.Thread(target=work, name=f"container {self.spec.name}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _another_api(self) -> Any:
        api = self._engine.another_api()
        self._apis.append(api)
        return api


def not_live(container: Container, what: str = "") -> TargetNotLive:
    """What is told of a server whose live endpoint has not answered."""
    ended = container.ended()
    if ended is not None:
        container.wait_for_log()
    told = what or f"ended with exit status {ended.exit_code if ended else None} before it answered"
    killed = " (out of memory: the container's limit was reached)" if ended and ended.was_oom_killed else ""
    return TargetNotLive(
        f"tritonserver in the container {told}{killed}",
        state="running" if ended is None else "exited",
        exit_status=None if ended is None else ended.exit_code,
        log_lines=tuple(container.log_lines()[-_SHOWN_LOG_LINES:]),
        hint="its log says why; `server: {startup_deadline: …}` in the scenario gives it more time",
    )


def build(engine: Engine, spec: ContainerSpec, deadline_s: float) -> tuple[int | None, str]:
    """Run a container to its end; return its exit code (None: it was not done in time) and what it printed."""
    with tempfile.TemporaryDirectory(prefix="tritonchaos-") as beside:
        log = Path(beside) / "log"
        ended = run_to_end(engine, spec, log, deadline_s)
        return None if ended is None else ended.exit_code, log.read_text("utf-8", "replace")


def run_to_end(engine: Engine, spec: ContainerSpec, log_file: Path, at_most_s: float) -> Ended | None:
    """Run a container to its end and remove it; None if it was not done in time."""
    container = Container(engine, spec, log_file)
    try:
        container.start()
        return container.wait(at_most_s)
    finally:
        container.remove()


def remove_container(engine: Engine, container_id: str) -> None:
    """End a container at once if it runs, and remove it with its anonymous volumes; harmless if it is gone.

    Raises:
        TargetError: The engine refused.
    """
    from docker.errors import APIError, NotFound

    end = time.monotonic() + _REMOVE_S
    while True:
        try:
            engine.api.remove_container(container_id, v=True, force=True)
            return
        except NotFound:
            return
        except APIError as error:
            # Another removal under way, or a process that the kernel has not let go yet.
            if time.monotonic() >= end:
                raise TargetError(
                    f"the container {container_id[:12]} cannot be removed: {error.explanation}",
                    hint="`tritonchaos clean` tries again",
                ) from None
            time.sleep(0.2)


def _copy(stream: Any, log: IO[bytes]) -> None:
    with log, contextlib.suppress(Exception):  # the engine went away: how the container is will say so
        copy_output(stream, log)


def _ended(state: Mapping[str, Any]) -> Ended:
    code = int(state.get("ExitCode", 0))
    number = code - _FIRST_SIGNAL_CODE
    return Ended(
        exit_code=-number if 0 < number < 65 else code,
        was_oom_killed=bool(state.get("OOMKilled")),
        error=str(state.get("Error") or ""),
    )
