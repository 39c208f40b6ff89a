"""Models in the repository folder of somebody else's server, and models that are sent with the load request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tritonchaos.errors import ScenarioError
from tritonchaos.repository import ModelRepository

CONFIG = b'backend: "python"\noutput [{name: "OUTPUT" data_type: TYPE_FP32 dims: [4]}]\n'
FILES: dict[str, bytes | Path] = {"config.pbtxt": CONFIG, "1/model.py": b"m", "1/more/data.bin": b"d"}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A repository with a model of its owner."""
    folder = tmp_path / "server" / "models"
    (folder / "theirs" / "1").mkdir(parents=True)
    (folder / "theirs" / "config.pbtxt").write_bytes(CONFIG)
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_ours_are_put_in_and_taken_out_and_nothing_else_is_touched(theirs: Path, tmp_path: Path) -> None:
    before = everything(tmp_path / "server")
    repository = ModelRepository(theirs, tmp_path / "archive", shared=True)
    repository.add("ours", FILES)
    repository.edit_config("ours", {"output[0].data_type": "TYPE_INT32"})
    repository.restore("ours")
    repository.keep("end")
    assert (theirs / "ours" / "1" / "model.py").read_bytes() == b"m"
    assert repository.models() == ["ours"]
    repository.withdraw()
    repository.withdraw()
    assert everything(tmp_path / "server") == before
    assert sorted(path.name for path in (tmp_path / "server").iterdir()) == ["models"]
    assert b"theirs" not in b"".join(everything(tmp_path / "archive").values())


def test_models_of_others_cannot_be_changed_or_replaced(theirs: Path, tmp_path: Path) -> None:
    repository = ModelRepository(theirs, tmp_path / "archive", shared=True)
    with pytest.raises(ScenarioError, match="is in the repository already"):
        repository.add("theirs", FILES)
    with pytest.raises(ScenarioError, match="is not ours"):
        repository.edit_config("theirs", {"max_batch_size": 1})
    with pytest.raises(ScenarioError, match="is not ours"):
        repository.delete_file("theirs", "config.pbtxt")
    repository.withdraw()
    assert (theirs / "theirs" / "config.pbtxt").read_bytes() == CONFIG


def test_what_is_sent_is_the_edited_copy(tmp_path: Path) -> None:
    repository = ModelRepository(tmp_path / "models", tmp_path / "archive", sends_files=True)
    repository.add("ident", FILES)
    assert repository.model_files("ident") == ("1/model.py", "1/more/data.bin")
    repository.edit_config("ident", {"output[0].data_type": "TYPE_INT32"})
    told = json.loads(repository.config_json("ident"))
    assert told["output"] == [{"name": "OUTPUT", "data_type": "TYPE_INT32", "dims": ["4"]}]


def test_a_config_that_is_broken_on_purpose_is_sent_as_it_is(tmp_path: Path) -> None:
    repository = ModelRepository(tmp_path / "models", tmp_path / "archive", sends_files=True)
    repository.add("ident", {"config.pbtxt": b"output [ {"})
    assert repository.config_json("ident") == "output [ {"


def test_withdraw_leaves_a_run_of_our_own_alone(tmp_path: Path) -> None:
    repository = ModelRepository(tmp_path / "models", tmp_path / "archive")
    repository.add("ident", FILES)
    repository.withdraw()
    assert repository.models() == ["ident"]
