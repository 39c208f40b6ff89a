"""A model repository folder that belongs to somebody else's server."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tritonchaos.errors import UsageError

_PREFIX: Final = ".tritonchaos-"


def staging_for(root: Path) -> Path:
    """Make a new folder from which files can be renamed into a shared repository.

    Beside the repository if possible, where Triton does not look; inside it as a hidden folder where the folder above
    is another file system or not ours to write in (Triton's index then shows a name that no model has).

    Raises:
        UsageError: The repository cannot be written.
    """
    for parent in (root.parent, root):
        folder = _try(parent, root)
        if folder is not None:
            return folder
    raise UsageError(
        f"the model repository {root} cannot be written", hint="run as a user who may write it, or leave it out"
    )


def _try(parent: Path, root: Path) -> Path | None:
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    except OSError:
        return None
    probe = folder / "probe"
    there = root / f"{folder.name}-probe"
    try:
        probe.mkdir()
        # A bind mount of one file system has the same device number, and yet nothing can be renamed across it.
        probe.rename(there)
        there.rmdir()
        return folder
    except OSError:
        for made in (there, probe, folder):
            if made.is_dir():
                made.rmdir()
        return None
