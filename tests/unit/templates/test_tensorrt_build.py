"""The identity engine is really built, with TensorRT or TensorRT-RTX, whichever is installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tritonchaos.errors import TemplateError
from tritonchaos.templates import Machine, find_template
from tritonchaos.templates.building import Built, build_model_file, find_builder

LIBRARIES = [name for name in ("tensorrt", "tensorrt_rtx") if find_spec(name)]
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="neither tensorrt nor tensorrt_rtx is installed")

IDENTITY = find_template("identity")
SCRIPT = IDENTITY.folder / "tensorrt" / "build.py"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(tmp_path))
    if find_builder(SCRIPT).library == "tensorrt" and find_builder(SCRIPT).device == "cpu":
        pytest.skip("TensorRT builds on a GPU only")
    return tmp_path


def build(datatype: str = "FP32", dims: tuple[int, ...] = (16,), max_batch_size: int = 0) -> Built:
    parameters = {"datatype": datatype, "dims": list(dims), "max_batch_size": max_batch_size}
    return build_model_file(SCRIPT, "model.plan", parameters)


def shapes(built: Built) -> dict[str, list[int]]:
    return {tensor["name"]: tensor["dims"] for tensor in built.facts["tensors"]}


def test_the_builder_is_told_with_version_and_device() -> None:
    builder = find_builder(SCRIPT)
    assert builder.library in LIBRARIES
    assert builder.version.split(".")[0].isdigit()
    assert builder.device


@pytest.mark.parametrize(
    ("changes", "shape"),
    [
        ({}, [16]),
        ({"dims": (16777216,)}, [16777216]),
        ({"dims": (3, -1)}, [3, -1]),
        ({"dims": (4,), "max_batch_size": 8}, [-1, 4]),
        ({"dims": (-1,), "max_batch_size": 2}, [-1, -1]),
    ],
)
def test_a_plan_has_the_inputs_and_outputs_that_were_asked_for(changes: dict[str, Any], shape: list[int]) -> None:
    built = build(**changes)
    assert built.file.stat().st_size > 1000
    assert shapes(built) == {"INPUT": shape, "OUTPUT": shape}


@pytest.mark.parametrize("datatype", ["FP16", "BF16", "INT8", "INT32", "INT64", "UINT8", "BOOL"])
def test_every_datatype_of_tensorrt_is_built(datatype: str) -> None:
    first, second = build(datatype).facts["tensors"]
    assert first["datatype"] == second["datatype"]


def test_a_datatype_that_tensorrt_lacks_is_said() -> None:
    with pytest.raises(TemplateError, match="TensorRT has no datatype FP64"):
        build("FP64")


def test_the_plan_is_served_as_a_tensorrt_model_and_taken_from_the_cache(cache: Path) -> None:
    served = IDENTITY.serve("ident", {"dims": [4]}, "tensorrt")
    assert served.needs_gpu
    assert set(served.files) == {"config.pbtxt", "1/model.plan"}
    config = served.files["config.pbtxt"]
    assert isinstance(config, bytes)
    assert b'backend: "tensorrt"' in config
    assert IDENTITY.serve("ident", {"dims": [4]}, "tensorrt").files == served.files
    assert len(list((cache / "models").iterdir())) == 1
    assert not {"tensorrt", "tensorrt_rtx"} & set(sys.modules), "the library stays in the process that built"


@pytest.mark.skipif(LIBRARIES != ["tensorrt_rtx"], reason="needs a Python with TensorRT-RTX alone")
def test_a_plan_of_tensorrt_rtx_is_never_chosen() -> None:
    machine = Machine(frozenset({"tensorrt"}), has_gpu=True, tensorrt_version="1.7.1")
    with pytest.raises(TemplateError, match="only tensorrt_rtx"):
        IDENTITY.choose_variant(machine, "tensorrt")
