"""How a tritonserver is started in a container: what the target's settings and a launch make of one."""

from __future__ import annotations

import os
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tritonchaos.containers.engine import EngineFacts
from tritonchaos.containers.gpu_access import GpuAccess
from tritonchaos.containers.image_facts import BACKENDS
from tritonchaos.containers.images import Image
from tritonchaos.containers.labels import labels
from tritonchaos.containers.spec import ALL, ContainerSpec, GpuDevices, Mount
from tritonchaos.plugins import LaunchSpec

if TYPE_CHECKING:
    from tritonchaos.targets.docker import DockerTarget

MODELS: Final = "/tritonchaos/models"
TRIM: Final = "/tritonchaos/trim"
LOG: Final = "/tritonchaos/log"
TEMP: Final = "/tmp"
HTTP_PORT: Final = 8000
GRPC_PORT: Final = 8001
# The pids limit counts threads too, and a server has hundreds; one that is reached is our error, not the server's.
LEAST_PIDS: Final = 4096
_NO_NEW_PRIVILEGES: Final = "no-new-privileges"
# Names of `network` with a meaning of their own; any other is a network of the engine.
PUBLISH: Final = "publish"
NONE: Final = "none"
HOST: Final = "host"


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of the server: inside its container, and on 127.0.0.1 of this machine."""

    http: int
    grpc: int
    published_http: int = 0
    published_grpc: int = 0


def choose_ports(network: str, free: tuple[int, int]) -> Ports:
    """Ports for a network: a container has its own, unless it shares this machine's network.

    Args:
        free: Two ports of 127.0.0.1 that nobody uses.
    """
    if network == NONE:
        return Ports(HTTP_PORT, GRPC_PORT)
    if network == HOST:
        return Ports(*free, *free)
    return Ports(HTTP_PORT, GRPC_PORT, *free)


def server_flags(launch: LaunchSpec, network: str, ports: Ports, asked: Mapping[str, str]) -> dict[str, str]:
    """Flags by name: ours, then those that were asked for."""
    # A published port leads to the container's own address, not to its 127.0.0.1.
    address = "127.0.0.1" if network in (NONE, HOST) else "0.0.0.0"
    flags = {
        "id": f"tritonchaos-{uuid.uuid4().hex}",
        "model-repository": MODELS,
        "model-control-mode": launch.mode,
        "http-address": address,
        "http-port": str(ports.http),
        "grpc-address": address,
        "grpc-port": str(ports.grpc),
        "allow-metrics": "false",
        "exit-timeout-secs": "10",
    }
    return flags | dict(asked)


def run_mark(launch: LaunchSpec) -> str:
    """Mark of a run in labels and names: that of its shared memory."""
    return launch.shm_prefix.strip("_")


def server_spec(
    settings: DockerTarget,
    launch: LaunchSpec,
    arguments: list[str],
    ports: Ports,
    image: Image,
    engine: EngineFacts,
    gpus: GpuAccess | None,
    number: int = 1,
) -> ContainerSpec:
    """Everything about the server's container.

    Args:
        arguments: Flags of the server as arguments.
        number: Of this start.
    """
    is_published = settings.network not in (NONE, HOST)
    return ContainerSpec(
        image=image.exactly,
        name=f"tritonchaos-{run_mark(launch)}-server-{number}",
        command=(*_unset(launch, image), *settings.command, *arguments),
        entrypoint=tuple(settings.entrypoint) if settings.entrypoint is not None else None,
        labels=labels(run_mark(launch), "server"),
        env=_environment(launch) | library_path(image, gpus, launch.env),
        user=user_of(settings.user, engine),
        users="host" if engine.remaps_users else "",
        has_init=settings.init,
        is_read_only=settings.read_only,
        drop=() if settings.keep_capabilities else (ALL,),
        add=tuple(settings.cap_add),
        security=(*((_NO_NEW_PRIVILEGES,) if settings.no_new_privileges else ()), *settings.security_opt),
        tmpfs={TEMP: f"rw,exec,nosuid,nodev,mode=1777,size={settings.scratch_size}"},
        mounts=(
            Mount(str(launch.repository), MODELS, is_writable=settings.writable_models),
            *_backend_mounts(launch),
            *map(read_mount, settings.mounts),
            *(gpus.mounts if gpus else ()),
        ),
        network="bridge" if settings.network == PUBLISH else settings.network,
        ports={ports.http: ports.published_http, ports.grpc: ports.published_grpc} if is_published else {},
        limits=launch.ulimits,
        shm_bytes=settings.shm_size,
        memory_bytes=settings.memory,
        pids_limit=settings.pids_limit,
        gpus=gpus.devices if gpus else GpuDevices(),
    )


def build_spec(
    settings: DockerTarget,
    folder: Path,
    command: Sequence[str],
    image: Image,
    engine: EngineFacts,
    gpus: GpuAccess | None,
) -> ContainerSpec:
    """A container in which something is built: no network, and nothing to write but a folder and scratch space.

    The image's entrypoint is left out, unless it decides which CUDA driver library a program with a GPU gets.
    """
    mark = f"tc_{secrets.token_hex(4)}"
    through = image.entrypoint if gpus is not None and is_nvidias(image.entrypoint) else ()
    whole = (*through, *command)
    return ContainerSpec(
        image=image.id,
        name=f"tritonchaos-{mark.removeprefix('tc_')}-build",
        entrypoint=whole[:1],
        command=whole[1:],
        labels=labels(mark, "build"),
        env={"TMPDIR": TEMP, "HOME": TEMP} | library_path(image, gpus, {}),
        user=user_of("caller", engine),
        users="host" if engine.remaps_users else "",
        security=(_NO_NEW_PRIVILEGES, *settings.security_opt),
        tmpfs={TEMP: f"rw,exec,nosuid,nodev,mode=1777,size={settings.scratch_size}"},
        mounts=(Mount(str(folder), str(folder), is_writable=True), *(gpus.mounts if gpus else ())),
        shm_bytes=settings.shm_size,
        gpus=gpus.devices if gpus else GpuDevices(),
    )


def is_nvidias(entrypoint: Sequence[str]) -> bool:
    """Say whether an image starts as NVIDIA's do: with a driver older than its CUDA, libcuda of the image is used.

    Source: CUDA compatibility guide, "Forward Compatibility"; the program /opt/nvidia/nvidia_entrypoint.sh of NVIDIA's
    images, which then puts a folder below /usr/local/cuda/compat in front of LD_LIBRARY_PATH.
    """
    return bool(entrypoint) and Path(entrypoint[0]).name == "nvidia_entrypoint.sh"


def library_path(image: Image, gpus: GpuAccess | None, asked: Mapping[str, str | None]) -> dict[str, str]:
    """Variable with which the container's programs find the driver's libraries; empty where that needs none.

    Args:
        asked: Variables of the scenario, which go before the image's.
    """
    given = asked.get("LD_LIBRARY_PATH", image.env.get("LD_LIBRARY_PATH", "")) or ""
    path = "" if gpus is None else gpus.library_path(given)
    return {} if path in ("", given) else {"LD_LIBRARY_PATH": path}


def relay_spec(server: ContainerSpec, launch: LaunchSpec, engine: EngineFacts, number: int = 1) -> ContainerSpec:
    """What the relay beside a server shares with it: image, user names, and the marks of the run.

    It always runs as the caller, whatever the server runs as: its sockets lie in the caller's folder.
    """
    return ContainerSpec(
        image=server.image,
        name=f"tritonchaos-{run_mark(launch)}-relay-{number}",
        labels=labels(run_mark(launch), "relay"),
        user=user_of("caller", engine),
        users=server.users,
    )


def user_of(wanted: str, engine: EngineFacts) -> str:
    """User of a container: "caller" is whoever runs tritonchaos, so that every file is theirs; "image" the image's own.

    In a rootless engine the caller is root (uid 0) inside.
    """
    if wanted == "image":
        return ""
    if wanted != "caller":
        return wanted
    return "0:0" if engine.is_rootless else f"{os.getuid()}:{os.getgid()}"


def read_mount(text: str) -> Mount:
    """Read SOURCE:TARGET[:rw]; read-only unless asked.

    Raises:
        ValueError: It is none.
    """
    source, _, rest = text.partition(":")
    target, _, access = rest.partition(":")
    if not (source and target.startswith("/") and access in ("", "ro", "rw")):
        raise ValueError(f"found mount {text!r}, expected SOURCE:TARGET or SOURCE:TARGET:rw, with an absolute target")
    return Mount(str(Path(source).expanduser().resolve()), target, is_writable=access == "rw")


def loosened(settings: DockerTarget) -> list[str]:
    """What of the safe defaults a scenario gave up, in words for the report."""
    writable = [mount.target for mount in map(read_mount, settings.mounts) if mount.is_writable]
    told = {
        "capabilities of the engine's default kept": settings.keep_capabilities,
        f"capabilities added: {', '.join(settings.cap_add)}": bool(settings.cap_add),
        "new privileges allowed": not settings.no_new_privileges,
        f"security options: {', '.join(settings.security_opt)}": bool(settings.security_opt),
        "root file system writable": not settings.read_only,
        "model repository writable": settings.writable_models,
        f"writable mounts: {', '.join(writable)}": bool(writable),
        "network of this machine": settings.network == HOST,
        "no limit of processes": settings.pids_limit < 0,
        "no init: the server is process 1": not settings.init,
    }
    return [text for text, is_so in told.items() if is_so]


def with_placeholder(launch: LaunchSpec, run_folder: Path) -> LaunchSpec:
    """A launch whose folders are those of a run that is not made yet."""
    scratch = run_folder.absolute() / "scratch"
    return replace(launch, repository=scratch / "model_repository", scratch=scratch, temp=scratch / "tmp")


def _unset(launch: LaunchSpec, image: Image) -> tuple[str, ...]:
    """A variable of the image can only be taken away by a program that runs before the server."""
    names = [name for name, value in launch.env.items() if value is None and name in image.env]
    return ("env", *(part for name in names for part in ("-u", name))) if names else ()


def _environment(launch: LaunchSpec) -> dict[str, str]:
    ours = {"TMPDIR": TEMP, "HOME": TEMP, "PYTHONDONTWRITEBYTECODE": "1"}
    return ours | {name: value for name, value in launch.env.items() if value is not None}


def _backend_mounts(launch: LaunchSpec) -> Iterator[Mount]:
    """Our own backends, each beside those of the image."""
    for name, folder in launch.backends.items():
        yield Mount(str(folder.absolute()), f"{BACKENDS}/{name}")
