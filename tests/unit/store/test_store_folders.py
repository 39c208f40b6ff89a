import re
from datetime import datetime, timedelta, timezone

import pytest

from tritonchaos.errors import StoreError
from tritonchaos.store.folders import new_run_folder, point_latest, prepare_folder


def test_a_run_folder_is_named_by_utc_scenario_and_four_digits(tmp_path):
    now = datetime(2026, 9, 11, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    folder = new_run_folder(tmp_path, "failed-load", now)
    assert re.fullmatch(r"20260910T230203Z-failed-load-[0-9a-f]{4}", folder.name)
    assert folder.parent == tmp_path
    assert not folder.exists()


def test_a_scenario_name_cannot_leave_the_folder(tmp_path):
    assert new_run_folder(tmp_path, "../a b", datetime.now(timezone.utc)).parent == tmp_path


def test_latest_moves_from_run_to_run_and_is_relative(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        point_latest(tmp_path / name)
    assert str((tmp_path / "latest").readlink()) == "two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "one", "two"]


def test_a_folder_called_latest_is_left_alone(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "latest").mkdir()
    with pytest.raises(StoreError, match=r"cannot make .*latest point to one"):
        point_latest(tmp_path / "one")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "one"]


def test_a_folder_with_something_in_it_is_refused_by_name(tmp_path):
    for number in range(7):
        (tmp_path / f"thesis-{number}.tex").touch()
    with pytest.raises(
        StoreError, match=r"not empty; found thesis-0.tex, .*thesis-4.tex and 2 more, expected"
    ) as caught:
        prepare_folder(tmp_path)
    assert "--out" in caught.value.hint
    assert len(list(tmp_path.iterdir())) == 7


def test_a_file_is_refused(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(StoreError, match="is a file, expected a folder"):
        prepare_folder(tmp_path / "out")


def test_missing_parents_are_made(tmp_path):
    prepare_folder(tmp_path / "a" / "b")
    prepare_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
