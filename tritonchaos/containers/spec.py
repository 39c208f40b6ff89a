"""What a container of ours is to be: one record, told to the engine and told as a `docker run` line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

ALL: str = "ALL"


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of this machine in a container.

    Attributes:
        source: Absolute path here.
        target: Absolute path there.
    """

    source: str
    target: str
    is_writable: bool = False


@dataclass(frozen=True, slots=True)
class GpuDevices:
    """How GPUs are given to a container; see `gpu_access`.

    Attributes:
        driver: "" for the NVIDIA Container Toolkit's device request, "cdi" for CDI names.
        ids: Device ids of the request: UUIDs, or CDI names; empty with `nodes`.
        nodes: Device nodes of this machine.
    """

    driver: str = ""
    ids: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """A container to be made. Safe by default: no capability, no new privileges, nothing to write but scratch space.

    Attributes:
        image: Image id, or any name of it.
        entrypoint: None: the image's own.
        user: "UID:GID", or "" for the image's own.
        tmpfs: Path -> mount options.
        network: "none", "bridge", "host", the name of a network, or "container:ID".
        ports: Port in the container -> port of 127.0.0.1.
        limits: Resource limits such as "nofile" -> value, -1 for none.
        shm_bytes: Size of /dev/shm; None: the engine's default.
        memory_bytes: Most memory; None: no limit.
        pids_limit: Most processes and threads; -1: no limit.
    """

    image: str
    name: str
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    has_init: bool = True
    is_read_only: bool = True
    drop: tuple[str, ...] = (ALL,)
    add: tuple[str, ...] = ()
    security: tuple[str, ...] = ("no-new-privileges",)
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    network: str = "none"
    ports: Mapping[int, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    shm_bytes: int | None = None
    memory_bytes: int | None = None
    pids_limit: int = 4096
    gpus: GpuDevices = field(default_factory=GpuDevices)
    pid_mode: str = ""
    users: str = ""


def engine_config(spec: ContainerSpec) -> dict[str, Any]:
    """Return the body of the engine's "create a container".

    Source: Docker Engine API 1.41, ContainerCreate; Podman's compatible API takes the same fields.
    """
    config: dict[str, Any] = {
        "Image": spec.image,
        "Cmd": list(spec.command),
        "Env": [f"{name}={value}" for name, value in spec.env.items()],
        "User": spec.user,
        "Labels": dict(spec.labels),
        "ExposedPorts": {f"{port}/tcp": {} for port in spec.ports},
        "HostConfig": _host_config(spec),
    }
    if spec.entrypoint is not None:
        config["Entrypoint"] = list(spec.entrypoint)
    return config


def _host_config(spec: ContainerSpec) -> dict[str, Any]:
    host: dict[str, Any] = {
        "Init": spec.has_init,
        "ReadonlyRootfs": spec.is_read_only,
        "CapDrop": list(spec.drop),
        "CapAdd": [_capability(name) for name in spec.add],
        "SecurityOpt": list(spec.security),
        "Tmpfs": dict(spec.tmpfs),
        "Mounts": [_mount(mount) for mount in spec.mounts],
        "NetworkMode": spec.network,
        "PortBindings": {
            f"{inside}/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(outside)}]
            for inside, outside in spec.ports.items()
        },
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in spec.limits.items()],
        "PidsLimit": spec.pids_limit,
        "RestartPolicy": {"Name": "no"},
    }
    if spec.shm_bytes is not None:
        host["ShmSize"] = spec.shm_bytes
    if spec.memory_bytes is not None:
        # The same limit for memory and swap together: swapping would hide what a limit is to show.
        host |= {"Memory": spec.memory_bytes, "MemorySwap": spec.memory_bytes}
    if spec.pid_mode:
        host["PidMode"] = spec.pid_mode
    if spec.users:
        host["UsernsMode"] = spec.users
    return host | _devices(spec.gpus)


def _capability(name: str) -> str:
    """The full name: some versions of the docker command make it of the short one, others pass on what they get."""
    return name if name.upper() == ALL or name.upper().startswith("CAP_") else f"CAP_{name.upper()}"


def _mount(mount: Mount) -> dict[str, Any]:
    return {"Type": "bind", "Source": mount.source, "Target": mount.target, "ReadOnly": not mount.is_writable}


def _devices(gpus: GpuDevices) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if gpus.ids:
        request: dict[str, Any] = {"Driver": gpus.driver, "DeviceIDs": list(gpus.ids)}
        found["DeviceRequests"] = [request if gpus.driver else {**request, "Capabilities": [["gpu"]]}]
    if gpus.nodes:
        found["Devices"] = [
            {"PathOnHost": node, "PathInContainer": node, "CgroupPermissions": "rwm"} for node in gpus.nodes
        ]
    return found


def docker_run_line(spec: ContainerSpec) -> str:
    """Write the `docker run` line that starts an equal container."""
    return shlex.join(["docker", "run", *_options(spec), spec.image, *_arguments(spec)])


def _arguments(spec: ContainerSpec) -> tuple[str, ...]:
    return (*(spec.entrypoint or ())[1:], *spec.command)


def _options(spec: ContainerSpec) -> Iterator[str]:
    yield from ("--name", spec.name)
    yield from (f"--label={name}={value}" for name, value in spec.labels.items())
    if spec.has_init:
        yield "--init"
    if spec.user:
        yield f"--user={spec.user}"
    if spec.entrypoint:
        yield f"--entrypoint={spec.entrypoint[0]}"
    yield from (f"--env={name}={value}" for name, value in spec.env.items())
    yield from _safety_options(spec)
    yield from (f"--tmpfs={path}:{options}" for path, options in spec.tmpfs.items())
    for mount in spec.mounts:
        access = "" if mount.is_writable else ",readonly"
        yield f"--mount=type=bind,source={mount.source},target={mount.target}{access}"
    yield f"--network={spec.network}"
    yield from (f"--publish=127.0.0.1:{outside}:{inside}" for inside, outside in spec.ports.items())
    yield from _limit_options(spec)
    yield from _gpu_options(spec.gpus)


def _safety_options(spec: ContainerSpec) -> Iterator[str]:
    if spec.is_read_only:
        yield "--read-only"
    yield from (f"--cap-drop={name}" for name in spec.drop)
    yield from (f"--cap-add={_capability(name)}" for name in spec.add)
    yield from (f"--security-opt={option}" for option in spec.security)
    if spec.pid_mode:
        yield f"--pid={spec.pid_mode}"
    if spec.users:
        yield f"--userns={spec.users}"


def _limit_options(spec: ContainerSpec) -> Iterator[str]:
    if spec.shm_bytes is not None:
        yield f"--shm-size={spec.shm_bytes}"
    if spec.memory_bytes is not None:
        yield from (f"--memory={spec.memory_bytes}", f"--memory-swap={spec.memory_bytes}")
    yield f"--pids-limit={spec.pids_limit}"
    yield from (f"--ulimit={name}={value}:{value}" for name, value in spec.limits.items())


def _gpu_options(gpus: GpuDevices) -> Iterator[str]:
    if gpus.driver == "cdi":
        yield from (f"--device={name}" for name in gpus.ids)
    elif gpus.ids:
        # The docker command splits at commas unless the value is quoted within.
        yield f'--gpus="device={",".join(gpus.ids)}"'
    yield from (f"--device={node}" for node in gpus.nodes)
