"""Images: how one is named, whether it is the one that was pinned, and how it comes onto this machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tritonchaos.containers.engine import Engine, told
from tritonchaos.errors import TargetUnavailable, UsageError

Pull = Literal["missing", "always", "never"]

# Source: distribution/reference, "Grammar": name[:tag][@digest].
_REFERENCE: Final = re.compile(
    r"(?P<name>(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_SHORT: Final = 19  # "sha256:" and 12 digits


@dataclass(frozen=True, slots=True)
class Reference:
    """How an image is asked for.

    Attributes:
        digest: "sha256:…" of its manifest, the pin; "" where only a tag is given.
    """

    name: str
    tag: str
    digest: str

    def __str__(self) -> str:
        return f"{self.tagged}@{self.digest}" if self.digest else self.tagged

    @property
    def tagged(self) -> str:
        """Name and tag."""
        return f"{self.name}:{self.tag}" if self.tag else self.name

    @property
    def pinned(self) -> str:
        """What is asked of a registry: the digest decides where there is one."""
        return f"{self.name}@{self.digest}" if self.digest else self.tagged


@dataclass(frozen=True, slots=True)
class Image:
    """An image on this machine.

    Attributes:
        id: "sha256:…" of its configuration; what it holds, wherever it came from.
        digest: Of its manifest in the registry; "" for one that was built here.
        labels: That its builder gave it.
        entrypoint: What a container of it runs before a command.
    """

    reference: Reference
    id: str
    digest: str
    size_bytes: int
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()

    @property
    def exactly(self) -> str:
        """A name that can mean no other image: name and digest, or its id where it was built here."""
        return f"{self.reference.name}@{self.digest}" if self.digest else self.id

    @property
    def is_cpu_only(self) -> bool:
        """Its builder says that its server can use no GPU."""
        return self.labels.get("tritonchaos.gpus") == "none"


def parse_reference(text: str) -> Reference:
    """Read NAME[:TAG][@sha256:DIGEST]; without tag and digest the tag is "latest".

    Raises:
        UsageError: It is none.
    """
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"found image {text[:200]!r}, expected NAME[:TAG][@sha256:DIGEST]",
            hint="such as nvcr.io/nvidia/tritonserver:26.07-py3, with 64 digits after @sha256:",
        )
    tag, digest = match["tag"] or "", match["digest"] or ""
    return Reference(match["name"], tag if tag or digest else "latest", digest)


def find_image(engine: Engine, reference: Reference) -> Image | None:
    """Find an image on this machine; None if it is not there.

    Raises:
        TargetUnavailable: The tag is there, but names another image than the pin.
    """
    found = _inspect(engine, reference.pinned)
    if found is not None and (not reference.digest or reference.digest in _digests(found, reference.name)):
        return _image(reference, found)
    tagged = _inspect(engine, reference.tagged) if reference.digest and reference.tag else None
    if tagged is None:
        return None
    if reference.digest == tagged["Id"]:  # built here: there is no other name for what it holds
        return _image(reference, tagged)
    there = ", ".join(_digests(tagged, reference.name)) or f"no digest (built here, id {tagged['Id']})"
    raise TargetUnavailable(
        f"the pin does not match: {reference.tagged} is pinned to {reference.digest}, on this machine it is {there}",
        hint="--pull always fetches the pinned image; or pin what is here",
    )


def get_image(
    engine: Engine, reference: Reference, pull: Pull, told_progress: Callable[[Mapping[str, Any]], None]
) -> Image:
    """Find an image, fetching it where `pull` says so.

    Args:
        told_progress: Called with each message of the engine while it fetches.

    Raises:
        TargetUnavailable: It is not here and may not or cannot be fetched, or the pin does not match.
    """
    found = None if pull == "always" else find_image(engine, reference)
    if found is not None:
        return found
    if pull == "never":
        raise not_here(reference)
    _fetch(engine, reference, told_progress)
    found = find_image(engine, reference)
    if found is None:
        raise TargetUnavailable(f"the image {reference} was fetched, but is not there")
    return found


def not_here(reference: Reference) -> TargetUnavailable:
    """What is told where an image may not be fetched."""
    return TargetUnavailable(
        f"the image {reference} is not on this machine, and pull is never", hint=f"docker pull {reference.pinned}"
    )


def short_id(image_id: str) -> str:
    """First 12 digits, as docker images shows them."""
    return image_id[:_SHORT].removeprefix("sha256:")


def _fetch(engine: Engine, reference: Reference, told_progress: Callable[[Mapping[str, Any]], None]) -> None:
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    api = engine.another_api()
    try:
        for message in api.pull(reference.name, tag=reference.digest or reference.tag, stream=True, decode=True):
            if "error" in message:
                raise TargetUnavailable(f"the image {reference} cannot be fetched: {message['error']}")
            told_progress(message)
    except (DockerException, RequestException) as error:
        raise TargetUnavailable(
            f"the image {reference} is not on this machine and cannot be fetched: {told(error)}",
            hint="docker login REGISTRY if it wants one; or docker load an archive of it",
        ) from None
    finally:
        api.close()


def _inspect(engine: Engine, name: str) -> dict[str, Any] | None:
    from docker.errors import APIError, ImageNotFound

    try:
        found: dict[str, Any] = engine.api.inspect_image(name)
    except ImageNotFound:
        return None
    except APIError as error:
        raise TargetUnavailable(f"the engine cannot say what {name} is: {told(error)}") from None
    return found


def _digests(found: Mapping[str, Any], name: str) -> list[str]:
    """Digests under which an image was fetched; first those of this very name."""
    pairs = [text.rpartition("@") for text in found.get("RepoDigests") or ()]
    same = [digest for repository, _, digest in pairs if repository == name or repository.endswith(f"/{name}")]
    return same or [digest for _, _, digest in pairs]


def _image(reference: Reference, found: Mapping[str, Any]) -> Image:
    config = found.get("Config") or {}
    digests = _digests(found, reference.name)
    pairs = (entry.partition("=") for entry in config.get("Env") or ())
    return Image(
        reference=reference,
        id=str(found["Id"]),
        digest=reference.digest if reference.digest in digests else next(iter(digests), ""),
        size_bytes=int(found.get("Size", 0)),
        labels=dict(config.get("Labels") or {}),
        env={name: value for name, _, value in pairs},
        entrypoint=tuple(config.get("Entrypoint") or ()),
    )
