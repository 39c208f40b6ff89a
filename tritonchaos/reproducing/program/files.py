"""Brings a model directory into another state: only files that differ are written, each by a rename."""

from __future__ import annotations

import os
import shutil


def bring_into_state(source: str, place: str, aside: str) -> None:
    """Make a model directory like another one; without that one it is removed.

    Args:
        aside: Path beside the repository, on the same file system, where files are written before they are renamed.
    """
    if not os.path.isdir(source):
        shutil.rmtree(place, ignore_errors=True)
    elif not os.path.isdir(place):
        shutil.copytree(source, aside)
        os.rename(aside, place)
    else:
        remove_others(source, place)
        copy_changed(source, place, aside)


def remove_others(source: str, place: str) -> None:
    """Remove what a model directory has and the wanted state has not, or has as another kind of thing."""
    for here, folders, files in os.walk(place, topdown=False):
        wanted = os.path.join(source, os.path.relpath(here, place))
        for name in files:
            if not os.path.isfile(os.path.join(wanted, name)):
                os.unlink(os.path.join(here, name))
        for name in folders:
            if not os.path.isdir(os.path.join(wanted, name)):
                shutil.rmtree(os.path.join(here, name), ignore_errors=True)


def copy_changed(source: str, place: str, aside: str) -> None:
    """Write the files that differ, each beside the repository and then renamed into it."""
    for here, _, files in os.walk(source):
        target = os.path.join(place, os.path.relpath(here, source))
        os.makedirs(target, exist_ok=True)
        for name in files:
            old, new = os.path.join(target, name), os.path.join(here, name)
            if not os.path.isfile(old) or file_bytes(old) != file_bytes(new):
                shutil.copyfile(new, aside)
                os.rename(aside, old)


def file_bytes(path: str) -> bytes:
    """Content of a file."""
    with open(path, "rb") as file:
        return file.read()
