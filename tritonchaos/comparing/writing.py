"""Writes a comparison into files: a page for people, cases for CI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tritonchaos.comparing import html, junit
from tritonchaos.comparing.records import Comparison
from tritonchaos.errors import StoreError, UsageError

_WRITERS: Final[dict[str, tuple[str, Callable[[Comparison], bytes]]]] = {
    "html": ("compare.html", html.page),
    "junit": ("compare-junit.xml", junit.document),
}


def check_reports(names: Sequence[str], out: Path) -> list[str]:
    """Say which reports are to be written, before anything is compared.

    Args:
        names: Several in one text are parted by commas.

    Raises:
        UsageError: There is no such report.
        StoreError: One of the files exists already.
    """
    wanted = list(dict.fromkeys(name.strip() for text in names for name in text.split(",") if name.strip()))
    for name in wanted:
        if name not in _WRITERS:
            raise UsageError(f"--report: found the unknown report {name[:80]!r}, expected {', '.join(_WRITERS)}")
        path = out / _WRITERS[name][0]
        if path.exists():
            raise StoreError(f"{path} exists already", hint="name another folder with --out, or remove it")
    return wanted


def write_reports(comparison: Comparison, names: Sequence[str], out: Path) -> list[Path]:
    """Write the chosen reports into a folder, which is made if it is absent.

    Raises:
        UsageError, StoreError: As `check_reports`, or a file cannot be written.
    """
    written = []
    for name in check_reports(names, out):
        file_name, make = _WRITERS[name]
        try:
            out.mkdir(parents=True, exist_ok=True)
            with (out / file_name).open("xb") as file:
                file.write(make(comparison))
        except OSError as error:
            raise StoreError(f"cannot write {out / file_name}: {error.strerror}", hint="name another --out") from error
        written.append(out / file_name)
    return written
