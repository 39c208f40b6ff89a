"""NVML access and the NVML sampler through the real nvidia-ml-py, on the stand-in library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stand_in_nvml import A, B, StandIn, needs_compiler
from tritonchaos.units import GIB, KIB, MIB

pytestmark = needs_compiler

MIG = "MIG-cccccccc-0000-0000-0000-000000000003"
NOTE = "device memory was read from a stand-in NVML, not from a GPU"

# Reads what one server's sampler shows; the server is this process's parent, or the pid given as PID.
READ = """
import json, os
from tritonchaos.plugins import Group, SampleScope
from tritonchaos.samplers.nvml import NvmlSampler
sampler = NvmlSampler()
uuids = tuple(os.environ.get("UUIDS", "").split())
why = sampler.open(SampleScope(pid=int(os.environ["PID"]) or None, gpu_uuids=uuids))
read = sampler.read(Group.ALL)
print(json.dumps({"why": why, "read": read, "notes": list(sampler.notes()), "capacities": sampler.capacities()}))
"""


@pytest.fixture
def server():
    """A process that stands for a server."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate()


def read(machine, pid, **environment):
    return machine.python(READ, PID=str(pid), **environment)


def used(machine, pid, **environment):
    return read(machine, pid, **environment)["read"]["nvml_device_used_bytes"]


def test_used_and_reserved_are_apart_and_processes_are_counted_in_pages(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} total={16 * GIB} base={4 * MIB} reserved={300 * MIB}")
    machine.take(server.pid, 64 * KIB)

    shown = read(machine, server.pid)

    assert shown == {
        "why": {},
        "read": {
            "nvml_device_used_bytes": 6 * MIB,
            "nvml_device_reserved_bytes": 300 * MIB,
            "nvml_process_used_bytes": 2 * MIB,
            "nvml_others_used_bytes": 4 * MIB,
        },
        "notes": [NOTE],
        "capacities": {"nvml_device_used_bytes": 16 * GIB},
    }


def test_memory_of_32_small_leaks_is_one_page_and_host_memory_is_none(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} base=0")
    for _ in range(32):
        machine.take(server.pid, 64 * KIB)
    machine.take(server.pid, GIB, what="host")
    machine.take(server.pid, GIB, what="pinned")
    assert used(machine, server.pid) == 2 * MIB

    machine.take(server.pid, 1)
    assert used(machine, server.pid) == 4 * MIB

    machine.take(server.pid, -2 * MIB - 1)
    assert used(machine, server.pid) == 0


def test_a_process_that_ended_holds_nothing_even_before_it_is_waited_for(tmp_path: Path) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} base=0")
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    machine.take(process.pid, GIB)

    as_zombie = used(machine, os.getpid())
    process.wait()

    assert (as_zombie, used(machine, os.getpid())) == (0, 0)


def test_a_stub_counts_as_the_servers_and_a_co_tenant_is_named(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} base=0")
    machine.take(server.pid, 32 * MIB)
    machine.take(os.getppid(), 3 * GIB)

    shown = read(machine, os.getpid())

    assert shown["read"]["nvml_process_used_bytes"] == 32 * MIB
    assert shown["read"]["nvml_device_used_bytes"] == 3 * GIB + 32 * MIB
    [note] = [note for note in shown["notes"] if "not idle" in note]
    assert f"pid {os.getppid()} " in note
    assert "3 GiB" in note


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ({}, {A, B}),
        ({"CUDA_VISIBLE_DEVICES": f"{B},{A}"}, {A, B}),
        ({"CUDA_VISIBLE_DEVICES": "GPU-bbbb"}, {B}),
        ({"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, {B}),
    ],
)
def test_gpus_are_matched_by_uuid(tmp_path: Path, server, visible, expected) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} base=0", f"gpu uuid={B} base=0")
    machine.take(server.pid, 8 * MIB, gpu=1)

    shown = read(machine, server.pid, **visible)["read"]

    named = "nvml_process_used_bytes" if len(expected) == 1 else f"nvml_process_used_bytes@{B}"
    assert shown[named] == 8 * MIB
    assert len(shown) == 4 * len(expected)
    assert shown.get(f"nvml_process_used_bytes@{A}", 0) == 0


def test_an_instance_shows_its_own_and_its_gpu_the_sum(tmp_path: Path, server) -> None:
    machine = StandIn(
        tmp_path,
        f"gpu uuid={A} base=0 mig=1",
        f"instance uuid={MIG} of={A} total={10 * GIB} base=0 reserved=0",
        f"instance uuid=MIG-other of={A} base=0",
    )
    machine.take(server.pid, 8 * MIB, gpu=1)
    machine.take(os.getpid(), 16 * MIB, gpu=2)

    instance = read(machine, server.pid, CUDA_VISIBLE_DEVICES=MIG)
    whole = read(machine, server.pid, UUIDS=A)

    assert instance["read"]["nvml_device_used_bytes"] == 8 * MIB
    assert instance["read"]["nvml_process_used_bytes"] == 8 * MIB
    assert instance["capacities"] == {"nvml_device_used_bytes": 10 * GIB}
    assert not [note for note in instance["notes"] if "not idle" in note]
    assert whole["read"]["nvml_device_used_bytes"] == 24 * MIB
    assert [note for note in whole["notes"] if "MIG mode" in note]


def test_a_driver_that_does_not_tell_memory_of_processes(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} base=0", "driver process_memory=0")
    machine.take(server.pid, 8 * MIB)

    shown = read(machine, server.pid)

    assert list(shown["why"]) == ["nvml_process_used_bytes"]
    assert "as on WSL" in shown["why"]["nvml_process_used_bytes"]
    assert shown["read"].keys() == {"nvml_device_used_bytes", "nvml_device_reserved_bytes"}


def test_a_driver_that_does_not_list_processes(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} base=0", "driver process_list=0")

    assert read(machine, server.pid)["why"] == {"nvml_process_used_bytes": "this driver does not list processes"}


def test_an_old_driver_counts_reserved_as_used_and_says_so(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} base={4 * MIB} reserved={300 * MIB}", "driver memory_v2=0")

    shown = read(machine, server.pid)

    assert shown["read"]["nvml_device_used_bytes"] == 304 * MIB
    assert "used includes reserved" in shown["why"]["nvml_device_reserved_bytes"]


def test_a_lost_gpu_has_a_reason_and_no_numbers_and_the_other_is_read(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} lost_after=1", f"gpu uuid={B}")
    assert len(read(machine, server.pid)["read"]) == 8

    machine.take(server.pid, MIB, gpu=1)
    shown = read(machine, server.pid, UUIDS=f"{A} {B}")

    assert {metric.partition("@")[2] for metric in shown["read"]} == {B}
    assert {metric.partition("@")[2] for metric in shown["why"]} == {A}
    assert all("GPU is lost" in why for why in shown["why"].values())


def test_a_program_that_draws_and_a_client_of_mps_are_listed(tmp_path: Path, server) -> None:
    pid = os.getppid()
    machine = StandIn(
        tmp_path,
        f"gpu uuid={A} base=0",
        f"process pid={pid} on={A} bytes={20 * MIB} kind=graphics",
        f"process pid={server.pid} on={A} bytes={6 * MIB} kind=mps",
    )

    shown = read(machine, server.pid)

    assert shown["read"]["nvml_process_used_bytes"] == 6 * MIB
    assert shown["read"]["nvml_device_used_bytes"] == 26 * MIB
    assert [note for note in shown["notes"] if f"pid {pid} " in note and "20 MiB" in note]


def test_memory_in_use_by_nobody_listed_is_noted_before_the_server_starts(tmp_path: Path) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} base={3 * GIB}")

    [_, note] = read(machine, 0)["notes"]

    assert "3 GiB in use before the server started" in note


@pytest.mark.parametrize(("error", "reason"), [(9, "not loaded"), (18, "versions differ"), (999, "does not start")])
def test_a_driver_that_does_not_start_is_told_with_its_reason(tmp_path: Path, error: int, reason: str) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A}", f"driver start_error={error}")

    shown = read(machine, 0)

    assert shown["read"] == {}
    assert len(shown["why"]) == 3
    assert all(reason in why for why in shown["why"].values())


def test_a_real_version_makes_no_note(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A}", "driver version=580.159.03")

    assert read(machine, server.pid)["notes"] == []


def test_a_wrong_scenery_or_ledger_is_an_error_and_no_number(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} bse=3")
    assert read(machine, server.pid)["read"] == {}

    machine.set_scenery(f"gpu uuid={A}")
    machine.ledger.write_text('{"pid": 1}\n')
    shown = read(machine, server.pid)

    assert shown["read"] == {}
    assert shown["why"]


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path, server) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} base=0")
    machine.take(server.pid, 2 * MIB)
    with machine.ledger.open("a") as ledger:
        ledger.write(f'{{"pid": {server.pid}, "gpu": 0, "by')

    assert used(machine, server.pid) == 2 * MIB
