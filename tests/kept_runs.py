"""Run directories of released formats, kept with the tests; later versions must go on reading them."""

from __future__ import annotations

import shutil
from pathlib import Path

RUNS = Path(__file__).parent / "recorded" / "runs"
FORMAT_1 = RUNS / "format-1"


def copy_of(kept: Path, folder: Path) -> Path:
    """Copy a kept run, so that a test may write into it."""
    return Path(shutil.copytree(kept, folder / kept.name))
