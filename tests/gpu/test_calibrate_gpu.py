"""`calibrate` on a real GPU: its claims on device memory hold on fresh runs, and reports quote them.

By hand, on a machine with an NVIDIA driver:

    pytest tests/gpu/test_calibrate_gpu.py -m gpu -s
    tritonchaos calibrate --budget 5min
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calibration_claims import Claims, calibrate, hold
from tritonchaos.nvml import Nvml, open_nvml

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(1500)]


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> Iterator[None]:
    nvml = open_nvml()
    if not isinstance(nvml, Nvml):
        pytest.skip(nvml.reason)
    nvml.close()
    yield


def test_the_claims_on_device_memory_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Two minutes, and the quickest claim: with the fresh runs it stays within ten minutes where a server boots slowly.
    found = calibrate(tmp_path, "planted_gpu", "2min")
    assert found["key"]["gpu_uuids"]
    assert found["key"]["driver"]
    hold(Claims(tmp_path, found, "planted_gpu"), capsys, most_claims=1)


def test_without_a_variant_host_and_device_are_both_calibrated(tmp_path: Path) -> None:
    found = calibrate(tmp_path, "", "1min")
    assert {part["variant"] for part in found["metrics"].values()} == {"planted", "planted_gpu"}
