"""A server that ends while it is read is a break in the series, and what was read of it is no level of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.cli import run_scenario

pytestmark = pytest.mark.server

# Kills the server from outside in the middle of the settle window that follows the step.
PLUGIN = '''\
"""Ends the server while it is read."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tritonchaos.plugins import SAMPLERS, STEPS, Contract, Group, SampleScope, Workbench
from tritonchaos.processes import command_line, read_stat

DOOMED: list[int] = []


@STEPS.register
@dataclass(frozen=True)
class KillAtReading:
    """Let the next reading of all metrics be the server's last."""

    name: ClassVar[str] = "kill_at_reading"
    contract: ClassVar[Contract] = Contract.UNDOCUMENTED

    def apply(self, bench: Workbench) -> None:
        port = f"--http-port={bench.client.url.rpartition(':')[2]}"
        DOOMED.extend(int(name) for name in os.listdir("/proc") if name.isdigit() and port in command_line(int(name)))


@SAMPLERS.register
class KillingSampler:
    """Read nothing, and end the server where that was asked for."""

    name: ClassVar[str] = "killing"

    def open(self, scope: SampleScope) -> Mapping[str, str]:
        return {}

    def read(self, group: Group) -> Mapping[str, int]:
        while DOOMED and group is Group.ALL:
            pid = DOOMED.pop()
            os.kill(pid, signal.SIGKILL)
            while (stat := read_stat(pid)) is not None and not stat.is_zombie:
                time.sleep(0.001)
        return {}

    def quanta(self) -> Mapping[str, int]:
        return {}

    def notes(self) -> Sequence[str]:
        return ()

    def close(self) -> None: ...
'''

SCENARIO = """\
scenario: dies-while-it-is-read
seed: 1
target: [{local: {}}]
server: {flags: {disable-auto-complete-config: true}}
models: {ident: {template: identity, variant: planted, parameters: {datatype: FP32, dims: [4]}}}
phases:
  - phase: loads
    cycles: 12
    each: [{load: ident}, {wait: 20ms}, {unload: ident}, {kill_at_reading: {every: 5}}]
check: [memory_growth, server_alive, leftovers]
"""


def test_a_server_that_ends_during_a_settle_window_has_no_reading_and_a_new_series_begins(tmp_path: Path) -> None:
    (tmp_path / "killing.py").write_text(PLUGIN)
    called = run_scenario(SCENARIO, tmp_path, "--plugin", tmp_path / "killing.py")
    assert called.exit_code == 1, called.shown()
    [crash] = called.findings("crash")
    assert crash["position"]["cycle"] == 4
    assert called.results["server_starts"] == 3
    # Cycles 4 and 9 ended with no server: they are not among those that were read.
    [phase] = called.results["phases"]
    assert phase["cycles"] == 10
    values = phase["post_unload"]["host_private_bytes"]
    assert all(value > 1024**2 for value in values), called.shown()
    assert called.kinds() == {"crash"}
