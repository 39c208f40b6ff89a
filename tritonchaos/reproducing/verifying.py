"""Runs a bundle's own program and passes on what it says."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, get_args

from tritonchaos.containers.gpu_access import Way
from tritonchaos.errors import UsageError
from tritonchaos.local_server.installation import find_installation
from tritonchaos.reproducing.unpacking import opened

WORDS: Final = {1: "reproduced", 0: "not reproduced", 3: "cannot tell"}
_CANNOT_TELL: Final = 3
_GRACE_S: Final = 40.0


@dataclass(frozen=True, slots=True)
class Verified:
    """What a bundle said.

    Attributes:
        exit_code: 1 reproduced, 0 not reproduced, 3 cannot tell.
        text: All that it printed.
    """

    exit_code: int
    text: str

    @property
    def word(self) -> str:
        """The same in words."""
        return WORDS[self.exit_code]


@dataclass(frozen=True, slots=True)
class Where:
    """What a bundle is run against: a tritonserver of this machine, or one in a container.

    Attributes:
        server_path: The tritonserver of this machine; None: it is searched for.
        image: Of a container with a tritonserver, Python and, for planted models, a C compiler; None: no container.
        gpus: That the container gets.
        gpu_access: How; see target `docker`.
    """

    server_path: Path | None = None
    image: str | None = None
    gpus: tuple[int | str, ...] = ()
    gpu_access: Way = "auto"


def read_way(text: str) -> Way:
    """Read how a container gets its GPUs.

    Raises:
        UsageError: It is none of the ways.
    """
    ways: dict[str, Way] = {way: way for way in get_args(Way)}
    if text not in ways:
        raise UsageError(f"found GPU access {text!r}, expected one of {', '.join(ways)}")
    return ways[text]


def verify_bundle(place: Path, where: Where, *, clean_twin: bool, deadline_s: float) -> Verified:
    """Run a bundle.

    Args:
        place: Folder or .tar.gz.
        clean_twin: Run it without the defect's cause.
        deadline_s: Longest time of the run.

    Raises:
        UsageError: It is no bundle that can be trusted to be whole and to stay in its folder.
        TargetUnavailable: There is no tritonserver, or no such image.
    """
    if where.image is not None and where.server_path is not None:
        raise UsageError("found both an image and a server path, expected one of them")
    options = ["--clean-twin"] if clean_twin else []
    with opened(place) as (folder, manifest):
        run = _run_here if where.image is None else _run_in_container
        return run(folder, manifest, where, options, deadline_s)


def _run_in_container(
    folder: Path, manifest: dict[str, Any], where: Where, options: Sequence[str], deadline_s: float
) -> Verified:
    """Run a copy in a container without network, with no more rights than it needs."""
    from tritonchaos.targets.docker import DockerTarget

    target = DockerTarget(image=where.image or "", gpus=where.gpus, gpu_access=where.gpu_access)
    target.check()
    with TemporaryDirectory(prefix="tritonchaos-verify-") as beside:
        copy = Path(beside) / "bundle"
        shutil.copytree(folder, copy)
        command = ["python3", "-B", str(copy / manifest["program"]), *options]
        exit_code, text = target.run_to_build(copy, command, deadline_s)
    if exit_code is None:
        return _late(text, deadline_s)
    return read_verdict(exit_code, text)


def _run_here(
    folder: Path, manifest: dict[str, Any], where: Where, options: Sequence[str], deadline_s: float
) -> Verified:
    installation = find_installation(where.server_path)
    libraries = os.pathsep.join(str(path) for path in installation.libraries)
    command = [sys.executable, "-I", "-B", str((folder / manifest["program"]).resolve())]
    command += ["--server", str(installation.binary), "--ld-library-path", libraries, *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        printed, _ = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        return _late(_end(process).decode("utf-8", "replace"), deadline_s)
    except BaseException:
        _end(process)
        raise
    return read_verdict(process.returncode, printed.decode("utf-8", "replace"))


def _late(text: str, deadline_s: float) -> Verified:
    return Verified(_CANNOT_TELL, f"{text}\nit did not end in {deadline_s:g} s")


def read_verdict(exit_code: int, text: str) -> Verified:
    """Take a program's word for it, unless it says so by accident: Python ends with 1 after any error.

    Raises:
        UsageError: The program did not understand what it was asked.
    """
    if exit_code == 2:
        raise UsageError(f"the bundle's program does not know what it was asked:\n{text}")
    if exit_code not in WORDS:
        return Verified(_CANNOT_TELL, f"{text}\nits program ended with {exit_code}, expected 0, 1 or 3")
    lines = [line.partition(" (")[0] for line in text.splitlines()]
    if WORDS[exit_code].upper() not in lines:
        return Verified(_CANNOT_TELL, f"{text}\nits program ended with {exit_code} without saying so")
    return Verified(exit_code, text)


def _end(process: subprocess.Popen[bytes]) -> bytes:
    """Let the program stop its server; it dies with the program in any case."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.communicate(timeout=_GRACE_S)[0] or b""
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] or b""
