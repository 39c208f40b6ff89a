"""Facts of the machine in a run's record."""

from __future__ import annotations

import platform
from pathlib import Path

from tests.stand_in_nvml import A, B, StandIn, needs_compiler
from tritonchaos.machine_facts import machine_facts

ASK = "import json; from tritonchaos.machine_facts import machine_facts; print(json.dumps(machine_facts({target!r})))"


def test_processor_and_kernel_are_always_told() -> None:
    facts = machine_facts({"target": "local"})
    assert facts["machine"] == platform.machine()
    assert facts["kernel"] == platform.release()


@needs_compiler
def test_driver_and_gpus_are_told_but_not_for_a_server_elsewhere(tmp_path: Path) -> None:
    machine = StandIn(tmp_path, f"gpu uuid={A} name=H200", f"gpu uuid={B} name=H200", "driver version=stand-in-580.1")
    local, remote = (machine.python(ASK.format(target={"target": name})) for name in ("local", "remote"))
    assert (local["driver_version"], local["gpu_names"]) == ("stand-in-580.1", "H200")
    assert "driver_version" not in remote
