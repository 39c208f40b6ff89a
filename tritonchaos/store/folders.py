"""Names of run directories, and the folder a run may write into."""

from __future__ import annotations

import re
import secrets
from datetime import datetime, timezone
from pathlib import Path

from tritonchaos.errors import StoreError


def new_run_folder(parent: Path, scenario: str, now: datetime) -> Path:
    """Choose a run directory that does not exist yet: `<UTC>-<scenario>-<4 hex>`. Nothing is created.

    Args:
        now: Wall time with its time zone.
    """
    stamp = now.astimezone(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", scenario)
    while True:
        folder = parent / f"{stamp}-{name}-{secrets.token_hex(2)}"
        if not folder.exists():
            return folder


def prepare_folder(folder: Path) -> None:
    """Create the run directory.

    Raises:
        StoreError: It has something in it, is not a folder, or cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        inside = sorted(entry.name for entry in folder.iterdir())
    except FileExistsError as error:
        raise StoreError(f"{folder} is a file, expected a folder", hint="choose another one with --out") from error
    except OSError as error:
        raise StoreError(
            f"cannot create the run directory {folder}: {error.strerror}", hint="choose another one with --out"
        ) from error
    if inside:
        shown = ", ".join(inside[:5]) + (f" and {len(inside) - 5} more" if len(inside) > 5 else "")
        raise StoreError(
            f"{folder} is not empty; found {shown}, expected an empty or absent folder",
            hint="name another folder with --out, or empty this one",
        )


def point_latest(folder: Path) -> None:
    """Make the link `latest` beside a run directory point to it; a reader sees the old or the new one, never none.

    Raises:
        StoreError: The link cannot be made, for example because `latest` is a folder.
    """
    latest = folder.parent / "latest"
    beside = folder.parent / f".latest-{secrets.token_hex(4)}"
    try:
        beside.symlink_to(folder.name, target_is_directory=True)
        beside.replace(latest)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StoreError(
            f"cannot make {latest} point to {folder.name}: {error.strerror}",
            hint="remove or rename what stands at `latest`",
        ) from error
