"""A real browser without a window, for pages of ours; it reaches no network and leaves nothing behind."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
)


def browser() -> str:
    """Return the browser's path; without one the test is skipped, loudly."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("NO BROWSER FOUND (chromium): that hostile texts run no script was not tested here")
    return found


def dom_after_scripts(page: Path, width: int = 1200) -> str:
    """Open a page, let its scripts run, and return what the document has become."""
    with tempfile.TemporaryDirectory(prefix="tritonchaos-browser-", ignore_cleanup_errors=True) as profile:
        command = [browser(), *_OPTIONS, f"--user-data-dir={profile}", f"--window-size={width},900", "--dump-dom"]
        done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
