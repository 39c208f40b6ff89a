"""set.json: which runs the folder of a set holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tritonchaos.errors import StoreError

SET_SCHEMA: Final = "tritonchaos.set/1"
SET_FILE: Final = "set.json"
_DAMAGED: Final = "copy the folder of the set again, whole, or name its runs one by one"


def is_set(folder: Path) -> bool:
    """Say whether a folder is that of a set."""
    return (folder / SET_FILE).is_file()


def read_set(folder: Path) -> dict[str, Any]:
    """Read set.json.

    Raises:
        StoreError: It is missing, damaged, of a newer format, or names a folder outside of its own.
    """
    path = folder / SET_FILE
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        schema = document["schema"]
        problems = list(_problems(document)) if schema == SET_SCHEMA else []
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", hint="give the folder of a set") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is damaged: {type(error).__name__}: {error}", hint=_DAMAGED) from error
    if schema != SET_SCHEMA:
        raise StoreError(
            f"{path} was written by another tritonchaos; found {schema!r:.60}, this one reads {SET_SCHEMA!r}",
            hint="read it with the version that wrote it, or a later one",
        )
    if problems:
        raise StoreError(f"{path} is damaged: {problems[0]}", hint=_DAMAGED)
    return document


def _problems(document: dict[str, Any]) -> Iterator[str]:
    if not isinstance(document["set_id"], str) or not isinstance(document["exit_code"], int):
        yield "found no set_id or exit_code"
    for run in document["runs"]:
        missing = {"scenario", "cell", "folder", "exit_code", "verdict", "error"} - run.keys()
        if missing:
            yield f"found a run without {', '.join(sorted(missing))}"
        elif run["folder"] and (Path(run["folder"]).name != run["folder"] or run["folder"] == ".."):
            yield f"found the run folder {run['folder']!r:.80}, expected the name of one within the set"
