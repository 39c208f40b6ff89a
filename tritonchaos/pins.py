"""Pins: which content a tag of an image stands for, by digest, as docker/images.yaml lists them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tritonchaos.containers.engine import Engine, told
from tritonchaos.containers.images import Reference, parse_reference
from tritonchaos.errors import TargetUnavailable, UsageError
from tritonchaos.shipped import shipped_folder

# A tag alone is one of NVIDIA's image.
_DEFAULT_NAME: Final = "nvcr.io/nvidia/tritonserver"
_TAG: Final = re.compile(r"[0-9][A-Za-z0-9_.-]*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NO_REGISTRY: Final = (
    "without a way to the registry: docker pull (or docker load) the image on this machine, then pin it again"
)


@dataclass(frozen=True, slots=True)
class Pin:
    """A tag and what it stands for.

    Attributes:
        image: Name and tag.
        digest: "sha256:…" of its manifest.
        origin: Who said so: "registry", or "this machine" for an image that was fetched before.
    """

    image: str
    digest: str
    origin: str = ""

    def entry(self) -> str:
        """Its line of images.yaml."""
        return f'  - {{image: "{self.image}", digest: "{self.digest}"}}'


def images_file() -> Path:
    """The list that comes with tritonchaos."""
    return shipped_folder("docker") / "images.yaml"


def read_pins(file: Path | None = None) -> list[Pin]:
    """Read a list of pins, by default that of tritonchaos.

    Raises:
        UsageError: It cannot be read or does not have the form.
    """
    path = file or images_file()
    try:
        read = yaml.safe_load(path.read_text("utf-8"))
        entries: list[dict[str, Any]] = read["images"] or []
        pins = [Pin(str(entry["image"]), str(entry["digest"])) for entry in entries]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError) as error:
        raise UsageError(
            f"cannot read the list of images {path}: {type(error).__name__}: {error}",
            hint="expected `images:`, a list of {image: NAME:TAG, digest: sha256:…}",
        ) from None
    for pin in pins:
        if not _DIGEST.fullmatch(pin.digest):
            raise UsageError(f"{path}: {pin.image} has the digest {pin.digest!r}, expected sha256: and 64 digits")
    return pins


def full_reference(text: str) -> Reference:
    """Read what is to be pinned: NAME:TAG, or the TAG of NVIDIA's tritonserver image.

    Raises:
        UsageError: It is neither, or has a digest already.
    """
    reference = parse_reference(f"{_DEFAULT_NAME}:{text}" if _TAG.fullmatch(text) else text)
    if reference.digest:
        raise UsageError(f"{text} has a digest already; give the tag alone to see what it stands for now")
    return reference


def resolve(engine: Engine, reference: Reference) -> Pin:
    """Ask the registry, through the engine, what a tag stands for; where it cannot be asked, this machine.

    Raises:
        TargetUnavailable: Neither knows.

    Source: Docker Engine API, DistributionInspect: the digest of the manifest (list), as `docker pull` takes it.
    """
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        said = engine.api.inspect_distribution(reference.tagged)
        return Pin(reference.tagged, str(said["Descriptor"]["digest"]), "registry")
    except (DockerException, RequestException, KeyError) as error:
        here = _digest_here(engine, reference)
        if here:
            return Pin(reference.tagged, here, "this machine")
        raise TargetUnavailable(
            f"nobody can say what {reference.tagged} stands for: the registry: {told(error)}; this machine: "
            f"{'built here, so without a digest' if here == '' else 'has no such image'}",
            hint=_NO_REGISTRY,
        ) from None


def _digest_here(engine: Engine, reference: Reference) -> str | None:
    """Digest of an image on this machine; "" for one that was built here, None if it is not there."""
    from docker.errors import DockerException

    try:
        found = engine.api.inspect_image(reference.tagged)
    except DockerException:
        return None
    digests = [text.rpartition("@") for text in found.get("RepoDigests") or ()]
    return next((digest for name, _, digest in digests if name.endswith(reference.name)), "")


def write_pins(file: Path, pins: Sequence[Pin], replace: bool) -> list[Pin]:
    """Add pins to a list, keeping every other line as it is; a list that is not there is begun.

    Args:
        replace: A tag that is listed with another digest gets the new one.

    Returns:
        Those that were not listed so before.

    Raises:
        UsageError: A tag is listed with another digest; nothing was written.
    """
    listed = {pin.image: pin.digest for pin in read_pins(file)} if file.exists() else {}
    new = [pin for pin in pins if listed.get(pin.image) != pin.digest]
    for pin in new:
        if pin.image in listed and not replace:
            raise UsageError(
                f"{file}: {pin.image} is pinned to {listed[pin.image]}, and now stands for {pin.digest}",
                hint="if that was to be expected, say --replace",
            )
    lines = file.read_text("utf-8").splitlines() if file.exists() else ["images:"]
    for pin in new:
        if pin.image in listed:
            lines = [line.replace(listed[pin.image], pin.digest) if pin.image in line else line for line in lines]
        else:
            lines.append(pin.entry())
    if new:
        _write(file, "\n".join(lines) + "\n")
    return new


def _write(file: Path, text: str) -> None:
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(file)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None
