"""Can a library that was compiled here be loaded in an image? glibc's symbols carry the version that brought them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tritonchaos.errors import TargetUnavailable

_VERSION: Final = re.compile(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)")


def refuse_unloadable(backends: Mapping[str, Path], libc: tuple[int, int] | None) -> None:
    """Refuse a backend of ours that cannot be loaded beside a glibc.

    Args:
        backends: Backend name -> folder that holds libtriton_<name>.so.

    Raises:
        TargetUnavailable: One cannot; says why.
    """
    for name, folder in backends.items():
        why_not = why_not_loadable(folder / f"libtriton_{name}.so", libc)
        if why_not:
            raise TargetUnavailable(
                why_not, hint="take an image with a C compiler, or run where the C library is no newer than the image's"
            )


def why_not_loadable(library: Path, libc: tuple[int, int] | None) -> str:
    """Say why a library cannot be loaded beside a glibc; "" if it can.

    Args:
        libc: (major, minor) of the glibc there; None: there is another C library, or it is not known.
    """
    needed = glibc_needed(library)
    if libc is None or needed <= libc:
        return ""
    return (
        f"{library.name} was compiled against glibc {needed[0]}.{needed[1]} of this machine, the image has "
        f"{libc[0]}.{libc[1]}"
    )


def glibc_needed(library: Path) -> tuple[int, int]:
    """Newest glibc that a library asks for; (0, 0) if none.

    Source: the names of symbol versions stand in the library's string table (Linux Standard Base, "Symbol Versioning").
    """
    found = _VERSION.findall(library.read_bytes())
    return max(((int(major), int(minor)) for major, minor in found), default=(0, 0))
