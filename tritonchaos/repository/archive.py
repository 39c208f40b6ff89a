"""Every state that a model directory was seen in, each content stored once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.errors import StoreError
from tritonchaos.repository.files import link_or_copy, make_folder, place_file
from tritonchaos.units import MIB

# What a model directory holds: path below it -> sha256 of the content. An empty folder is "name/" -> "". What is
# neither file nor folder is told by what it is, such as "symlink:target".
State = Mapping[str, str]

_SYMLINK: Final = "symlink:"
_SHA256: Final = re.compile(r"[0-9a-f]{64}\Z")
_BLOCK_BYTES: Final = 1 * MIB
# The content of larger files is read again only when their stamp has changed.
_BIG_BYTES: Final = 1 * MIB
# Two writes within one tick of the kernel's clock (at most 10 ms) leave the same mtime, so a stamp younger than that
# does not yet tell that nothing will be written under it.
_MTIME_STEP_NS: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class _Stamp:
    """Tells a big file that was not written to since it was read."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, file: Path) -> _Stamp:
        status = file.stat()
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def link_target(digest: str) -> str | None:
    """Where the symlink that is told by this state leads; None for what is no symlink."""
    return digest.removeprefix(_SYMLINK) if digest.startswith(_SYMLINK) else None


class ObjectStore:
    """Contents by their sha256, in one folder.

    Most are copies of their own. Huge ones share their disk space with the file they came from (see `place_file`), so
    `get` refuses one that was written to in place.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._read: dict[_Stamp, str] = {}
        self._stamps: dict[str, _Stamp] = {}

    def put(self, file: Path) -> str:
        """Store a file's content; return its sha256."""
        stamp = _Stamp.of(file)
        digest = self._read.get(stamp)
        if digest is None:
            digest = _digest(file)
            if stamp.size_bytes > _BIG_BYTES and time.time_ns() - stamp.mtime_ns > _MTIME_STEP_NS:
                self._read[stamp] = digest
        stored = self._folder / digest
        if not stored.exists():
            # Written under another name first: a process killed meanwhile leaves no half content under its digest.
            beside = self._folder / f".{digest}"
            beside.unlink(missing_ok=True)
            place_file(file, beside)
            beside.replace(stored)
            self._stamps[digest] = _Stamp.of(stored)
        return digest

    def get(self, digest: str) -> Path:
        """Return the file with a stored content.

        Raises:
            StoreError: It is not there, or was written to in place.
        """
        stored = self._folder / digest
        if not stored.is_file() or self._stamps.get(digest) not in (None, _Stamp.of(stored)):
            raise StoreError(
                f"the stored content {digest[:12]} is missing or was changed in place",
                hint="files of the model repository must be replaced, never written to in place",
            )
        return stored


class ModelArchive:
    """The repository as it was at each edit: `NNNN-<label>/<model>/...`, told by `edits.jsonl`.

    A line of `edits.jsonl` is {"number", "label", "model", "folder", "files"}; `folder` holds the model as it was then.
    A state that was there before points to the folder it already has, and its line has no `files`; a state that did
    not change gets no line. So the archive grows with the number of different states, not with that of edits.

    Raises:
        StoreError: The folder is the archive of another run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.objects = ObjectStore(folder / "objects")
        self._edits_file = folder / "edits.jsonl"
        if self._edits_file.exists():
            raise StoreError(f"{folder} holds the edits of another run", hint="name an empty or new folder")
        self._number = 0
        self._last: dict[str, State] = {}
        self._folders: dict[tuple[str, str], str] = {}

    def record(self, label: str, states: Mapping[str, State]) -> None:
        """Record the states of models after an edit; those that did not change are passed over."""
        changed = {model: state for model, state in states.items() if self._last.get(model) != state}
        if not changed:
            return
        self._number += 1
        new_folder = f"{self._number:04d}-{_safe_label(label)}"
        lines = [self._record_one(label, new_folder, model, state) for model, state in sorted(changed.items())]
        with self._edits_file.open("a", encoding="utf-8") as edits:
            edits.write("".join(lines))
        self._last.update(changed)

    def _record_one(self, label: str, new_folder: str, model: str, state: State) -> str:
        fingerprint = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
        folder = self._folders.get((model, fingerprint))
        line = {"number": self._number, "label": label, "model": model, "folder": folder or new_folder}
        if folder is None:
            self._lay_out(self._folder / new_folder / model, state)
            self._folders[model, fingerprint] = new_folder
            line["files"] = dict(sorted(state.items()))
        return json.dumps(line, ensure_ascii=False) + "\n"

    def _lay_out(self, folder: Path, state: State) -> None:
        make_folder(folder)
        for path, digest in state.items():
            place = folder / path
            if path.endswith("/"):
                make_folder(place)
            elif _SHA256.match(digest):
                make_folder(place.parent)
                link_or_copy(self.objects.get(digest), place)


def read_state(folder: Path, objects: ObjectStore) -> dict[str, str]:
    """Read what a model directory holds now, storing every content; {} where it is missing."""
    return dict(_entries(folder, "", objects))


def _entries(folder: Path, below: str, objects: ObjectStore) -> Iterator[tuple[str, str]]:
    if not folder.is_dir():
        return
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    if not entries and below:
        yield below, ""
    for entry in entries:
        path = f"{below}{entry.name}"
        if entry.is_symlink():
            yield path, f"{_SYMLINK}{Path(entry.path).readlink()}"
        elif entry.is_dir():
            yield from _entries(Path(entry.path), f"{path}/", objects)
        elif entry.is_file():
            yield path, objects.put(Path(entry.path))
        else:
            yield path, "special"


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _safe_label(label: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", label).strip("._-")
    return safe[:80] or "edit"
