"""Writes what a calibration found: into its run directory, and into the cache for later reports to quote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tritonchaos import calibrated
from tritonchaos.calibration.document import Calibration, statements
from tritonchaos.calibration.page import page
from tritonchaos.errors import StoreError

JSON_FILE: Final = "calibration.json"
PAGE_FILE: Final = "calibration.md"


def write_files(folder: Path, calibration: Calibration, found: Mapping[str, Any], date: str) -> Iterator[str]:
    """Write calibration.json and calibration.md, keep the claims for later reports, and yield where things are.

    A calibration that was interrupted, or has false alarms, is not kept: it would lend its word to reports.

    Args:
        found: What calibration.json holds.
        date: When it was made, "2026-12-01".

    Raises:
        StoreError: The run directory cannot be written.
    """
    try:
        (folder / JSON_FILE).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        (folder / PAGE_FILE).write_text(page(found), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {folder}: {error.strerror}", hint="name another folder with --out") from error
    yield f"run directory: {folder}"
    kept = {} if calibration.interrupted or calibration.false_alarms else statements(calibration, date)
    if kept:
        try:
            yield f"kept for later reports: {calibrated.keep(calibration.facts, kept)}"
        except OSError as error:
            yield f"not kept for later reports: cannot write the cache: {error.strerror}"
