"""Finds a tritonserver, starts it as the original run did, and ends it."""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from tritonchaos.reproducing.program.calls import call
from tritonchaos.reproducing.program.readings import descendants, files_below, read_text, shared_memory, state_of

EXIT_TIMEOUT_S = 10
STARTUP_S = 120.0
STUB = "triton_python_backend_stub"
CC_LINE = "cc -std=c11 -O2 -g -fPIC -shared -fvisibility=hidden -o libtriton_planted.so planted/*.c"


class CannotTell(Exception):
    """The finding could be neither shown nor refuted here."""


def find_server(given: str) -> str:
    """Path of the tritonserver: as given, in PATH, where the official image has it, or in the nvidia-pytriton wheel."""
    found = [given] if given else [shutil.which("tritonserver") or "", "/opt/tritonserver/bin/tritonserver", in_wheel()]
    for path in found:
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.realpath(path)
    raise CannotTell("no tritonserver at {}; give its path with --server".format(given or "any of the usual places"))


def in_wheel() -> str:
    """Where the nvidia-pytriton wheel has it, if this Python has that wheel; nothing of it is imported."""
    spec = importlib.util.find_spec("pytriton")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return os.path.join(folders[0], "tritonserver", "bin", "tritonserver") if folders else ""


class Installation:
    """What belongs to a tritonserver: its backends, libraries, and the environment that it runs in."""

    def __init__(self, binary: str, library_path: str) -> None:
        self.binary = binary
        self.root = os.path.dirname(os.path.dirname(binary))
        self.site = os.path.dirname(os.path.dirname(self.root))
        self.is_wheel = os.path.isdir(os.path.join(self.root, "python_backend_stubs"))
        own = os.path.join(self.site, "nvidia_pytriton.libs") if self.is_wheel else os.path.join(self.root, "lib")
        self.libraries = [part for part in [library_path, os.environ.get("LD_LIBRARY_PATH", ""), own] if part]
        self.python = self.python_of_wheel() if self.is_wheel else ""
        if self.is_wheel:
            self.libraries += [os.path.dirname(path) for path in self.python_libraries()[:1]]

    def python_of_wheel(self) -> str:
        """Version of the Python that the wheel was installed for, such as "3.11": its stub must be of that one."""
        match = re.search(r"/python(3\.\d+)/", self.site + "/")
        return match.group(1) if match else "{}.{}".format(*sys.version_info[:2])

    def python_libraries(self) -> list[str]:
        """The libpython that the wheel's stub needs: of the wheel's own Python, else of the system."""
        name = "libpython{}.so.1.0".format(self.python)
        prefix = os.path.dirname(os.path.dirname(os.path.dirname(self.site)))
        home = re.search(r"^home\s*=\s*(.+)$", read_text(os.path.join(prefix, "pyvenv.cfg")), re.MULTILINE)
        prefixes = [os.path.dirname(home.group(1).strip())] if home else []
        prefixes += [prefix, sys.base_prefix, "/usr", "/usr/local"]
        patterns = [os.path.join(root, lib, name) for root in prefixes for lib in ("lib", "lib64", "lib/*")]
        return [path for pattern in patterns for path in sorted(glob.glob(pattern))]

    def environment(self, asked: dict[str, str | None], temp: str) -> dict[str, str]:
        """Environment of the server; what the original run set wins, None takes a variable away."""
        own = dict(os.environ, TMPDIR=temp)
        own.setdefault("PYTHONDONTWRITEBYTECODE", "1")
        own["LD_LIBRARY_PATH"] = os.pathsep.join(self.libraries)
        if self.is_wheel:
            # The stub looks for its standard library and packages from where python3 is in PATH.
            prefix = os.path.dirname(os.path.dirname(os.path.dirname(self.site)))
            own["PATH"] = os.pathsep.join([os.path.join(prefix, "bin"), own.get("PATH", os.defpath)])
            own["PYTHONPATH"] = self.site
        own.update({name: value for name, value in asked.items() if value is not None})
        return {name: value for name, value in own.items() if name not in asked or asked[name] is not None}

    def lay_out_backends(self, folder: str, planted: str) -> str:
        """Make one backend folder of the server's own backends and ours; return its path.

        Args:
            planted: Folder with the C sources of the planted backend, "" if it is not needed.
        """
        own = os.path.join(self.root, "backends")
        if not planted and not self.is_wheel:
            return own
        os.makedirs(folder)
        for name in sorted(os.listdir(own)) if os.path.isdir(own) else []:
            if not (self.is_wheel and name == "python"):
                os.symlink(os.path.join(own, name), os.path.join(folder, name))
        if self.is_wheel:
            self.lay_out_python(os.path.join(own, "python"), os.path.join(folder, "python"))
        if planted:
            build_planted(planted, os.path.join(folder, "planted"))
        return folder

    def lay_out_python(self, own: str, folder: str) -> None:
        """Join the wheel's python backend with its stub, which the wheel keeps elsewhere."""
        os.makedirs(folder)
        stub = os.path.join(self.root, "python_backend_stubs", self.python, STUB)
        for path in [os.path.join(own, name) for name in os.listdir(own)] + [stub]:
            if os.path.isfile(path) and not os.path.exists(os.path.join(folder, os.path.basename(path))):
                shutil.copy(path, folder)
        if os.path.exists(os.path.join(folder, STUB)):
            os.chmod(os.path.join(folder, STUB), 0o755)


def build_planted(sources: str, folder: str) -> None:
    """Compile the planted backend, or take the library if somebody has put it beside its sources."""
    os.makedirs(folder)
    library = os.path.join(folder, "libtriton_planted.so")
    ready = os.path.join(sources, "libtriton_planted.so")
    if os.path.isfile(ready):
        shutil.copy(ready, library)
        return
    compiler = os.environ.get("CC") or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise CannotTell(
            "there is no C compiler here; build the planted backend on another machine with\n  {}\n"
            "and put libtriton_planted.so into {}".format(CC_LINE, sources)
        )
    command = compiler.split() + ["-std=c11", "-O2", "-g", "-fPIC", "-shared", "-fvisibility=hidden", "-o", library]
    command += sorted(glob.glob(os.path.join(sources, "*.c")))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise CannotTell("the planted backend did not compile:\n" + done.stdout.decode("utf-8", "replace")[-2000:])


class Server:
    """One tritonserver process in a session of its own; it dies with this program."""

    def __init__(self, installation: Installation, recipe: dict[str, Any], work: str, backends: str) -> None:
        self.installation, self.recipe, self.work, self.backends = installation, recipe, work, backends
        self.repository = os.path.join(work, "model_repository")
        self.temp = os.path.join(work, "tmp")
        self.log = os.path.join(work, "server.log")
        self.shm_prefix = "repro_{}_".format(os.getpid())
        self.shm_before = frozenset(shared_memory(""))
        self.process: subprocess.Popen[bytes] | None = None
        self.exit_timeout_s = float(recipe["server"]["flags"].get("exit-timeout-secs", EXIT_TIMEOUT_S))
        self.port = 0
        self.starts = 0
        for folder in (self.repository, self.temp):
            os.makedirs(folder, exist_ok=True)

    def start(self) -> None:
        """Start it in model control mode EXPLICIT on free ports of 127.0.0.1; return once it is live."""
        environment = self.installation.environment(self.recipe["server"]["env"], self.temp)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.installation.binary] + self.arguments(environment),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=self.prepare_child,
            )
        self.starts += 1
        end = time.monotonic() + STARTUP_S
        while call(self.port, "GET", "/v2/health/live", 2.0)["status"] != 200:
            if self.process.poll() is not None or time.monotonic() > end:
                last = read_text(self.log).splitlines()[-15:]
                raise CannotTell("tritonserver did not become live:\n  " + "\n  ".join(last))
            time.sleep(0.05)

    def prepare_child(self) -> None:
        """Let the server die with this program, and set the resource limits of the original run."""
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG
        for name, value in self.recipe["server"].get("ulimits", {}).items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name.upper()), (value, value))

    def arguments(self, environment: dict[str, str]) -> list[str]:
        """The flags of the original run, and those that place the server in its own folder and ports."""
        self.port, grpc_port = free_ports(2)
        flags = {
            "model-repository": self.repository,
            "model-control-mode": self.recipe["server"].get("mode", "explicit"),
            "http-address": "127.0.0.1",
            "http-port": str(self.port),
            "grpc-address": "127.0.0.1",
            "grpc-port": str(grpc_port),
            "allow-metrics": "false",
            "exit-timeout-secs": "{:g}".format(self.exit_timeout_s),
        }
        if os.path.isdir(self.backends):
            flags["backend-directory"] = self.backends
        flags.update(self.recipe["server"]["flags"])
        command = [self.installation.binary, "--help"]
        told = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        known = dict(re.findall(r"^  --([a-z0-9-]+)( <.*)?$", told.stdout.decode("utf-8", "replace"), re.MULTILINE))
        if "model-repository" not in known:
            last = told.stdout.decode("utf-8", "replace").strip().splitlines()[-3:]
            raise CannotTell("{} cannot be run: {}".format(self.installation.binary, " | ".join(last)))
        spelled = ["--backend-config=python,shm-region-prefix-name=" + self.shm_prefix]
        for name, value in flags.items():
            if known.get(name):
                spelled.append("--{}={}".format(name, value))
            elif value == "true":
                spelled.append("--" + name)
        return spelled

    @property
    def pid(self) -> int:
        """Its process id; 0 before the first start."""
        return self.process.pid if self.process is not None else 0

    def exit_code(self) -> int | None:
        """Exit code, or minus the signal number; None while it runs."""
        return self.process.poll() if self.process is not None else None

    def stop(self) -> dict[str, Any]:
        """SIGTERM, wait twice the exit timeout and 5 s, SIGKILL; then look for what is left."""
        if self.process is None or self.process.poll() is not None:
            return {
                "was_running": False,
                "exit_code": self.exit_code(),
                "forced": False,
                "expired": False,
                "took_s": 0.0,
            }
        log_start, began, started = os.path.getsize(self.log), time.monotonic(), descendants(self.pid)
        self.process.send_signal(signal.SIGTERM)
        forced = False
        try:
            self.process.wait(2 * self.exit_timeout_s + 5)
        except subprocess.TimeoutExpired:
            forced = True
            self.process.kill()
            self.process.wait(30)
        took_s = time.monotonic() - began
        with open(self.log, "rb") as log:
            log.seek(log_start)
            expired = b"Exit timeout expired" in log.read()
        left = self.look_for_left(started)
        return {
            "was_running": True, "exit_code": self.exit_code(), "forced": forced, "expired": expired, "took_s": took_s,
            "left": left,
        }  # fmt: skip

    def look_for_left(self, started: list[int]) -> dict[str, int]:
        """Count what outlived the server: processes (after a moment), shared memory, temp files."""
        end = time.monotonic() + 2.5
        while any(state_of(pid) not in ("", "Z", "X") for pid in started) and time.monotonic() < end:
            time.sleep(0.05)
        alive = sum(state_of(pid) not in ("", "Z", "X") for pid in started)
        return {"process": alive, "shm": len(shared_memory(self.shm_prefix)), "temp": len(files_below(self.temp))}

    def end(self) -> None:
        """End everything that was started, and remove its shared memory; harmless when repeated."""
        if self.process is not None:
            for send in (self.kill_session, self.process.kill):
                try:
                    send()
                except OSError:
                    continue
            self.process.wait(30)
        for path in shared_memory(self.shm_prefix):
            os.unlink(path)

    def kill_session(self) -> None:
        """End the server's session: its stubs too."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """TCP ports of 127.0.0.1 that nobody uses now."""
    listeners = [socket.socket() for _ in range(count)]
    try:
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()
