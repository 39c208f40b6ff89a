"""The container engine: whether it answers, what it is, its GPUs, images and disk, and whether a container runs."""

from __future__ import annotations

import http.client
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tritonchaos.containers.container import run_to_end
from tritonchaos.containers.engine import Engine, asking, check_address, connect, find_engine_address
from tritonchaos.containers.gpu_access import ways_that_work
from tritonchaos.containers.images import short_id
from tritonchaos.containers.labels import labels
from tritonchaos.containers.launching import user_of
from tritonchaos.containers.spec import ContainerSpec
from tritonchaos.doctor.check import Check
from tritonchaos.errors import TargetError
from tritonchaos.pins import read_pins
from tritonchaos.units import GIB, format_bytes

_PING_S: Final = 2.0
_CONTAINER_S: Final = 10.0
# An official image takes 20 GiB and more, and while it is fetched its packed layers lie beside it.
_ENOUGH_DISK_BYTES: Final = 40 * GIB
_SERVER: Final = "tritonserver"
_HOW_TO_GET_AN_IMAGE: Final = (
    "docker pull the pinned one, or docker/build.sh tritonserver-cpu for a small one without GPU support"
)


def docker(environment: Mapping[str, str], try_container: bool) -> list[Check]:
    """Look at the engine that target `docker` would use.

    Args:
        environment: Variables that lead to it, such as DOCKER_HOST.
        try_container: Start a container for an instant.
    """
    try:
        engine = _connect(environment)
    except TargetError as error:
        return [Check("Docker", None, error.message, error.hint or "start Docker or Podman")]
    try:
        return _look(engine, try_container)
    except TargetError as error:
        return [Check("Docker", None, error.message, error.hint or "look at the engine's own log")]
    finally:
        engine.close()


def _connect(environment: Mapping[str, str]) -> Engine:
    address = find_engine_address(environment)
    check_address(address)
    if address.socket is not None:
        try:
            ping_docker(address.socket, _PING_S)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise TargetError(f"the engine at {address.url} does not answer: {reason}", hint="start Docker") from None
    return connect(address)


def ping_docker(path: Path, deadline_s: float) -> str:
    """Ask the engine at a socket whether it lives; return the version of its API.

    Raises:
        OSError, http.client.HTTPException: No socket, no right to open it, or no proper answer in time.

    Source: Docker Engine API, GET /_ping, header Api-Version.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(deadline_s)
        stream.connect(os.fspath(path))
        connection = http.client.HTTPConnection("localhost")
        connection.sock = stream
        connection.request("GET", "/_ping")
        answer = connection.getresponse()
        answer.read()
    if answer.status != http.HTTPStatus.OK:
        raise http.client.HTTPException(f"status {answer.status}")
    return answer.headers.get("Api-Version", "of unknown version")


def _look(engine: Engine, try_container: bool) -> list[Check]:
    with asking("list its images"):
        images: list[dict[str, Any]] = [image for image in engine.api.images() if image.get("RepoTags")]
    servers = [image for image in images if any(_SERVER in tag for tag in image["RepoTags"])]
    found = Check("Docker", True, f"{engine.facts.line()}, at {engine.address.url} ({engine.address.origin})")
    checks = [found, _gpus(engine), *_images(servers), *_disk(engine)]
    if try_container:
        checks.append(_container(engine, servers))
    return checks


def _gpus(engine: Engine) -> Check:
    ways = ways_that_work(engine.facts)
    shown = "; ".join(f"{way}: {why or 'yes'}" for way, why in ways.items())
    if "" in ways.values():
        return Check("GPUs in containers", True, shown)
    return Check("GPUs in containers", None, shown, "for GPUs: install the NVIDIA Container Toolkit on this machine")


def _images(servers: list[dict[str, Any]]) -> list[Check]:
    """One look at each tritonserver image, and at each pin that is not here."""
    here = {f"{tag}@{digest}" for image in servers for tag in image["RepoTags"] for digest in _digests(image)}
    absent = [f"{pin.image} ({pin.digest})" for pin in read_pins() if f"{pin.image}@{pin.digest}" not in here]
    checks = [
        Check(f"image {_tag(image)}", True, f"{_known_as(image)}, {format_bytes(int(image['Size']))}")
        for image in sorted(servers, key=_tag)
    ]
    if absent:
        checks.append(Check("pinned images", None, f"not here: {', '.join(absent)}", _HOW_TO_GET_AN_IMAGE))
    return checks


def _tag(image: Mapping[str, Any]) -> str:
    """Of several names of one image that of a server."""
    return next(str(tag) for tag in image["RepoTags"] if _SERVER in tag)


def _digests(image: Mapping[str, Any]) -> list[str]:
    return [text.rpartition("@")[2] for text in image.get("RepoDigests") or () if "<none>" not in text]


def _known_as(image: Mapping[str, Any]) -> str:
    digests = _digests(image)
    return digests[0] if digests else f"id {short_id(str(image['Id']))}, built here, so without a digest"


def _disk(engine: Engine) -> list[Check]:
    """Room where the engine keeps its images, if this user may see that folder and it is of this machine."""
    folder = Path(engine.facts.storage_folder or "/nowhere")
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:
        return []
    found = f"{format_bytes(free_bytes)} free at {folder}"
    if free_bytes < _ENOUGH_DISK_BYTES:
        fix = f"an official image needs up to {format_bytes(_ENOUGH_DISK_BYTES)} while it is fetched: make room"
        return [Check("disk of Docker", None, found, fix)]
    return [Check("disk of Docker", True, found)]


def _container(engine: Engine, servers: list[dict[str, Any]]) -> Check:
    """Run a container as a server's would be: this user, no network, nothing to write."""
    name = "container that was tried"
    if not servers:
        return Check(name, None, "none: no tritonserver image is here", _HOW_TO_GET_AN_IMAGE)
    image = min(servers, key=lambda image: int(image["Size"]))
    mark = f"tc_{secrets.token_hex(4)}"
    spec = ContainerSpec(
        image=str(image["Id"]),
        name=f"tritonchaos-{mark.removeprefix('tc_')}-doctor",
        entrypoint=("sh",),
        command=("-c", "id -u"),
        labels=labels(mark, "doctor"),
        user=user_of("caller", engine.facts),
        users="host" if engine.facts.remaps_users else "",
    )
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            ended = run_to_end(engine, spec, Path(folder) / "log", _CONTAINER_S)
        except TargetError as error:
            return Check(name, False, f"{error.message} (of {_tag(image)})", error.hint or "see above")
        printed = (Path(folder) / "log").read_text(errors="replace").strip()
    if ended is None:
        return Check(name, False, f"not done in {_CONTAINER_S:.0f} s", "look at the engine's own log")
    if ended.exit_code != 0:
        said = " ".join(printed.split()) or ended.error or "nothing"
        return Check(name, False, f"ended with {ended.exit_code}, saying: {said}", "look at the engine's own log")
    took_s = time.monotonic() - started_s
    return Check(name, True, f"{_tag(image)} as user {printed}, without network: done in {took_s:.1f} s")
