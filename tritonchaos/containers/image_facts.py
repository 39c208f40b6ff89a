"""What is in an image: its server's flags, backends, versions. Asked once of each image, in a container that exits."""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.containers.container import run_to_end
from tritonchaos.containers.engine import Engine
from tritonchaos.containers.images import Image, short_id
from tritonchaos.containers.labels import labels
from tritonchaos.containers.spec import ContainerSpec
from tritonchaos.errors import TargetError, TargetUnavailable
from tritonchaos.native import cache_folder

BACKENDS: Final = "/opt/tritonserver/backends"
_DEADLINE_S: Final = 120.0
_MARK: Final = "--- tritonchaos: "
_FORMAT: Final = 2
# Each part is told apart by a line of ours; what an image lacks is empty.
_ASK: Final = f"""
tell() {{ echo "{_MARK}$1"; }}
tell backends; ls {BACKENDS} 2>/dev/null
tell version; cat /opt/tritonserver/TRITON_VERSION 2>/dev/null || echo "$TRITON_SERVER_VERSION"
tell tensorrt; echo "$TENSORRT_VERSION $TRT_VERSION"
ls /usr/lib/*-linux-gnu/libnvinfer.so.* /opt/tensorrt/lib/libnvinfer.so.* 2>/dev/null
tell libc; getconf GNU_LIBC_VERSION 2>/dev/null
tell tools; for tool in cc gcc clang c++ python3 gdb eu-stack; do command -v $tool; done
tell help; tritonserver --help 2>&1
tell end
"""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What an image holds.

    Attributes:
        triton_version: "" where it does not say before its server runs.
        help: What `tritonserver --help` prints.
        tensorrt_version: Such as "10.13.3"; "" where there is none.
        libc: (major, minor) of its glibc; None: it has another C library, or does not say.
        tools: Paths of compilers, python3 and debuggers in it.
    """

    backends: tuple[str, ...]
    triton_version: str
    help: str
    tensorrt_version: str = ""
    libc: tuple[int, int] | None = None
    tools: tuple[str, ...] = ()

    @property
    def c_compiler(self) -> str:
        """Path of a C compiler in it; "" where there is none."""
        return next((tool for tool in self.tools if tool.rpartition("/")[2] in ("cc", "gcc", "clang")), "")


def image_facts(engine: Engine, image: Image, user: str = "") -> ImageFacts:
    """Ask an image what it holds, or remember what it said: an image id names its content for good.

    Raises:
        TargetUnavailable: There is no tritonserver in it, or it does not run here.
    """
    cached = cache_folder() / "images" / f"{image.id.replace(':', '-')}.{_FORMAT}.json"
    try:
        return _parse(json.loads(cached.read_text())["told"], image)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    told = _ask(engine, image, user)
    facts = _parse(told, image)
    _remember(cached, told)
    return facts


def _ask(engine: Engine, image: Image, user: str) -> str:
    spec = ContainerSpec(
        image=image.id,
        name=f"tritonchaos-look-{short_id(image.id)}-{secrets.token_hex(4)}",
        entrypoint=("/bin/sh", "-c"),
        command=(_ASK,),
        labels=labels("image_facts", "look"),
        user=user,
        tmpfs={"/tmp": "mode=1777"},
    )
    with tempfile.TemporaryDirectory(prefix="tritonchaos-") as folder:
        log = Path(folder) / "log"
        try:
            ended = run_to_end(engine, spec, log, _DEADLINE_S)
        except TargetError as error:
            raise TargetUnavailable(f"the image {image.reference} does not run here: {error.message}") from error
        if ended is None:
            raise TargetUnavailable(f"the image {image.reference} did not say in {_DEADLINE_S:g} s what it holds")
        return log.read_text(errors="replace")


def _parse(told: str, image: Image) -> ImageFacts:
    parts: dict[str, str] = {}
    for part in told.split(_MARK)[1:]:
        name, _, text = part.partition("\n")
        parts[name.strip()] = text.strip("\n")
    if "model-repository" not in parts.get("help", ""):
        said = " | ".join((parts.get("help") or told).strip().splitlines()[-3:]) or "nothing"
        raise TargetUnavailable(
            f"the image {image.reference} has no tritonserver that runs; `tritonserver --help` in it said: {said}",
            hint="give an image of Triton, such as nvcr.io/nvidia/tritonserver:YY.MM-py3",
        )
    return ImageFacts(
        backends=tuple(parts.get("backends", "").split()),
        triton_version=parts.get("version", "").strip(),
        help=parts["help"] + "\n",
        tensorrt_version=_tensorrt_version(parts.get("tensorrt", "")),
        libc=_libc(parts.get("libc", "")),
        tools=tuple(parts.get("tools", "").split()),
    )


def _tensorrt_version(told: str) -> str:
    """The library's own name says it best; the variables of NVIDIA's images have a fourth number."""
    found = re.search(r"libnvinfer\.so\.(\d+\.\d+\.\d+)", told) or re.search(r"(\d+\.\d+\.\d+)", told)
    return found[1] if found else ""


def _libc(text: str) -> tuple[int, int] | None:
    numbers = text.removeprefix("glibc ").split(".")
    return (int(numbers[0]), int(numbers[1])) if len(numbers) >= 2 and "".join(numbers[:2]).isdigit() else None


def _remember(cached: Path, told: str) -> None:
    """A cache that cannot be written costs a second at each run, and nothing else."""
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        beside = cached.with_name(f".{cached.name}.{secrets.token_hex(4)}")
        beside.write_text(json.dumps({"told": told}))
        beside.rename(cached)
    except OSError:
        return
