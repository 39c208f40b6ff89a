"""Makes texts fit to be handed on: no folders of this machine, nothing that a terminal would obey."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

# At least two components; /v2/... is Triton's own HTTP API, /dev/shm and /proc are the same on every machine.
_ABSOLUTE_PATH: Final = re.compile(
    r"(?<![\w./~-])/(?!v2(?:/|\b)|dev/|proc/)(?:[^\s/'\"`<>|:;,()\[\]{}]+/)+[^\s/'\"`<>|:;,()\[\]{}]*"
)


def without_folders(text: str) -> str:
    """Keep the last component of each absolute path: "/opt/tritonserver/bin/tritonserver" -> "tritonserver"."""
    return _ABSOLUTE_PATH.sub(lambda match: PurePosixPath(match[0]).name, text)


def portable(value: Any) -> Any:
    """Do the same in every text of a JSON value."""
    if isinstance(value, str):
        return without_folders(value)
    if isinstance(value, Mapping):
        return {key: portable(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [portable(element) for element in value]
    return value


def printable(text: str) -> str:
    """Replace control characters (a log may hold terminal colours), but keep line breaks and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
