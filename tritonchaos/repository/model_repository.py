"""A live model repository: what is changed in it is changed atomically and can be put back."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Final

from tritonchaos import pbtxt
from tritonchaos.errors import ConfigTextError, ScenarioError, UsageError
from tritonchaos.observations import JsonValue
from tritonchaos.repository.archive import ModelArchive, State, link_target, read_state
from tritonchaos.repository.files import (
    checked_name,
    checked_path,
    checked_source,
    copy_tree,
    lay_out,
    lend_file,
    make_folder,
    place_file,
    remove,
    write_bytes,
)
from tritonchaos.repository.sending import CONFIG_FILE, config_json, sendable_files
from tritonchaos.repository.sharing import staging_for

_NOT_OURS: Final = "only models that the scenario brings are changed in a server's own repository"
# config.pbtxt should be UTF-8; whatever else is in it is carried through unchanged.
_ENCODING: Final = ("utf-8", "surrogateescape")


class ModelRepository:
    """The live model repository of one run, and its archive.

    What is written is written in a folder beside the repository, where Triton does not look, and renamed into place,
    so that the server never sees half a file or half a model. Callers keep to Triton's rule that the files of a model
    do not change while it is loading or unloading. Methods may be called from several threads.

    Args:
        root: The live repository folder; made if absent.
        archive: Where each state is kept (see `ModelArchive`); made if absent. Best on the same file system, so that
            big files are linked instead of copied.
        shared: The root belongs to a server that is not ours: it must be there, only what was added may be changed,
            and `withdraw` takes it out again.
        sends_files: The server does not read the root; a load sends the files along (see `sending`).
    """

    def __init__(self, root: Path, archive: Path, *, shared: bool = False, sends_files: bool = False) -> None:
        self._root = root.absolute()
        self.is_shared = shared
        self.sends_files = sends_files
        # Beside the root, hence on its file system, and outside what Triton polls.
        self._staging = self._root.parent / f".{self._root.name}.staging"
        if shared:
            self._staging = staging_for(self._root)
        make_folder(self._root)
        make_folder(self._staging)
        self._archive_folder = archive.absolute()
        self._archive = ModelArchive(self._archive_folder)
        self._snapshots: dict[str, State] = {}
        self._placed: set[str] = set()
        self._lock = RLock()

    @property
    def staging(self) -> Path:
        """Folder that files are written in before they are renamed into the root."""
        return self._staging

    @property
    def root(self) -> Path:
        """The live repository folder, absolute."""
        return self._root

    def models(self) -> list[str]:
        """Names of the model directories, sorted; hidden folders are none, nor what others have in a shared root."""
        if self.is_shared:
            return sorted(self._placed)
        return sorted(entry.name for entry in self._root.iterdir() if entry.is_dir() and entry.name[0] != ".")

    def model_dir(self, model: str) -> Path:
        """Folder of a model, whether it is there or not.

        Raises:
            ScenarioError: The name could lead out of the repository, or is somebody else's model in a shared root.
        """
        place = self._root / checked_name(model)
        if self.is_shared and model not in self._placed:
            raise ScenarioError(f"model {model} in the shared model repository is not ours", hint=_NOT_OURS)
        return place

    def model_files(self, model: str) -> tuple[str, ...]:
        """Paths of a model's files below its directory, but for config.pbtxt."""
        return sendable_files(self.model_dir(model))

    def config_json(self, model: str) -> str:
        """A model's config.pbtxt as JSON, or as it is if it is no ModelConfig.

        Raises:
            ConfigTextError: The model has none.
        """
        return config_json(self.config_text(model))

    def withdraw(self) -> None:
        """Take everything that was put into a shared root out of it again; harmless when repeated."""
        if not self.is_shared:
            return
        with self._lock:
            for place in (self._root / name for name in sorted(self._placed)):
                if place.exists() or place.is_symlink():
                    remove(place)
            self._placed.clear()
            shutil.rmtree(self._staging, ignore_errors=True)

    def add(self, model: str, files: Mapping[str, bytes | Path]) -> None:
        """Lay out a new model, and remember it for `restore`.

        Args:
            files: Path below the model directory -> content, or a file to copy (a big one is linked). A path that ends
                in "/" is a folder, such as the empty version directory of a model without files.

        Raises:
            ScenarioError: A bad name or path, or the model is there already.
            TemplateError: A file to copy is missing.
        """
        place = self._root / checked_name(model)
        with self._lock, self._aside() as aside:
            if place.exists():
                raise ScenarioError(f"model {model} is in the repository already", hint="give one of them another name")
            lay_out(aside / model, files)
            (aside / model).rename(place)
            self._placed.add(model)
            self._remember(f"add-{model}", model)

    def copy_from(self, folder: Path) -> None:
        """Copy a user's whole repository, hidden files too, following symlinks; nothing in `folder` is touched.

        Raises:
            UsageError: It is missing or not a folder, one of the folders lies inside the other, something in it cannot
                be copied, or a name in it is in the repository already.
            ScenarioError: A folder in it has a name that no model may have.
        """
        source = checked_source(folder, self._root, self._archive_folder)
        with self._lock, self._aside() as aside:
            try:
                copy_tree(source, aside / "copy")
            except PermissionError as error:
                raise UsageError(f"the model repository {folder} cannot be copied: {error}") from error
            copied = sorted((aside / "copy").iterdir())
            models = [checked_name(entry.name) for entry in copied if entry.is_dir() and entry.name[0] != "."]
            for entry in copied:
                if (self._root / entry.name).exists():
                    raise UsageError(f"{entry.name} of {folder} is in the repository already")
            for entry in copied:
                entry.rename(self._root / entry.name)
                self._placed.add(entry.name)
            self._remember("copy_from", *models)

    def config_text(self, model: str) -> str:
        """Text of a model's config.pbtxt; bytes that are not UTF-8 become surrogates.

        Raises:
            ConfigTextError: The model has none.
        """
        file = self.model_dir(model) / CONFIG_FILE
        try:
            return file.read_bytes().decode(*_ENCODING)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise ConfigTextError(
                f"model {model} has no {CONFIG_FILE} in the model repository",
                hint="Triton can complete some configs by itself, but only a written one can be edited; "
                f"the models are: {', '.join(self.models()) or 'none'}",
            ) from None

    def edit_config(self, model: str, changes: Mapping[str, JsonValue]) -> None:
        """Edit a model's config.pbtxt by field path (see `pbtxt.edit`), atomically, and keep the new state.

        An edit that changes nothing writes nothing. Seen on 2.51: a renamed config.pbtxt whose instance group alone
        changed still updates the loaded model in place, as one written in place would; Triton does not look at the
        time stamp of the model directory itself.

        Raises:
            ConfigTextError: The model has no config.pbtxt, or it cannot be edited so.
        """
        with self._lock:
            text = self.config_text(model)
            try:
                edited = pbtxt.edit(text, changes)
            except ConfigTextError as error:
                raise ConfigTextError(f"config of model {model}: {error.message}", hint=error.hint) from error
            if edited != text:
                self._write(model, CONFIG_FILE, edited.encode(*_ENCODING))
                self._keep(f"edit_config-{model}", model)

    def delete_file(self, model: str, path: str) -> None:
        """Delete a file or a folder of a model, and keep the new state; harmless when repeated.

        Raises:
            ScenarioError: There is no such file, and there was none when the model was added.
        """
        with self._lock:
            place = self.model_dir(model) / checked_path(path).removesuffix("/")
            if place.exists() or place.is_symlink():
                self._take_out(place)
                self._keep(f"delete_file-{model}", model)
            elif not any(f"{known}/".startswith(f"{path.removesuffix('/')}/") for known in self._snapshot(model)):
                known_paths = ", ".join(sorted(self._snapshot(model))) or "no files"
                raise ScenarioError(f"model {model} has no file {path!r}", hint=f"it has: {known_paths}")

    def put_file(self, model: str, path: str, content: bytes | Path) -> None:
        """Put a file into a model, in place of the one that is there, and keep the new state.

        Args:
            content: Bytes, or a file to copy (a big one is linked).

        Raises:
            ScenarioError: A bad path, one that is a folder or leads through a file, or the model was never added.
        """
        with self._lock, self._aside() as aside:
            self._snapshot(model)
            place = self.model_dir(model) / checked_path(path)
            written = aside / "written"
            if isinstance(content, bytes):
                write_bytes(written, content)
            else:
                lend_file(content, written)
            try:
                make_folder(place.parent)
                written.replace(place)
            except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
                raise ScenarioError(f"no file can be put at {path!r} of model {model}: {error.strerror}") from error
            self._keep(f"put_file-{model}", model)

    def add_version(self, model: str, version: str, source: str) -> None:
        """Copy a version folder of a model under another number, and keep the new state; harmless when repeated.

        Raises:
            ScenarioError: The model has no such source, or has another content under that number.
        """
        with self._lock, self._aside() as aside:
            folder = self.model_dir(model)
            old, new = folder / checked_path(source), folder / checked_path(version)
            if not old.is_dir():
                raise ScenarioError(f"model {model} has no version {source} to copy", hint=_versions_told(folder))
            wanted, found = (read_state(place, self._archive.objects) for place in (old, new))
            if new.exists() and wanted != found:
                raise ScenarioError(f"model {model} has a version {version} already", hint=_versions_told(folder))
            if new.exists():
                return
            lay_out(aside / "version", dict(_contents(old)))
            (aside / "version").rename(new)
            self._keep(f"add_version-{model}", model)

    def restore(self, model: str | None = None) -> None:
        """Put a model (None: each of them) back byte for byte as it was added; what came since is removed.

        Files that are as they were are not written, so that Triton sees no change where there is none.

        Raises:
            ScenarioError: The model was never added.
            StoreError: A stored content was changed in place.
        """
        with self._lock:
            for name in list(self._snapshots) if model is None else [model]:
                if self._restore(name):
                    self._keep(f"restore-{name}", name)

    def keep(self, label: str) -> None:
        """Copy every model that changed since it was last kept into the archive, each content once."""
        with self._lock:
            self._keep(label, *self.models())

    # --- what the public methods are made of, called with the lock held --------------------------------

    def _snapshot(self, model: str) -> State:
        if model not in self._snapshots:
            raise ScenarioError(
                f"model {model} is not in this repository", hint=f"it has: {', '.join(self._snapshots) or 'none'}"
            )
        return self._snapshots[model]

    def _state(self, model: str) -> State:
        return read_state(self.model_dir(model), self._archive.objects)

    def _remember(self, label: str, *models: str) -> None:
        states = {model: self._state(model) for model in models}
        self._snapshots.update(states)
        self._archive.record(label, states)

    def _keep(self, label: str, *models: str) -> None:
        self._archive.record(label, {model: self._state(model) for model in models})

    def _restore(self, model: str) -> bool:
        """Restore one model; False if there was nothing to do."""
        wanted, found = self._snapshot(model), self._state(model)
        folder = self.model_dir(model)
        if found == wanted and folder.is_dir():
            return False
        if not folder.is_dir():
            self._rebuild(folder, wanted)
            return True
        self._prune(folder, wanted)
        for path, digest in wanted.items():
            if found.get(path) != digest:
                self._put_back(folder / path, digest)
        return True

    def _rebuild(self, folder: Path, wanted: State) -> None:
        with self._aside() as aside:
            built = aside / folder.name
            make_folder(built)
            for path, digest in wanted.items():
                self._put_back(built / path, digest)
            if folder.is_symlink() or folder.exists():
                remove(folder)
            built.rename(folder)

    def _prune(self, folder: Path, wanted: State) -> None:
        """Take out what the snapshot does not have, and what is of another kind there."""
        files = {path for path in wanted if not path.endswith("/")}
        folders = {path.removesuffix("/") for path in wanted if path.endswith("/")}
        folders |= {str(parent) for path in wanted for parent in Path(path).parents} - {"."}
        for place in sorted(folder.rglob("*"), reverse=True):
            path = place.relative_to(folder).as_posix()
            is_folder = place.is_dir() and not place.is_symlink()
            is_wanted = path in (folders if is_folder else files)
            if not is_wanted or (place.is_symlink() and link_target(wanted[path]) is None):
                self._take_out(place)

    def _put_back(self, place: Path, digest: str) -> None:
        if not digest:
            make_folder(place)
            return
        make_folder(place.parent)
        target = link_target(digest)
        with self._aside() as aside:
            if target is not None:
                (aside / place.name).symlink_to(target)
            else:
                place_file(self._archive.objects.get(digest), aside / place.name)
            (aside / place.name).replace(place)

    def _write(self, model: str, path: str, content: bytes) -> None:
        with self._aside() as aside:
            written = aside / "written"
            write_bytes(written, content)
            written.replace(self.model_dir(model) / path)

    def _take_out(self, place: Path) -> None:
        with self._aside() as aside:
            place.rename(aside / "taken")

    @contextmanager
    def _aside(self) -> Iterator[Path]:
        """A fresh folder to write in, on the file system of the repository; removed at the end."""
        folder = Path(tempfile.mkdtemp(dir=self._staging))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _contents(folder: Path) -> Iterator[tuple[str, bytes | Path]]:
    """Yield what a folder holds, as `ModelRepository.add` takes it."""
    for place in sorted(folder.rglob("*")):
        path = place.relative_to(folder).as_posix()
        if place.is_dir():
            yield f"{path}/", b""
        else:
            yield path, place


def _versions_told(folder: Path) -> str:
    versions = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    return f"it has: {', '.join(versions) or 'no version'}"
