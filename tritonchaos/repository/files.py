"""Names, modes and copies of the files in a model repository."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tritonchaos.errors import ScenarioError, TemplateError, UsageError
from tritonchaos.units import MIB

# Larger files are linked instead of copied where that is possible. A linked file shares its fate with what it was
# linked from if somebody writes into it, so what can be copied in no time is copied.
LINKED_BYTES: Final = 64 * MIB
# A server in a container may run as another user, who must be able to read.
FILE_MODE: Final = 0o644
DIRECTORY_MODE: Final = 0o755
_EXECUTABLE_MODE: Final = 0o755
# Source: ioctl_ficlone(2), linux/fs.h.
_FICLONE: Final = 0x40049409
_READABLE_BY_ALL: Final = 0o444
_EXECUTABLE: Final = 0o111
_LONGEST_NAME: Final = 200


def checked_name(model: str) -> str:
    """Return a model name that is the name of one folder, and cannot be any other path.

    Raises:
        ScenarioError: Empty, hidden, too long, or with a character that could lead out of the repository.
    """
    if not model or model.startswith(".") or "/" in model or "\0" in model or len(model.encode()) > _LONGEST_NAME:
        raise ScenarioError(
            f"found model name {model[:60]!r}, expected 1 to {_LONGEST_NAME} bytes without '/' and NUL, "
            f"not starting with '.'",
            hint="a model is named like the folder that it lies in",
        )
    return model


def checked_path(path: str) -> str:
    """Return a path that stays below the model directory; it may end in "/".

    Raises:
        ScenarioError: Empty, absolute, or with a part that is empty, "." or "..", too long, or holds NUL.
    """
    parts = path.removesuffix("/").split("/")
    if any(part in ("", ".", "..") or "\0" in part or len(part.encode()) > _LONGEST_NAME for part in parts):
        raise ScenarioError(
            f"found model file {path[:80]!r}, expected a path below the model directory, such as 1/model.plan",
        )
    return path


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, that everybody may read, whatever the umask."""
    missing = [folder, *folder.parents]
    missing = missing[: next(index for index, place in enumerate(missing) if place.is_dir())]
    for place in reversed(missing):
        place.mkdir(exist_ok=True)
        place.chmod(DIRECTORY_MODE)


def write_bytes(place: Path, content: bytes) -> None:
    """Write a new file that everybody may read, whatever the umask."""
    place.write_bytes(content)
    place.chmod(FILE_MODE)


def lay_out(folder: Path, files: Mapping[str, bytes | Path]) -> None:
    """Make a model directory out of contents and files (see `ModelRepository.add`)."""
    make_folder(folder)
    for path, content in files.items():
        try:
            _lay_out_one(folder, checked_path(path), content)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise ScenarioError(f"model file {path!r} is named once as a file and once as a folder") from error


def _lay_out_one(folder: Path, path: str, content: bytes | Path) -> None:
    place = folder / path
    make_folder(place if path.endswith("/") else place.parent)
    if path.endswith("/"):
        return
    if isinstance(content, bytes):
        write_bytes(place, content)
    elif content.is_file():
        lend_file(content, place)
    else:
        raise TemplateError(f"the model file {content}, which {path} is to be made from, is not a file")


def lend_file(source: Path, place: Path) -> None:
    """Put a file of the user's at a place; a huge one is never copied, only a symlink if nothing else will do."""
    if source.stat().st_size <= LINKED_BYTES:
        copy_file(source, place)
        return
    try:
        os.link(source.resolve(), place)
    except FileExistsError:
        raise
    except OSError:
        # Another file system, one without links, too many links, or a file of another user.
        if not _share_blocks(source, place):
            place.symlink_to(source.resolve())


def _share_blocks(source: Path, place: Path) -> bool:
    """Copy a file without its blocks, where the file system can (Btrfs, XFS)."""
    try:
        with source.open("rb") as from_file, place.open("xb") as to_file:
            fcntl.ioctl(to_file, _FICLONE, from_file.fileno())
    except FileExistsError:
        raise
    except OSError:
        place.unlink(missing_ok=True)
        return False
    place.chmod(FILE_MODE)
    return True


def place_file(source: Path, place: Path) -> None:
    """Put a file's content at a place: a huge file by hard link if everybody may read it, else by copy."""
    status = source.stat()
    if status.st_size > LINKED_BYTES and status.st_mode & _READABLE_BY_ALL == _READABLE_BY_ALL:
        link_or_copy(source, place)
    else:
        copy_file(source, place)


def link_or_copy(source: Path, place: Path) -> None:
    """Link a file; copy it where that is not possible."""
    try:
        os.link(source.resolve(), place)
    except FileExistsError:
        # Copying would write into the file that is there, which may be a link to something precious.
        raise
    except OSError:
        # Another file system, one without links, too many links, or a file of another user.
        copy_file(source, place)


def copy_file(source: Path, place: Path) -> None:
    """Copy a file's content, following a symlink; readable by everybody, executable if it was."""
    shutil.copyfile(source, place)
    place.chmod(_EXECUTABLE_MODE if source.stat().st_mode & _EXECUTABLE else FILE_MODE)


def remove(place: Path) -> None:
    """Remove a file, a symlink or a whole folder."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def checked_source(folder: Path, *destinations: Path) -> Path:
    """Return a user's repository folder, resolved.

    Raises:
        UsageError: It is missing, not a folder, or lies inside a destination or the other way round.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise UsageError(
            f"found {found} at {folder}, expected a model repository folder",
            hint="--model-repository takes the folder that holds the model directories",
        )
    source = folder.resolve()
    for destination in (place.resolve() for place in destinations):
        if source == destination or source in destination.parents or destination in source.parents:
            raise UsageError(
                f"the model repository {folder} cannot be copied to {destination}, as one lies inside the other",
                hint="choose a run folder outside the model repository",
            )
    return source


def model_names(folder: Path) -> list[str]:
    """Names of the model directories in a user's repository, sorted; hidden folders are none.

    Raises:
        UsageError: It is missing or not a folder.
        ScenarioError: A folder in it has a name that no model may have.
    """
    entries = sorted(checked_source(folder).iterdir())
    return [checked_name(entry.name) for entry in entries if entry.is_dir() and entry.name[0] != "."]


def copy_tree(source: Path, place: Path, above: tuple[Path, ...] = ()) -> None:
    """Copy a folder, hidden files too, following symlinks.

    Args:
        above: Resolved folders that this one lies in, to notice a symlink that leads back to one of them.

    Raises:
        UsageError: A broken or circular symlink, or something that is neither file nor folder.
    """
    here = source.resolve()
    if here in above:
        raise UsageError(f"{source} is a symlink that leads back to a folder it lies in")
    make_folder(place)
    for entry in sorted(source.iterdir()):
        if entry.is_dir():
            copy_tree(entry, place / entry.name, (*above, here))
        elif entry.is_file():
            copy_file(entry, place / entry.name)
        else:
            what = "a symlink to nothing" if entry.is_symlink() else "neither file nor folder"
            raise UsageError(f"{entry} is {what} and cannot be copied", hint="remove it, or copy the models by hand")
