"""The list of pins: read, extended, never changed silently."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tritonchaos.errors import UsageError
from tritonchaos.pins import Pin, full_reference, read_pins, write_pins
from tritonchaos.shipped import shipped_folder

A, B = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
LIST = f"""# why
images:
  - {{image: "x/server:1", digest: "{A}"}}  # kept
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "images.yaml"
    path.write_text(LIST)
    return path


def test_every_image_that_a_shipped_scenario_pins_is_in_our_list() -> None:
    listed = {f"{pin.image}@{pin.digest}" for pin in read_pins()}
    named = [
        target["docker"]["image"]
        for file in shipped_folder("scenarios").glob("*.yaml")
        for target in yaml.safe_load(file.read_text())["target"]
        if "docker" in target
    ]
    assert named
    assert set(named) <= listed


def test_a_new_pin_is_appended_and_all_else_kept(file: Path) -> None:
    assert write_pins(file, [Pin("x/server:1", A), Pin("x/server:2", B)], replace=False) == [Pin("x/server:2", B)]
    assert file.read_text() == LIST + f'  - {{image: "x/server:2", digest: "{B}"}}\n'
    assert read_pins(file) == [Pin("x/server:1", A), Pin("x/server:2", B)]


def test_a_tag_with_another_digest_is_replaced_only_when_that_is_said(file: Path) -> None:
    with pytest.raises(UsageError, match=f"x/server:1 is pinned to {A}, and now stands for {B}"):
        write_pins(file, [Pin("x/server:2", B), Pin("x/server:1", B)], replace=False)
    assert file.read_text() == LIST
    write_pins(file, [Pin("x/server:1", B)], replace=True)
    assert file.read_text() == LIST.replace(A, B)


def test_a_list_that_is_not_there_is_begun(tmp_path: Path) -> None:
    write_pins(tmp_path / "new.yaml", [Pin("x/server:1", A)], replace=False)
    assert read_pins(tmp_path / "new.yaml") == [Pin("x/server:1", A)]
    assert [path.name for path in tmp_path.iterdir()] == ["new.yaml"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("images: [x]", "expected `images:`"),
        ("other: 1", "expected `images:`"),
        ("images: [{image: x, digest: sha256:1}]", "sha256: and 64 digits"),
        ("images: [", "cannot read"),
    ],
)
def test_a_broken_list_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "broken.yaml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_pins(tmp_path / "broken.yaml")
    assert told in f"{caught.value.message} {caught.value.hint}"


def test_a_tag_alone_is_one_of_nvidias_image() -> None:
    assert str(full_reference("26.07-py3")) == "nvcr.io/nvidia/tritonserver:26.07-py3"
    assert str(full_reference("tritonchaos/tritonserver-cpu:2.51")) == "tritonchaos/tritonserver-cpu:2.51"
    with pytest.raises(UsageError, match="has a digest already"):
        full_reference(f"x/server:1@{A}")
    with pytest.raises(UsageError, match="expected NAME"):
        full_reference("not an image")
