"""A machine whose GPUs are the stand-in NVML's: its library, scenery and ledger, for processes under test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli import Called
from tritonchaos.native import WARNINGS, compile_shared, missing_compiler

HERE = Path(__file__).parent / "nvml_stand_in"
A, B = "GPU-aaaaaaaa-0000-0000-0000-000000000001", "GPU-bbbbbbbb-0000-0000-0000-000000000002"
needs_compiler = pytest.mark.skipif(missing_compiler() is not None, reason=f"{missing_compiler()}")

# Shares the GPU until it is killed: holds memory, and as much again half of the time.
_CO_TENANT = """
import json, os, sys, time
gpu, count = map(int, sys.argv[1:])
def write(taken):
    line = {"pid": os.getpid(), "gpu": gpu, "bytes": taken, "what": "device"}
    with open(os.environ["TRITONCHAOS_PLANTED_LEDGER"], "a") as ledger:
        ledger.write(json.dumps(line) + "\\n")
write(count)
print("ready", flush=True)
while True:
    time.sleep(0.3)
    write(count)
    time.sleep(0.3)
    write(-count)
"""


class StandIn:
    """GPUs that are not there.

    Args:
        folder: An empty folder.
        scenery: Lines of the scenery, as tests/nvml_stand_in/README.md describes them.

    Attributes:
        environment: Of processes that are to see these GPUs.
    """

    def __init__(self, folder: Path, *scenery: str) -> None:
        self.folder = folder
        self._scenery = folder / "scenery"
        self.ledger = folder / "ledger"
        self.ledger.touch()
        library = folder / "lib" / "libnvidia-ml.so.1"
        library.parent.mkdir()
        shutil.copy(_compiled("stand_in_nvml", HERE), library)
        self.context = _compiled("stand_in_context", HERE / "context")
        self.set_scenery(*scenery)
        self.environment = {
            "LD_LIBRARY_PATH": str(library.parent),
            "TRITONCHAOS_STAND_IN_NVML": str(self._scenery),
            "TRITONCHAOS_PLANTED_LEDGER": str(self.ledger),
        }

    def set_scenery(self, *lines: str) -> None:
        new = self._scenery.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.replace(self._scenery)

    def take(self, pid: int, count: int, gpu: int = 0, what: str = "device") -> None:
        """Append a line to the ledger."""
        with self.ledger.open("a") as ledger:
            ledger.write(json.dumps({"pid": pid, "gpu": gpu, "bytes": count, "what": what}) + "\n")

    def python(self, code: str, **environment: str) -> Any:
        """Run Python code that sees the GPUs; return what it printed, as JSON."""
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=self._whole(environment), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def run_scenario(self, text: str, *options: str, **environment: str) -> Called:
        """Run a scenario; models of variant planted_gpu take device memory in the ledger."""
        scenario = self.folder / "scenario.yaml"
        scenario.write_text(text)
        command = [sys.executable, "-m", "tritonchaos", "run", str(scenario)]
        command += ["--out", str(self.folder / "run"), *options]
        done = subprocess.run(
            command, env=self._whole(environment), cwd=self.folder, capture_output=True, text=True, timeout=240
        )
        return Called(done.returncode, done.stdout, done.stderr, self.folder / "run")

    def co_tenant(self, gpu: int, count: int) -> subprocess.Popen[str]:
        """Start a process that holds memory, and as much again half of the time."""
        command = [sys.executable, "-c", _CO_TENANT, str(gpu), str(count)]
        process = subprocess.Popen(command, env=self._whole({}), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def _whole(self, environment: Mapping[str, str]) -> dict[str, str]:
        without = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
        return without | self.environment | environment


def _compiled(name: str, folder: Path) -> Path:
    return compile_shared(name, sorted(folder.glob("*.c")), ("-fvisibility=hidden", "-pthread", *WARNINGS))
