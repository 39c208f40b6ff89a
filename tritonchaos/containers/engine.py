"""The container engine of this machine: where it listens, what it is, and a connection to it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tritonchaos.errors import TargetError, TargetUnavailable

_DEFAULT_SOCKET: Final = Path("/var/run/docker.sock")
_CONNECT_S: Final = 2.0
_CALL_S: Final = 120.0
_HOW_TO_GET: Final = (
    "install Docker (or Podman with its socket: systemctl --user start podman.socket), or set DOCKER_HOST"
)
_PODMAN: Final = "Podman"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """Where an engine listens.

    Attributes:
        url: "unix:///var/run/docker.sock" or "tcp://127.0.0.1:2375".
        origin: How it was found, such as "DOCKER_HOST".
    """

    url: str
    origin: str

    @property
    def socket(self) -> Path | None:
        """Path of its socket; None where it is no Unix socket."""
        return Path(urlsplit(self.url).path) if self.url.startswith("unix:") else None


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an engine says of itself.

    Attributes:
        name: "Docker" or "Podman".
        api_version: Version of the API that is spoken with it.
        is_rootless: It runs as an ordinary user, who is root (uid 0) in its containers.
        remaps_users: Users of its containers are other users here (userns-remap).
        cgroup_version: "1" or "2"; "" where it does not say.
        runtimes: Names of the OCI runtimes.
        cdi_folders: Folders in which it looks for CDI device descriptions; empty: it knows no CDI.
    """

    name: str
    version: str
    api_version: str
    is_rootless: bool
    remaps_users: bool
    cgroup_version: str
    runtimes: frozenset[str]
    cdi_folders: tuple[str, ...]
    storage_folder: str = ""

    def line(self) -> str:
        """Say all that matters in one line."""
        user = "rootless" if self.is_rootless else "users remapped" if self.remaps_users else "rootful"
        cgroup = f", cgroup v{self.cgroup_version}" if self.cgroup_version else ""
        return f"{self.name} {self.version}, API {self.api_version}, {user}{cgroup}"


class Engine:
    """A connection to an engine; one thread at a time, others take `another_api`.

    Args:
        api: A docker.APIClient.
    """

    def __init__(self, address: EngineAddress, api: Any, facts: EngineFacts) -> None:
        self.address = address
        self.api = api
        self.facts = facts

    def another_api(self) -> Any:
        """Make a client for calls that may take for ever, in another thread; the caller closes it."""
        import docker

        return docker.APIClient(base_url=self.address.url, version=self.facts.api_version, timeout=None)

    def limit_memory(self, container_id: str, limit_bytes: int) -> None:
        """Set a running container's memory limit, swap included.

        Podman before 5 has this call in its own API only, where the limits are written as in an OCI configuration.
        Source: Podman API reference, "Update an existing containers cgroup configuration" (from 4.3).
        """
        if self.facts.name != _PODMAN:
            self.api.update_container(container_id, mem_limit=limit_bytes, memswap_limit=limit_bytes)
            return
        limits = {"memory": {"limit": limit_bytes, "swap": limit_bytes}}
        url = f"{self.api.base_url}/v4.0.0/libpod/containers/{container_id}/update"
        self.api._raise_for_status(self.api.post(url, json=limits, timeout=_CALL_S))

    def close(self) -> None:
        """Close the connection."""
        self.api.close()


def find_engine_address(environment: Mapping[str, str], given: str | None = None) -> EngineAddress:
    """Find where the engine listens, as the docker command does; then Podman's socket.

    Args:
        given: Address that was asked for; it has no fallback.
    """
    if given:
        return EngineAddress(given, "the scenario")
    if environment.get("DOCKER_HOST"):
        return EngineAddress(environment["DOCKER_HOST"], "DOCKER_HOST")
    context = _context_host(environment)
    if context is not None:
        return context
    runtime = Path(environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    found = (
        (_DEFAULT_SOCKET, "default socket"),
        (runtime / "docker.sock", "socket of rootless Docker"),
        (runtime / "podman" / "podman.sock", "socket of rootless Podman"),
        (Path("/run/podman/podman.sock"), "socket of Podman"),
    )
    there = [(path, origin) for path, origin in found if _is_socket(path)]
    # Beside an engine that only others may use, a user may run a rootless one.
    path, origin = next((one for one in there if os.access(one[0], os.W_OK)), (there or found)[0])
    return EngineAddress(f"unix://{path}", origin)


def connect(address: EngineAddress) -> Engine:
    """Connect to an engine and ask what it is.

    Raises:
        TargetUnavailable: Nothing answers there, this user may not ask, or it runs on another machine.
    """
    check_address(address)
    import docker
    from docker.errors import DockerException

    try:
        api = docker.APIClient(base_url=address.url, version="auto", timeout=_CALL_S)
        facts = _facts(api)
    except (DockerException, OSError) as error:
        raise TargetUnavailable(f"the engine at {address.url} does not answer: {_first_line(error)}") from None
    return Engine(address, api, facts)


def check_address(address: EngineAddress) -> None:
    """See that something listens there, before the SDK is imported: most machines without an engine end here.

    Raises:
        TargetUnavailable: With the exact reason.
    """
    path = address.socket
    if path is None:
        host = urlsplit(address.url).hostname or ""
        if not address.url.startswith(("tcp:", "http:")) or host not in _LOOPBACK:
            raise TargetUnavailable(
                f"the engine at {address.url} ({address.origin}) runs on another machine, which cannot mount this "
                "machine's folders",
                hint="run tritonchaos on that machine",
            )
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(_CONNECT_S)
            probe.connect(os.fspath(path))
    except FileNotFoundError:
        raise TargetUnavailable(
            f"no container engine: there is no {path} ({address.origin})", hint=_HOW_TO_GET
        ) from None
    except PermissionError:
        raise TargetUnavailable(
            f"the engine's socket {path} may not be opened by this user",
            hint="add the user to the group docker, or use rootless Docker",
        ) from None
    except OSError as error:
        raise TargetUnavailable(
            f"no container engine listens at {path} ({address.origin}): {error.strerror or error}", hint=_HOW_TO_GET
        ) from None


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Tell what the engine refuses as an error of ours.

    Args:
        what: What is asked of it, such as "start the container".

    Raises:
        TargetError: It refused, or did not answer.
    """
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException) as error:
        raise TargetError(f"the engine could not {what}: {told(error)}") from error


def told(error: BaseException) -> str:
    """What an engine said, without the SDK's words around it."""
    explanation = getattr(error, "explanation", None)
    return str(explanation).strip() if explanation else _first_line(error)


def _facts(api: Any) -> EngineFacts:
    info, version = api.info(), api.version()
    options = " ".join(info.get("SecurityOptions") or ())
    components = {part.get("Name", ""): part for part in version.get("Components") or ()}
    is_podman = any("podman" in name.lower() for name in components)
    return EngineFacts(
        name=_PODMAN if is_podman else "Docker",
        version=str(version.get("Version", "")),
        api_version=str(api.api_version),
        is_rootless="name=rootless" in options or bool(info.get("Rootless")),
        remaps_users="name=userns" in options,
        cgroup_version=str(info.get("CgroupVersion", "")),
        runtimes=frozenset(info.get("Runtimes") or ()),
        cdi_folders=tuple(info.get("CDISpecDirs") or ()),
        storage_folder=str(info.get("DockerRootDir", "")),
    )


def _context_host(environment: Mapping[str, str]) -> EngineAddress | None:
    """Address of the docker command's current context; None for the default one, or where it cannot be read.

    Source: docs of the docker command, "Docker contexts": a context's folder is named by the SHA-256 of its name.
    """
    folder = Path(environment.get("DOCKER_CONFIG") or Path(environment.get("HOME") or "/") / ".docker")
    try:
        name = environment.get("DOCKER_CONTEXT") or json.loads((folder / "config.json").read_text()).get(
            "currentContext"
        )
        if not name or name == "default":
            return None
        digest = hashlib.sha256(name.encode()).hexdigest()
        meta = json.loads((folder / "contexts" / "meta" / digest / "meta.json").read_text())
        return EngineAddress(str(meta["Endpoints"]["docker"]["Host"]), f"docker context {name}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return re.sub(r"\s+", " ", text.splitlines()[0])
