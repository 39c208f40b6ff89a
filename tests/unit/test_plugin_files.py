"""Plug-ins in a single file, as named with --plugin."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tritonchaos.errors import PluginError
from tritonchaos.plugins import load_plugins

STEP = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tritonchaos.plugins import Contract


@dataclass(frozen=True, slots=True)
class FromFile:
    """Does nothing, from a file of its own."""

    name: ClassVar[str] = "from_file"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str

    def apply(self, bench):
        return None
'''


def test_a_file_may_hold_dataclasses_with_postponed_annotations(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(STEP)
    load_plugins([file])
    assert sys.modules["tritonchaos_plugin_mine"].FromFile("m").model == "m"


def test_a_file_that_fails_is_named_with_its_error(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0")
    with pytest.raises(PluginError, match=r"broken\.py failed: ZeroDivisionError"):
        load_plugins([file])
