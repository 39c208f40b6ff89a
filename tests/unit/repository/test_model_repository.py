"""The live repository: names, atomic edits, restore to the byte, the archive."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonchaos.errors import ConfigTextError, ScenarioError, StoreError, TemplateError, UsageError
from tritonchaos.repository import ModelRepository

CONFIG = b"""name: "ident"  # by hand \xff
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 16 ] } ]\r
"""
FILES = {"config.pbtxt": CONFIG, "1/model.bin": b"\0\1", "1/sub/weights.bin": b"w", "2/": b""}


@pytest.fixture
def repository(tmp_path):
    return ModelRepository(tmp_path / "scratch" / "models", tmp_path / "archive")


def contents(folder: Path) -> dict[str, bytes | None]:
    """Path -> bytes of everything below a folder; folders end in "/" and have none."""
    return {
        path.relative_to(folder).as_posix() + ("/" if path.is_dir() else ""): None
        if path.is_dir()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def edits(tmp_path: Path) -> list[dict]:
    return [json.loads(line) for line in (tmp_path / "archive" / "edits.jsonl").read_text().splitlines()]


def test_lays_a_model_out_of_bytes_files_and_empty_folders(repository, tmp_path):
    source = tmp_path / "engine"
    source.write_bytes(b"plan")
    repository.add("ident", {**FILES, "1/model.plan": source})
    assert contents(repository.model_dir("ident")) == {
        "config.pbtxt": CONFIG,
        "1/": None,
        "1/model.bin": b"\0\1",
        "1/model.plan": b"plan",
        "1/sub/": None,
        "1/sub/weights.bin": b"w",
        "2/": None,
    }
    assert repository.models() == ["ident"]


def test_everybody_may_read_whatever_the_umask(tmp_path):
    secret = tmp_path / "stub"
    secret.write_bytes(b"#!")
    secret.chmod(0o700)
    before = os.umask(0o077)
    try:
        repository = ModelRepository(tmp_path / "models", tmp_path / "archive")
        repository.add("ident", {**FILES, "stub": secret})
        repository.edit_config("ident", {"max_batch_size": 1})
        (repository.model_dir("ident") / "1/model.bin").unlink()
        repository.restore("ident")
    finally:
        os.umask(before)
    for place in [repository.root, *repository.root.rglob("*")]:
        mode = stat.S_IMODE(place.stat().st_mode)
        assert mode == (0o755 if place.is_dir() or place.name == "stub" else 0o644)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "../out", "/abs", "a\0b", "x" * 201, "ä" * 101])
def test_a_model_name_cannot_leave_the_repository(repository, name):
    with pytest.raises(ScenarioError, match="model name"):
        repository.add(name, {})
    with pytest.raises(ScenarioError, match="model name"):
        repository.model_dir(name)
    assert contents(repository.root) == {}


@pytest.mark.parametrize("path", ["", "/", "/etc/x", "../x", "1/../../x", "1//x", "./x", "a\0", "1/" + "x" * 201])
def test_a_model_file_cannot_leave_its_model(repository, path, tmp_path):
    with pytest.raises(ScenarioError, match="below the model directory"):
        repository.add("ident", {path: b""})
    assert repository.models() == []
    assert list((tmp_path / "scratch" / ".models.staging").iterdir()) == []


def test_nothing_is_left_of_a_model_that_could_not_be_added(repository, tmp_path):
    with pytest.raises(TemplateError, match=r"model\.plan"):
        repository.add("ident", {"config.pbtxt": CONFIG, "1/model.plan": tmp_path / "nothing"})
    with pytest.raises(ScenarioError, match="once as a file and once as a folder"):
        repository.add("ident", {"1": b"", "1/model.plan": b""})
    assert repository.models() == []
    repository.add("ident", FILES)
    with pytest.raises(ScenarioError, match="in the repository already"):
        repository.add("ident", {})


def test_an_edit_changes_the_field_and_no_other_byte(repository):
    repository.add("ident", FILES)
    repository.edit_config("ident", {"output[0].data_type": "TYPE_INT32"})
    file = repository.model_dir("ident") / "config.pbtxt"
    assert file.read_bytes() == CONFIG.replace(b"TYPE_FP32", b"TYPE_INT32")


def test_an_edit_replaces_the_file_instead_of_writing_into_it(repository):
    repository.add("ident", FILES)
    file = repository.model_dir("ident") / "config.pbtxt"
    with file.open("rb") as reader:
        repository.edit_config("ident", {"max_batch_size": 8})
        assert reader.read() == CONFIG
    inode = file.stat().st_ino
    repository.edit_config("ident", {"max_batch_size": 8})
    assert file.stat().st_ino == inode


def test_an_edit_that_cannot_be_made_names_the_model_and_changes_nothing(repository):
    repository.add("ident", FILES)
    repository.add("bare", {"1/": b""})
    with pytest.raises(ConfigTextError, match=r"model ident: output\[0\]\.data_typ"):
        repository.edit_config("ident", {"max_batch_size": 1, "output[0].data_typ": 1})
    assert repository.config_text("ident").encode("utf-8", "surrogateescape") == CONFIG
    with pytest.raises(ConfigTextError, match=r"bare has no config\.pbtxt"):
        repository.edit_config("bare", {"max_batch_size": 1})
    with pytest.raises(ConfigTextError, match="the models are: bare, ident"):
        repository.config_text("iden")


def test_restore_gives_every_byte_back_and_takes_out_what_came(repository):
    repository.add("ident", FILES)
    folder = repository.model_dir("ident")
    before = contents(folder)
    repository.edit_config("ident", {"max_batch_size": 1})
    (folder / "1/model.bin").write_bytes(b"written in place")
    (folder / "1/sub/weights.bin").unlink()
    (folder / "1/sub").rmdir()
    (folder / "1/sub").write_bytes(b"a file in a folder's place")
    (folder / "2/new").mkdir()
    (folder / "2/new/file").write_bytes(b"")
    (folder / "3").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    repository.restore("ident")
    assert contents(folder) == before


def test_restore_puts_a_symlink_and_a_lost_model_right(repository, tmp_path):
    repository.add("ident", FILES)
    repository.add("other", FILES)
    folder = repository.model_dir("ident")
    before = contents(folder)
    (folder / "config.pbtxt").unlink()
    (folder / "config.pbtxt").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(CONFIG)
    repository.restore("ident")
    assert not (folder / "config.pbtxt").is_symlink()
    folder.rename(tmp_path / "lost")
    repository.restore()
    assert contents(folder) == before
    assert contents(repository.model_dir("other")) == before


def test_restore_writes_nothing_where_nothing_changed(repository, tmp_path):
    repository.add("ident", FILES)
    folder = repository.model_dir("ident")
    stamps = {place: place.stat() for place in [folder, *folder.rglob("*")]}
    repository.restore("ident")
    assert {place: place.stat() for place in [folder, *folder.rglob("*")]} == stamps
    assert len(edits(tmp_path)) == 1
    with pytest.raises(ScenarioError, match="never is not in this repository"):
        repository.restore("never")


def test_a_deleted_file_stays_deleted_until_restore(repository):
    repository.add("ident", FILES)
    repository.delete_file("ident", "1/model.bin")
    repository.delete_file("ident", "1/model.bin")
    repository.delete_file("ident", "1/sub/")
    assert list(contents(repository.model_dir("ident"))) == ["1/", "2/", "config.pbtxt"]
    with pytest.raises(ScenarioError, match=r"no file '1/model\.bi'"):
        repository.delete_file("ident", "1/model.bi")
    with pytest.raises(ScenarioError, match="below the model directory"):
        repository.delete_file("ident", "../other")
    repository.restore("ident")
    assert contents(repository.model_dir("ident"))["1/model.bin"] == b"\0\1"


def test_a_huge_file_is_linked_and_refused_when_written_to_in_place(repository, tmp_path):
    huge = tmp_path / "model.plan"
    with huge.open("wb") as file:
        file.truncate(65 * 1024**2)
    repository.add("ident", {"config.pbtxt": CONFIG, "1/model.plan": huge})
    live = repository.model_dir("ident") / "1/model.plan"
    assert live.samefile(huge)
    repository.delete_file("ident", "1/model.plan")
    repository.restore("ident")
    assert live.samefile(huge)
    repository.delete_file("ident", "1/model.plan")
    with huge.open("r+b") as file:
        file.write(b"x")
    os.utime(huge, ns=(1, 1))
    with pytest.raises(StoreError, match="changed in place"):
        repository.restore("ident")


# --- the archive -----------------------------------------------------------------------------------


def test_the_archive_holds_the_model_as_it_was_at_each_edit(repository, tmp_path):
    repository.add("ident", FILES)
    repository.edit_config("ident", {"output[0].data_type": "TYPE_INT32"})
    repository.restore("ident")
    lines = edits(tmp_path)
    assert [(line["number"], line["label"], line["model"]) for line in lines] == [
        (1, "add-ident", "ident"),
        (2, "edit_config-ident", "ident"),
        (3, "restore-ident", "ident"),
    ]
    assert [line["folder"] for line in lines] == ["0001-add-ident", "0002-edit_config-ident", "0001-add-ident"]
    assert sorted(lines[0]["files"]) == sorted(FILES)
    archived = tmp_path / "archive" / "0002-edit_config-ident" / "ident"
    assert (archived / "config.pbtxt").read_bytes() == CONFIG.replace(b"FP32", b"INT32")
    assert contents(tmp_path / "archive" / "0001-add-ident" / "ident") == contents(repository.model_dir("ident"))


def test_hundreds_of_edits_to_and_fro_do_not_grow_the_archive(repository, tmp_path):
    repository.add("ident", FILES)
    for _ in range(100):
        repository.edit_config("ident", {"output[0].data_type": "TYPE_INT32"})
        repository.restore("ident")
    assert len(edits(tmp_path)) == 201
    assert sorted(place.name for place in (tmp_path / "archive").iterdir()) == [
        "0001-add-ident",
        "0002-edit_config-ident",
        "edits.jsonl",
        "objects",
    ]
    # config.pbtxt in two states and two model files.
    assert len(list((tmp_path / "archive" / "objects").iterdir())) == 4


def test_each_content_is_stored_once_and_apart_from_the_live_file(repository, tmp_path):
    repository.add("one", {"a": b"same", "b": b"same"})
    repository.add("two", {"c": b"same"})
    stored = list((tmp_path / "archive" / "objects").iterdir())
    assert [place.read_bytes() for place in stored] == [b"same"]
    assert (tmp_path / "archive" / "0002-add-two" / "two" / "c").samefile(stored[0])
    (repository.model_dir("one") / "a").write_bytes(b"scribbled over")
    assert stored[0].read_bytes() == b"same"


def test_keep_records_what_others_changed_once(repository, tmp_path):
    repository.add("one", FILES)
    repository.add("two", FILES)
    (repository.model_dir("one") / "extra").write_bytes(b"by somebody else")
    repository.keep("../by hand: ä")
    repository.keep("again")
    assert [line["model"] for line in edits(tmp_path)] == ["one", "two", "one"]
    assert edits(tmp_path)[-1]["folder"] == "0003-by_hand"
    assert (tmp_path / "archive" / "0003-by_hand" / "one" / "extra").read_bytes() == b"by somebody else"


def test_an_archive_of_another_run_is_refused(repository, tmp_path):
    repository.add("ident", FILES)
    with pytest.raises(StoreError, match="another run"):
        ModelRepository(tmp_path / "models", tmp_path / "archive")


# --- a user's repository ---------------------------------------------------------------------------


@pytest.fixture
def customer(tmp_path):
    folder = tmp_path / "customer"
    (folder / "m" / "1").mkdir(parents=True)
    (folder / "m" / "config.pbtxt").write_bytes(CONFIG)
    (folder / "m" / ".note").write_bytes(b"hidden")
    (folder / "readme.md").write_bytes(b"text")
    (folder / ".git").mkdir()
    (tmp_path / "weights").write_bytes(b"w")
    (folder / "m" / "1" / "model.onnx").symlink_to(tmp_path / "weights")
    return folder


def test_copies_a_users_repository_and_never_touches_it(repository, customer, tmp_path):
    before = contents(customer)
    repository.copy_from(customer)
    assert contents(repository.root) == before
    assert not (repository.model_dir("m") / "1" / "model.onnx").is_symlink()
    assert repository.models() == ["m"]
    repository.edit_config("m", {"max_batch_size": 4})
    (repository.model_dir("m") / "1" / "model.onnx").write_bytes(b"overwritten")
    assert contents(customer) == before
    repository.restore()
    assert contents(repository.root) == before
    assert edits(tmp_path)[0]["label"] == "copy_from"


def test_says_what_is_wrong_with_a_users_repository(repository, customer, tmp_path):
    with pytest.raises(UsageError, match="found nothing at"):
        repository.copy_from(tmp_path / "missing")
    with pytest.raises(UsageError, match="found a file at"):
        repository.copy_from(customer / "readme.md")
    for around in (tmp_path, repository.root, tmp_path / "scratch"):
        with pytest.raises(UsageError, match="one lies inside the other"):
            repository.copy_from(around)
    repository.add("m", FILES)
    with pytest.raises(UsageError, match=r"m of .* is in the repository already"):
        repository.copy_from(customer)
    (customer / "m" / "round").symlink_to("..")
    with pytest.raises(UsageError, match="leads back"):
        repository.copy_from(customer)
    (customer / "m" / "round").unlink()
    (customer / "m" / "round").symlink_to("nowhere")
    with pytest.raises(UsageError, match="a symlink to nothing"):
        repository.copy_from(customer)
    assert repository.models() == ["m"]


# --- properties ------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TREES = st.dictionaries(PATHS, st.binary(max_size=3), max_size=5)


def fill(folder: Path, files: dict[str, bytes]) -> None:
    """Scribble over a folder: files replace folders and the other way round."""
    for path, content in files.items():
        place = folder / path
        if any(parent.is_file() for parent in place.parents) or place.is_dir():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


@settings(max_examples=60, deadline=None)
@given(TREES, TREES, st.sets(PATHS))
def test_whatever_is_done_to_a_model_restore_undoes(tmp_path_factory, files, scribbles, deleted):
    folder = tmp_path_factory.mktemp("run")
    repository = ModelRepository(folder / "models", folder / "archive")
    plain: dict[str, bytes] = {}
    for path, content in files.items():
        is_free = all(not other.startswith(f"{path}/") and not path.startswith(f"{other}/") for other in plain)
        plain |= {path: content} if is_free else {}
    repository.add("m", plain)
    before = contents(repository.model_dir("m"))
    for path in deleted:
        place = repository.model_dir("m") / path
        if place.is_file():
            place.unlink()
    fill(repository.model_dir("m"), scribbles)
    repository.restore("m")
    assert contents(repository.model_dir("m")) == before


def test_threads_edit_one_after_the_other(repository, tmp_path):
    repository.add("ident", FILES)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: repository.edit_config("ident", {f'parameters["{n}"].string_value': "x"}), range(20)))
    assert repository.config_text("ident").count("string_value") == 20
    assert [line["number"] for line in edits(tmp_path)] == list(range(1, 22))


# --- files and versions that come and go ----------------------------------------------------------


def test_a_file_is_put_in_place_of_another_and_restored(repository, tmp_path):
    repository.add("ident", FILES)
    before = contents(repository.model_dir("ident"))
    inode = (repository.model_dir("ident") / "1/model.bin").stat().st_ino
    source = tmp_path / "weights"
    source.write_bytes(b"other")
    repository.put_file("ident", "1/model.bin", b"\xff")
    repository.put_file("ident", "3/deep/new.bin", source)
    changed = contents(repository.model_dir("ident"))
    assert (changed["1/model.bin"], changed["3/deep/new.bin"]) == (b"\xff", b"other")
    assert (repository.model_dir("ident") / "1/model.bin").stat().st_ino != inode
    assert source.read_bytes() == b"other"
    repository.restore("ident")
    assert contents(repository.model_dir("ident")) == before
    assert [edit["label"] for edit in edits(tmp_path)].count("put_file-ident") == 2


@pytest.mark.parametrize("path", ["../x", "1", "config.pbtxt/x", "", "/x"])
def test_a_file_can_be_put_only_where_a_file_can_be(repository, path):
    repository.add("ident", FILES)
    before = contents(repository.model_dir("ident"))
    with pytest.raises(ScenarioError):
        repository.put_file("ident", path, b"")
    assert contents(repository.model_dir("ident")) == before


def test_a_file_is_put_only_into_a_model_that_is_known(repository):
    with pytest.raises(ScenarioError, match="not in this repository"):
        repository.put_file("other", "1/x", b"")


def test_a_version_is_copied_once_and_taken_away_by_restore(repository):
    repository.add("ident", FILES)
    before = contents(repository.model_dir("ident"))
    repository.add_version("ident", "7", "1")
    repository.add_version("ident", "7", "1")
    found = contents(repository.model_dir("ident"))
    assert (found["7/model.bin"], found["7/sub/weights.bin"]) == (b"\0\1", b"w")
    assert "it has: 1, 2, 7" in str(hint_of(lambda: repository.add_version("ident", "8", "9")))
    with pytest.raises(ScenarioError, match="has a version 2 already"):
        repository.add_version("ident", "2", "1")
    repository.restore("ident")
    assert contents(repository.model_dir("ident")) == before


def hint_of(call) -> str:
    with pytest.raises(ScenarioError) as error:
        call()
    return error.value.hint
