"""The files of a run that other reports point to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tritonchaos.summary import FinishedEntry

_KINDS: Final = {
    "report.html": "text/html",
    "report.md": "text/markdown",
    "results.json": "application/json",
    "server.log": "text/plain",
}


def attachments(entry: FinishedEntry, out: Path) -> Iterator[tuple[str, str]]:
    """Yield (path, MIME type) of the files that are there, the one for people first.

    Args:
        out: Folder of the run, or of its set; the paths are relative to it.
    """
    folder = Path(entry.folder)
    for name, kind in _KINDS.items():
        if (out / folder / name).is_file():
            yield (folder / name).as_posix(), kind
