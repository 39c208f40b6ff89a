"""What `calibrate` claims here holds on fresh runs, at sizes and places too that it did not try itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calibration_claims import Claims, calibrate, hold
from tests.local_server import usable_local_target
from tests.stand_in_nvml import needs_compiler

pytestmark = [pytest.mark.server, pytest.mark.long, pytest.mark.timeout(3000), needs_compiler]


def test_the_claims_of_three_minutes_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usable_local_target()
    found = calibrate(tmp_path, "planted", "3min")
    hold(Claims(tmp_path, found, "planted"), capsys)
