"""A real tritonserver of the target `local` for tests, and small python models to serve with it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tritonchaos.client import TritonClient
from tritonchaos.errors import TargetUnavailable
from tritonchaos.plugins import LaunchSpec, RunningServer
from tritonchaos.targets.local import LocalTarget

IDENTITY = """
import numpy
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(request, "INPUT").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", numpy.array(tensor))]) for tensor in tensors]
"""


@dataclass(frozen=True)
class Output:
    name: str = "OUTPUT"


@dataclass
class LocalServer:
    """A running server with one client; `launch.repository` takes models."""

    target: LocalTarget
    launch: LaunchSpec
    running: RunningServer
    client: TritonClient

    @property
    def pid(self) -> int:
        assert self.running.pid is not None
        return self.running.pid

    def stop(self) -> None:
        self.client.close()
        self.target.stop()


def new_launch(folder: Path, flags: Mapping[str, str | int | float | bool] | None = None) -> LaunchSpec:
    """Lay out the folders of a launch below an empty folder."""
    launch = LaunchSpec(
        repository=folder / "repository",
        scratch=folder / "scratch",
        temp=folder / "temp",
        log_file=folder / "server.log",
        shm_prefix=f"tc_test_{uuid.uuid4().hex[:8]}_",
        flags=flags or {},
    )
    for path in (launch.repository, launch.scratch, launch.temp):
        path.mkdir()
    return launch


def usable_local_target() -> LocalTarget:
    """The target `local`, or skip the test with the reason why it cannot be used here."""
    target = LocalTarget()
    try:
        target.check()
    except TargetUnavailable as reason:
        pytest.skip(reason.message)
    return target


def start_local_server(folder: Path, **changes: object) -> LocalServer:
    """Start a server; `changes` are fields of its LaunchSpec."""
    target = usable_local_target()
    launch = replace(new_launch(folder), **changes)  # type: ignore[arg-type]
    running = target.start(launch)
    return LocalServer(target, launch, running, TritonClient(running.url, running.grpc))


def write_python_model(repository: Path, name: str, code: str | None = IDENTITY, datatype: str = "FP32") -> Path:
    """Write a python model INPUT -> OUTPUT of one dimension; without code its model.py is missing."""
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    tensor = f"data_type: TYPE_{datatype} dims: [-1]"
    (folder / "config.pbtxt").write_text(
        f'backend: "python"\ninput [{{name: "INPUT" {tensor}}}]\noutput [{{name: "OUTPUT" {tensor}}}]\n'
    )
    if code is not None:
        (folder / "1" / "model.py").write_text(code)
    return folder


def wait_for(is_true: Callable[[], object], at_most_s: float = 60) -> bool:
    """Wait until something holds; False if it does not in time."""
    end = time.monotonic() + at_most_s
    while not is_true():
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True
