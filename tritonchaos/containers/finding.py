"""Finds all that a server in a container needs, before anything is started: engine, GPUs, image, what is in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tritonchaos.containers import launching
from tritonchaos.containers.compiling import Build, Compiling
from tritonchaos.containers.container import build
from tritonchaos.containers.engine import Engine, connect, find_engine_address
from tritonchaos.containers.gpu_access import GpuAccess, choose_gpus, find_access, find_gpus
from tritonchaos.containers.image_facts import ImageFacts, image_facts
from tritonchaos.containers.images import Image, find_image, get_image, not_here, parse_reference
from tritonchaos.containers.leftovers import LeftOnEngine, left_on
from tritonchaos.containers.pulling import PullProgress
from tritonchaos.containers.relay import relay_program
from tritonchaos.units import format_bytes

if TYPE_CHECKING:
    from tritonchaos.targets.docker import DockerTarget


@dataclass(frozen=True, slots=True)
class Found:
    """All of it.

    Attributes:
        gpus: None: the container gets none.
        run_to_build: Runs a command in a container of the image, with a folder that it may write and a deadline in
            seconds; gives the exit code (None: not done in time) and what was printed.
        compiling: Compiles our own C code for the image.
        left: What killed runs left on the engine.
    """

    engine: Engine
    image: Image
    facts: ImageFacts
    gpus: GpuAccess | None
    run_to_build: Build
    compiling: Compiling
    left: list[LeftOnEngine]

    @property
    def gpu_uuids(self) -> str:
        """Comma separated; "" for none."""
        return ",".join(self.gpus.uuids) if self.gpus else ""


def find(settings: DockerTarget) -> Found:
    """Find engine, GPUs and image, fetch the image where it may be fetched, and ask it what it holds.

    Raises:
        UsageError: The image's name is none.
        TargetUnavailable: One of them cannot be had; says which, why, and what to do.
    """
    reference = parse_reference(settings.image)
    engine = connect(find_engine_address(os.environ, settings.engine))
    here = None if settings.pull == "always" else find_image(engine, reference)
    if here is None and settings.pull == "never":
        raise not_here(reference)
    # Before gigabytes are fetched for a GPU that is not there.
    gpus = _find_gpus(settings, engine, here)
    progress = PullProgress(sys.stderr, str(reference))
    try:
        image = here or get_image(engine, reference, settings.pull, progress)
    finally:
        progress.close()
    facts = image_facts(engine, image, launching.user_of("caller", engine.facts))
    run_to_build = partial(_run_to_build, settings, engine, image, gpus)
    compiling = Compiling(facts.c_compiler, image.id, partial(_run_to_build, settings, engine, image, None))
    if settings.network == launching.NONE:
        relay_program(compiling.compile_program)
    return Found(engine, image, facts, gpus, run_to_build, compiling, left_on(engine))


def _run_to_build(
    settings: DockerTarget,
    engine: Engine,
    image: Image,
    gpus: GpuAccess | None,
    folder: Path,
    command: Sequence[str],
    deadline_s: float,
) -> tuple[int | None, str]:
    return build(engine, launching.build_spec(settings, folder, command, image, engine.facts, gpus), deadline_s)


def _find_gpus(settings: DockerTarget, engine: Engine, image: Image | None) -> GpuAccess | None:
    if not settings.gpus or (image is not None and image.is_cpu_only and settings.gpu_access == "auto"):
        return None
    return find_access(choose_gpus(settings.gpus, find_gpus()), settings.gpu_access, engine.facts)


def describe(settings: DockerTarget, found: Found) -> dict[str, str]:
    """Facts for the report: image, id and digest, versions, GPUs, limits, and what was loosened."""
    described = {
        "engine": found.engine.facts.line(),
        "image": str(found.image.reference),
        "image_id": found.image.id,
        "image_digest": found.image.digest or "none: built on this machine",
        "triton_version": found.facts.triton_version,
        "gpu_uuids": found.gpu_uuids,
        "gpu_access": found.gpus.way if found.gpus else "none",
        "cpu_count": str(os.cpu_count() or ""),
        "container_init": "yes" if settings.init else "no",
        "container_network": settings.network,
        "container_user": launching.user_of(settings.user, found.engine.facts) or "the image's own",
        "container_limits": _limits(settings),
        "container_loosened": ", ".join(launching.loosened(settings)) or "nothing",
    }
    described |= found.compiling.facts()
    return described | ({"tensorrt_version": found.facts.tensorrt_version} if found.facts.tensorrt_version else {})


def notes(settings: DockerTarget, found: Found) -> list[str]:
    """What a reader of the report should know."""
    told = []
    if settings.gpus and found.gpus is None:
        told.append(f"the GPUs that are asked for were not given: {found.image.reference} says that it uses none")
    told += [f"a killed run left the {one.kind} {one.name}; `tritonchaos clean` removes it" for one in found.left]
    told += found.compiling.notes()
    if settings.init:
        told.append("the container runs an init as process 1, so that signals end the server as they would outside")
    return told


def _limits(settings: DockerTarget) -> str:
    memory = "none" if settings.memory is None else format_bytes(settings.memory)
    pids = "none" if settings.pids_limit < 0 else str(settings.pids_limit)
    sizes = f"/dev/shm {format_bytes(settings.shm_size)}, /tmp {format_bytes(settings.scratch_size)}"
    return f"memory {memory}, processes {pids}, {sizes}"
