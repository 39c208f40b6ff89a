"""What is made of a bundle's exit code and output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonchaos.errors import UsageError
from tritonchaos.reproducing import Where, read_way, verify_bundle
from tritonchaos.reproducing.verifying import read_verdict


@pytest.mark.parametrize(
    ("code", "text", "says"),
    [
        (1, "x\nREPRODUCED\n  lines", 1),
        (0, "NOT REPRODUCED (clean twin)\n", 0),
        (3, "CANNOT TELL\n", 3),
        (1, "Traceback (most recent call last):\nValueError", 3),
        (1, "NOT REPRODUCED\n", 3),
        (0, "", 3),
        (-9, "REPRODUCED\n", 3),
        (143, "", 3),
    ],
)
def test_only_a_program_that_says_so_is_believed(code: int, text: str, says: int) -> None:
    assert read_verdict(code, text).exit_code == says


def test_a_program_that_does_not_know_its_options_is_told() -> None:
    with pytest.raises(UsageError, match="does not know"):
        read_verdict(2, "usage: repro.py")


def test_an_image_and_a_path_are_too_much(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected one of them"):
        verify_bundle(tmp_path, Where(tmp_path, "image"), clean_twin=False, deadline_s=1.0)


def test_a_way_for_gpus_is_one_of_those_of_the_target() -> None:
    assert read_way("devices") == "devices"
    with pytest.raises(UsageError, match="found GPU access 'cuda', expected one of auto, toolkit, cdi, devices"):
        read_way("cuda")
