"""How a bundle is run inside the image of the recorded run: the docker run line, and what differs from that run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonchaos.reproducing.recorded import Recorded
from tritonchaos.units import parse_bytes


def docker_line(recorded: Recorded) -> str:
    """The command that runs repro.py inside the official image, client and server in one container."""
    facts = recorded.finished.history.facts.target
    image = facts.get("image", "")
    digest = facts.get("image_digest", "")
    if image and "@" not in image and digest.startswith("sha256:"):
        image = f"{image}@{digest}"
    gpus = "--gpus all " if recorded.finished.history.facts.uses_gpu else ""
    return (
        f'docker run --rm --init {gpus}--network none {_limits(settings_of(recorded))}--user "$(id -u):$(id -g)" '
        f'-v "$PWD":/repro:ro -w /tmp {image or "$IMAGE"} python3 /repro/repro.py'
    )


def image_sentence(recorded: Recorded) -> str:
    """Say which image the docker line means."""
    facts = recorded.finished.history.facts.target
    if facts.get("image"):
        digest = facts.get("image_digest", "")
        how = (
            "by its digest"
            if "@" in facts["image"] or digest.startswith("sha256:")
            else f"which has no digest ({digest})"
        )
        return f"The image is that of the recorded run, {how}."
    version = facts.get("triton_version") or "the version below"
    return f"The recorded run used a tritonserver outside a container: set IMAGE to an image with Triton {version}."


def settings_of(recorded: Recorded) -> Mapping[str, Any]:
    """What the scenario asks of the container; {} of a run without one."""
    if recorded.finished.history.facts.target.get("target") != "docker":
        return {}
    entries = recorded.scenario.get("target") or []
    found = [e["docker"] for e in entries if isinstance(e, Mapping) and isinstance(e.get("docker"), Mapping)]
    return found[0] if len(found) == 1 else {}


def _limits(settings: Mapping[str, Any]) -> str:
    """Of /dev/shm and of memory, which a finding may need."""
    shm = f"--shm-size {parse_bytes(settings['shm_size'])} " if "shm_size" in settings else "--shm-size 1g "
    return shm + (f"--memory {parse_bytes(settings['memory'])} " if settings.get("memory") is not None else "")


def container_differences(recorded: Recorded) -> list[str]:
    """Say what a bundle cannot do as the container did."""
    if settings_of(recorded).get("init", True):
        return []
    return ["tritonserver was process 1 of its container, which survives signals; here it never is"]
