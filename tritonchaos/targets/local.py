"""A tritonserver process on this machine."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from tritonchaos import processes
from tritonchaos.client import wait_until_live
from tritonchaos.errors import SamplerError, TargetNotLive, TritonChaosBug
from tritonchaos.local_server.backend_layout import lay_out_backends, server_environment
from tritonchaos.local_server.installation import Installation, find_installation, read_flags
from tritonchaos.local_server.server_flags import (
    EXIT_TIMEOUT_S,
    HOST,
    asked_flags,
    exit_timeout_s,
    free_ports,
    refuse_unknown,
    refuse_unloaded_library,
    spell,
)
from tritonchaos.local_server.server_process import ServerProcess
from tritonchaos.local_server.stacks import take_stacks
from tritonchaos.local_server.tensorrt_version import find_tensorrt_version
from tritonchaos.local_server.trimming import Trimmer
from tritonchaos.nvml import NoNvml, open_nvml, visible_gpus
from tritonchaos.plugins import TARGETS, LaunchSpec, RepositoryPlace, RunningServer, Stop
from tritonchaos.processes import Process

_PORT_ATTEMPTS: Final = 3
_SHOWN_LOG_LINES: Final = 20
_PORT_TAKEN: Final = ("already in use", "Address already in use")


class _PortTaken(Exception):
    """Somebody took one of the ports between our choice of it and the server's start."""


@TARGETS.register
@dataclass
class LocalTarget:
    """Run the tritonserver of this machine: by path, in PATH, in /opt/tritonserver, or of the nvidia-pytriton wheel.

    Attributes:
        server_path: The binary; None: it is searched for.
        sends_files: The model repository stays empty; model files are sent with every load (the load request's `config`
            and `file:` content).
    """

    name: ClassVar[str] = "local"

    server_path: Path | None = None
    sends_files: bool = False

    def __post_init__(self) -> None:
        self._installation: Installation | None = None
        self._process: ServerProcess | None = None
        self._launch: LaunchSpec | None = None
        self._trimmer: Trimmer | None = None
        self._answered_version = ""
        self._tensorrt_version: str | None = None

    def check(self) -> None:
        """Find the server and ask for its help, which tells whether it can be executed here.

        Raises:
            TargetUnavailable: No usable tritonserver; names everything that was looked at.
        """
        installation = self._find()
        read_flags(installation.binary, server_environment(installation, os.environ, {}))

    def describe(self) -> Mapping[str, str]:
        """Facts for the report; the version is certain once the server has been started.

        Raises:
            TargetUnavailable: No usable tritonserver.
        """
        installation = self._find()
        facts = {
            "target": self.name,
            "triton_version": self._answered_version or installation.triton_version,
            "server_path": str(installation.binary),
            "server_origin": installation.origin,
            "gpu_uuids": ",".join(_gpu_uuids()),
            "cpu_count": str(os.cpu_count() or ""),
        }
        if self._trimmer is not None:
            facts["malloc_trim"] = self._trimmer.why_not or "can be called: a library with one thread is preloaded"
        if installation.passed_over:
            facts["server_passed_over"] = "; ".join(installation.passed_over)
        if installation.no_python_backend:
            facts["python_backend"] = f"not available: {installation.no_python_backend}"
        if "tensorrt" in installation.backends:
            facts["tensorrt_version"] = self._find_tensorrt_version(installation)
        return facts

    def backends(self) -> frozenset[str]:
        """Names of the backends beside the server; the python backend only where its stub can run here."""
        return self._find().backend_names

    def repository_place(self) -> RepositoryPlace:
        """The run's own folder."""
        return RepositoryPlace(sends_files=self.sends_files)

    def start(self, launch: LaunchSpec) -> RunningServer:
        """Start the server on free ports of 127.0.0.1 and return once live answers.

        Raises:
            TargetUnavailable: No usable tritonserver.
            UsageError: This tritonserver has no such flag.
            TargetNotLive: It ended or stayed silent; nothing of it is left running.
        """
        if self._process is not None and self._process.exit_code() is None:
            raise TritonChaosBug("the local server was started while it runs")
        installation = self._find()
        environment = server_environment(installation, os.environ, {"TMPDIR": str(launch.temp), **launch.env})
        takes_value = read_flags(installation.binary, environment)
        refuse_unknown(launch.flags, takes_value)
        environment = self._with_trimmer(launch, environment)
        folder = launch.scratch / "backends"
        lay_out_backends(installation, folder, launch.backends)
        self._launch = launch
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            flags = _flags(launch, folder)
            arguments = [str(installation.binary), *spell(flags, launch, takes_value)]
            self._process = ServerProcess(arguments, environment, launch.log_file, launch.ulimits)
            try:
                running = self._wait_until_live(self._process, flags, launch.startup_deadline_s)
                refuse_unloaded_library(self._process.log_lines())
                return running
            except _PortTaken:
                if attempt == _PORT_ATTEMPTS:
                    raise self._not_live(self._process, "found its ports taken") from None
            except BaseException:
                self._process.kill()
                raise
            finally:
                if self._process.exit_code() is not None:
                    self.stop()
        raise TritonChaosBug("unreachable: the last attempt returns or raises")

    def exit_code(self) -> int | None:
        """Exit code of the last server, minus the signal number after a signal; None while it runs or before any."""
        return None if self._process is None else self._process.exit_code()

    def processes(self) -> list[Process]:
        """The server and what it started; empty when it does not run."""
        return [] if self._process is None else self._process.processes()

    def stacks(self) -> Mapping[int, str]:
        """Stacks of all threads of the server and its stubs, by process id.

        Raises:
            TargetError: There is no debugger.
        """
        return take_stacks(process.pid for process in self.processes() if process.role in ("server", "stub"))

    def trim(self, deadline_s: float) -> str:
        """Call malloc_trim in the server, and trim its CUDA memory pools."""
        if self._process is None or self._process.exit_code() is not None:
            return "no server runs"
        return self._trimmer.trim(deadline_s) if self._trimmer is not None else "not prepared when the server started"

    def kill(self, signal_number: int, pid: int) -> bool:
        """Signal the server or one of its processes; False if it has ended."""
        return self._process is not None and self._process.signal(signal_number, pid)

    def stop(self) -> Stop:
        """Stop the server: SIGTERM, wait twice its exit timeout and 5 s, SIGKILL; then end and remove what it left.

        Connections to it must be closed first, else SIGTERM takes the whole exit timeout.
        """
        if self._process is None or self._launch is None:
            return Stop(signal="", exit_code=None, forced=False)
        started = processes.descendants(self._process.pid)
        try:
            sent = self._process.terminate(2 * exit_timeout_s(self._launch) + 5)
            killed = self._process.end_survivors(started)
        finally:
            # Also when the user does not want to wait: the keeper ends all that is left, without grace.
            self._process.release()
            shared = processes.remove_shared_memory(self._launch.shm_prefix)
        left = [("process", command, 0) for command in killed]
        left += [("shm", memory.name, memory.bytes) for memory in shared]
        return Stop(sent, self._process.exit_code(), sent == "SIGKILL", tuple(left))

    def _with_trimmer(self, launch: LaunchSpec, environment: dict[str, str]) -> dict[str, str]:
        """Preload the library that `trim` needs; not into a server whose libraries are the scenario's own choice."""
        self._trimmer = Trimmer(launch.scratch / "trim") if launch.may_trim else None
        if self._trimmer is None:
            return environment
        if launch.env.get("LD_PRELOAD"):
            self._trimmer.why_not = "not called: LD_PRELOAD is the scenario's own choice"
            return environment
        return self._trimmer.environment(environment)

    def _find_tensorrt_version(self, installation: Installation) -> str:
        if self._tensorrt_version is None:
            environment = server_environment(installation, os.environ, {})
            self._tensorrt_version = find_tensorrt_version(installation.backends["tensorrt"], environment) or ""
        return self._tensorrt_version

    def _find(self) -> Installation:
        if self._installation is None:
            self._installation = find_installation(self.server_path)
        return self._installation

    def _wait_until_live(
        self, process: ServerProcess, flags: Mapping[str, str], startup_deadline_s: float
    ) -> RunningServer:
        url = f"http://{_host(flags['http-address'])}:{flags['http-port']}"

        def look() -> None:
            if process.exit_code() is None:
                return
            lines = process.log_lines()
            if any(sign in line for line in lines for sign in _PORT_TAKEN):
                raise _PortTaken
            raise self._not_live(process, f"ended with exit status {process.exit_code()} before it answered")

        version = wait_until_live(url, flags["id"], startup_deadline_s, look)
        if version is None:
            raise self._not_live(process, f"was not live after {startup_deadline_s:g} s")
        self._answered_version = version
        has_grpc = flags.get("allow-grpc", "true") != "false"
        return RunningServer(
            url, f"{_host(flags['grpc-address'])}:{flags['grpc-port']}" if has_grpc else None, process.pid
        )

    def _not_live(self, process: ServerProcess, what: str) -> TargetNotLive:
        exit_code = process.exit_code()
        return TargetNotLive(
            f"tritonserver {what}",
            state="running" if exit_code is None else "exited",
            exit_status=exit_code,
            log_lines=tuple(process.log_lines()[-_SHOWN_LOG_LINES:]),
            hint="its log says why; `server: {startup_deadline: …}` in the scenario gives it more time",
        )


def _gpu_uuids() -> tuple[str, ...]:
    """GPUs that a server started from here sees; none where NVML does not tell."""
    nvml = open_nvml()
    if isinstance(nvml, NoNvml):
        return ()
    try:
        return visible_gpus(nvml.gpus(), os.environ).uuids
    except SamplerError:
        return ()
    finally:
        nvml.close()


def _host(address: str) -> str:
    """An address as URLs have it: those of IPv6 in brackets."""
    return f"[{address}]" if ":" in address else address


def _flags(launch: LaunchSpec, backend_folder: Path) -> dict[str, str]:
    """Flags by name: ours, then those that were asked for."""
    http_port, grpc_port, metrics_port = free_ports(3)
    flags = {
        "id": f"tritonchaos-{uuid.uuid4().hex}",
        "model-repository": str(launch.repository),
        "backend-directory": str(backend_folder),
        "model-control-mode": launch.mode,
        "http-address": HOST,
        "http-port": str(http_port),
        "grpc-address": HOST,
        "grpc-port": str(grpc_port),
        "allow-metrics": "false",
        "metrics-port": str(metrics_port),
        "exit-timeout-secs": str(EXIT_TIMEOUT_S),
    }
    return flags | dict(asked_flags(launch))
