"""A server that ends while it is read is a break in the series, and what was read of it is no level of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.cli import run_scenario

pytestmark = pytest.mark.server

# Kills the server from outside, a moment after the step has ended: in the middle of the settle window.
PLUGIN = '''\
"""Ends the server a moment later."""

import os
import signal
import threading
from dataclasses import dataclass
from typing import ClassVar

from tritonchaos.plugins import STEPS, Contract, Workbench
from tritonchaos.processes import command_line


@STEPS.register
@dataclass(frozen=True)
class KillSoon:
    """Kill the server from outside, some milliseconds later."""

    name: ClassVar[str] = "kill_soon"
    contract: ClassVar[Contract] = Contract.UNDOCUMENTED

    after_ms: int

    def apply(self, bench: Workbench) -> None:
        port = f"--http-port={bench.client.url.rpartition(':')[2]}"
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        [pid] = [pid for pid in pids if port in command_line(pid)]
        threading.Timer(self.after_ms / 1000, os.kill, (pid, signal.SIGKILL)).start()
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
    each: [{load: ident}, {wait: 20ms}, {unload: ident}, {kill_soon: {after_ms: 8, every: 5}}]
check: [memory_growth, server_alive, leftovers]
"""


def test_a_server_that_ends_during_a_settle_window_has_no_reading_and_a_new_series_begins(tmp_path: Path) -> None:
    (tmp_path / "kill_soon.py").write_text(PLUGIN)
    called = run_scenario(SCENARIO, tmp_path, "--plugin", tmp_path / "kill_soon.py")
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
