"""Opens a bundle that somebody else made: a folder or a .tar.gz, whose names may lead nowhere else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tritonchaos.errors import UsageError
from tritonchaos.reproducing.bundle import MANIFEST
from tritonchaos.reproducing.recipe import FORMAT_VERSION
from tritonchaos.units import GIB, MIB, format_bytes

_AGAIN: Final = "ask for the bundle again, whole"
_REFUSED: Final = "a bundle of `tritonchaos repro` never has that; do not unpack it"
_LARGEST_BYTES: Final = 64 * GIB
_MOST_MEMBERS: Final = 100_000
# Texts shrink to a tenth and weights hardly: what grows much more than that is made to fill a disk.
_MOST_TIMES: Final = 200
_SMALL_BYTES: Final = 64 * MIB
_SPARE_BYTES: Final = 1 * GIB
_PART_BYTES: Final = 1 * MIB


@contextmanager
def opened(place: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Give the folder of a bundle, unpacked if need be, and its manifest; what was unpacked is removed at the end.

    Raises:
        UsageError: It is no bundle, damaged, of a newer format, or has names that lead out of it.
    """
    if place.is_dir():
        yield place, read_manifest(place)
        return
    if not place.is_file():
        raise UsageError(
            f"there is no bundle {place}", hint="give the folder or the .tar.gz that `tritonchaos repro` wrote"
        )
    with TemporaryDirectory(prefix="tritonchaos-bundle-") as folder:
        unpacked = _unpack(place, Path(folder))
        yield unpacked, read_manifest(unpacked)


def _unpack(archive: Path, folder: Path) -> Path:
    try:
        with tarfile.open(archive, "r:*") as tar:
            members = _checked(archive, folder, tar)
            for member in members:
                _unpack_member(tar, member, folder)
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).partition("\n")[0].rstrip(":")
        raise UsageError(f"{archive} is damaged or no .tar.gz: {why}", hint=_AGAIN) from error
    tops = sorted(entry for entry in folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        raise UsageError(
            f"{archive} is not a bundle: found {len(tops)} entries at its top, expected one folder", hint=_AGAIN
        )
    return tops[0]


def _checked(archive: Path, folder: Path, tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """Read all names before anything is written."""
    members: dict[str, tarfile.TarInfo] = {}
    total = 0
    for member in tar:
        name = os.path.normpath(member.name)
        total += member.size
        problem = _problem(member) or (f"{member.name!r} is there twice" if name in members else "")
        problem = problem or _too_large(archive, folder, total, len(members))
        if problem:
            raise UsageError(f"{archive} is refused: {problem}", hint=_REFUSED)
        members[name] = member
    return list(members.values())


def _too_large(archive: Path, folder: Path, total: int, count: int) -> str:
    """Say what would be too much of what is unpacked; sizes are known before anything is."""
    packed, free = archive.stat().st_size, shutil.disk_usage(folder).free
    if total > _LARGEST_BYTES or count >= _MOST_MEMBERS:
        return f"it is larger than {_LARGEST_BYTES // GIB} GiB or has too many members"
    if total > max(_SMALL_BYTES, _MOST_TIMES * packed):
        return f"unpacked it would be more than {_MOST_TIMES} times larger, at least {format_bytes(total)}"
    if total > free - _SPARE_BYTES:
        return f"unpacked it takes {format_bytes(total)} or more, and {folder.parent} has {format_bytes(free)} free"
    return ""


def _problem(member: tarfile.TarInfo) -> str:
    name = member.name
    if member.issym() or member.islnk():
        return f"{name!r} is a link to {member.linkname!r}"
    if not (member.isfile() or member.isdir()):
        return f"{name!r} is neither a file nor a folder"
    return name_problem(name)


def name_problem(name: str) -> str:
    """Say why a name in a bundle could lead out of it; "" if it cannot."""
    if name.startswith(("/", "\\")) or (len(name) > 1 and name[1] == ":"):
        return f"{name!r} is an absolute path"
    if ".." in name.replace("\\", "/").split("/"):
        return f"{name!r} leads out of the bundle"
    return f"{name!r} is no name of a file" if not name or "\0" in name else ""


def _unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    place = folder / member.name
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    assert source is not None
    with place.open("xb") as file:
        while part := source.read(_PART_BYTES):
            file.write(part)


# --- manifest ------------------------------------------------------------------------------------


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest and compare every file with it.

    Raises:
        UsageError: It is missing, damaged, of a newer format, or a file is not as it says.
    """
    path = folder / MANIFEST
    if not path.is_file() or path.is_symlink():
        raise UsageError(f"{folder.name} is not a bundle: found no {MANIFEST} in it", hint=_AGAIN)
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version, files = int(manifest["format_version"]), dict(manifest["files"])
        program = str(manifest["program"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"the {MANIFEST} of {folder.name} is damaged: {error!r}", hint=_AGAIN) from error
    if version > FORMAT_VERSION:
        raise UsageError(
            f"{folder.name} was made by a newer tritonchaos; found format {version}, "
            f"this one reads up to {FORMAT_VERSION}",
            hint="run its repro.py by itself, or install a later tritonchaos",
        )
    if program not in files:
        raise UsageError(
            f"the {MANIFEST} of {folder.name} is damaged: its program {program!r} is no file of it", hint=_AGAIN
        )
    _check_files(folder, files)
    if "may_be_added" in manifest:
        _refuse_strangers(folder, {MANIFEST, *files, *map(str, manifest["may_be_added"])})
    return dict(manifest)


def _refuse_strangers(folder: Path, known: set[str]) -> None:
    """A file that the manifest does not name may be one that the program takes for its own."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    stranger = next((name for name in sorted(found) if name not in known), None)
    if stranger is not None:
        raise UsageError(
            f"{folder.name} is refused: found {stranger}, which its {MANIFEST} does not name",
            hint="remove it if you have put it there",
        )


def _check_files(folder: Path, files: dict[str, Any]) -> None:
    _refuse_links(folder)
    for name, digest in files.items():
        problem = name_problem(str(name))
        if problem:
            raise UsageError(f"the {MANIFEST} of {folder.name} is refused: {problem}", hint=_REFUSED)
        file = folder / name
        if not file.is_file():
            raise UsageError(f"{folder.name} is incomplete: found no {name}", hint=_AGAIN)
        if _digest(file) != digest:
            raise UsageError(f"{name} in {folder.name} is not as it was written: its sha256 differs", hint=_AGAIN)


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as body:
        while part := body.read(_PART_BYTES):
            digest.update(part)
    return digest.hexdigest()


def _refuse_links(folder: Path) -> None:
    for here, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(here) / name
            if path.is_symlink():
                raise UsageError(f"{folder.name} is refused: {path.relative_to(folder)} is a link", hint=_REFUSED)
