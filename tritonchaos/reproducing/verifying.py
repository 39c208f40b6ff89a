"""Runs a bundle's own program and passes on what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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


def verify_bundle(place: Path, server_path: Path | None, *, clean_twin: bool, deadline_s: float) -> Verified:
    """Run a bundle against a tritonserver of this machine.

    Args:
        place: Folder or .tar.gz.
        server_path: The tritonserver; None: it is searched for.
        clean_twin: Run it without the defect's cause.
        deadline_s: Longest time of the run.

    Raises:
        UsageError: It is no bundle that can be trusted to be whole and to stay in its folder.
        TargetUnavailable: There is no tritonserver.
    """
    with opened(place) as (folder, manifest):
        installation = find_installation(server_path)
        libraries = os.pathsep.join(str(path) for path in installation.libraries)
        command = [sys.executable, "-I", "-B", str((folder / manifest["program"]).resolve())]
        command += ["--server", str(installation.binary), "--ld-library-path", libraries]
        return _run([*command, "--clean-twin"] if clean_twin else command, folder, deadline_s)


def _run(command: list[str], folder: Path, deadline_s: float) -> Verified:
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        printed, _ = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        printed = _end(process) + f"\nit did not end in {deadline_s:g} s".encode()
        return Verified(_CANNOT_TELL, printed.decode("utf-8", "replace"))
    except BaseException:
        _end(process)
        raise
    text = printed.decode("utf-8", "replace")
    if process.returncode not in WORDS:
        if process.returncode == 2:
            raise UsageError(f"the bundle's program does not know what it was asked:\n{text}")
        return Verified(_CANNOT_TELL, f"{text}\nits program ended with {process.returncode}, expected 0, 1 or 3")
    # Python itself ends with 1 after an error; a program that says so must have printed it.
    if process.returncode == 1 and "REPRODUCED" not in text:
        return Verified(_CANNOT_TELL, f"{text}\nits program failed")
    return Verified(process.returncode, text)


def _end(process: subprocess.Popen[bytes]) -> bytes:
    """Let the program stop its server; it dies with the program in any case."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.communicate(timeout=_GRACE_S)[0] or b""
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] or b""
