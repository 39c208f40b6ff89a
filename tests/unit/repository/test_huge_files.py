"""Weights of gigabytes: linked, lent from another file system, never copied, never written to."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tritonchaos.repository import ModelRepository
from tritonchaos.repository.files import LINKED_BYTES


@pytest.fixture
def repository(tmp_path: Path) -> ModelRepository:
    return ModelRepository(tmp_path / "models", tmp_path / "archive")


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on another file system."""
    folder = Path("/dev/shm") / f"tritonchaos-test-{secrets.token_hex(4)}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def huge(folder: Path) -> Path:
    """A file of many bytes that takes no space."""
    file = folder / "weights"
    with file.open("wb") as writing:
        writing.truncate(LINKED_BYTES + 1)
    file.chmod(0o640)
    return file


def test_on_the_same_file_system_it_is_the_same_file_under_two_names(repository: ModelRepository, tmp_path: Path):
    weights = huge(tmp_path)
    repository.add("m", {"1/weights": weights})
    placed = repository.model_dir("m") / "1/weights"
    assert not placed.is_symlink() and placed.samefile(weights)
    assert weights.stat().st_mode & 0o777 == 0o640


def test_of_another_file_system_it_is_a_symlink_that_comes_back(
    repository: ModelRepository, elsewhere: Path, tmp_path: Path
):
    if elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is only one file system")
    weights = huge(elsewhere)
    repository.add("m", {"1/weights": weights, "1/small": b"s"})
    placed = repository.model_dir("m") / "1/weights"
    assert placed.is_symlink() and placed.samefile(weights)
    repository.put_file("m", "1/weights", b"other")
    repository.delete_file("m", "1/small")
    assert placed.read_bytes() == b"other"
    repository.restore("m")
    assert placed.is_symlink() and placed.samefile(weights)
    repository.delete_file("m", "1/weights")
    repository.put_file("m", "1/more", b"")
    repository.restore("m")
    assert placed.samefile(weights) and not (repository.model_dir("m") / "1/more").exists()
    assert weights.stat().st_size == LINKED_BYTES + 1
    assert not any(file.stat().st_size > LINKED_BYTES for file in (tmp_path / "archive").rglob("*") if file.is_file())


def test_restoring_what_is_lent_and_unchanged_keeps_it(repository: ModelRepository, elsewhere: Path):
    weights = huge(elsewhere)
    repository.add("m", {"1/weights": weights, "config.pbtxt": b"a"})
    repository.put_file("m", "config.pbtxt", b"b")
    repository.restore("m")
    assert (repository.model_dir("m") / "1/weights").samefile(weights)
