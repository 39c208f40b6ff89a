"""Models of the user's own: what is read of them, what they are sent, and that nothing is written there."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tritonchaos import pbtxt
from tritonchaos.errors import ConfigTextError, ScenarioError
from tritonchaos.templates import Machine, Tensor, serve_own

CPU = Machine(backends=frozenset({"python"}), has_gpu=False)
GPU = Machine(backends=frozenset({"python"}), has_gpu=True)
CONFIG = """# by hand
name: "theirs"
backend: "python"
max_batch_size: 8
input [ { name: "A" data_type: TYPE_FP32 dims: [ -1, 3 ] }, { name: "T" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "theirs"
    (model / "1").mkdir(parents=True)
    (model / "2").mkdir()
    (model / "config.pbtxt").write_text(CONFIG)
    (model / "1" / "model.py").write_text("pass")
    (model / "labels.txt").symlink_to(model / "config.pbtxt")
    return model


def test_its_files_are_named_not_read_and_its_name_is_ours(folder: Path):
    before = {path: path.lstat() for path in folder.rglob("*")}
    model = serve_own("mine", folder, CPU)
    assert set(model.files) == {"config.pbtxt", "1/model.py", "2/", "labels.txt"}
    assert model.files["1/model.py"] == folder / "1/model.py"
    config = model.files["config.pbtxt"]
    assert isinstance(config, bytes)
    assert config.decode() == CONFIG.replace("theirs", "mine")
    assert {path: path.lstat() for path in folder.rglob("*")} == before
    assert (model.variant, model.needs_gpu, model.max_batch_size) == ("own", False, 8)


def test_tensors_are_those_of_its_config(folder: Path):
    model = serve_own("theirs", folder, CPU)
    assert model.inputs == (Tensor("A", "FP32", (-1, 3)), Tensor("T", "BYTES", (1,)))
    assert model.outputs == (Tensor("B", "FP32", (-1,)),)
    assert model.files["config.pbtxt"] == folder / "config.pbtxt"


def test_zeros_are_the_smallest_inputs_and_random_ones_come_from_the_seed(folder: Path):
    zeros = serve_own("m", folder, CPU, "zeros").make_inputs(Random(1))
    assert {name: values.shape for name, values in zeros.items()} == {"A": (1, 1, 3), "T": (1, 1)}
    assert not zeros["A"].any() and zeros["T"].tolist() == [[b""]]
    wide = serve_own("m", folder, CPU, "zeros").make_inputs(Random(1), batch=4, shape=(2, 3))
    assert wide["A"].shape == (4, 2, 3)
    model = serve_own("m", folder, CPU)
    assert np.array_equal(model.make_inputs(Random(7))["A"], model.make_inputs(Random(7))["A"])
    assert model.expected(zeros) == {}


def test_inputs_and_outputs_of_files(folder: Path, tmp_path: Path):
    np.savez(tmp_path / "in.npz", A=np.full((2, 1, 3), 5, np.float32), T=np.array([[b"a"], [b"bc"]]))
    np.savez(tmp_path / "out.npz", B=np.array([[1.5], [np.nan]], np.float32))
    model = serve_own("m", folder, CPU, "in.npz", "out.npz", tmp_path)
    inputs = model.make_inputs(Random(1))
    assert inputs["A"].tolist() == [[[5, 5, 5]], [[5, 5, 5]]]
    assert (inputs["T"].dtype, inputs["T"].tolist()) == (np.dtype(object), [[b"a"], [b"bc"]])
    assert model.expected(inputs)["B"].shape == (2, 1)
    with pytest.raises(ScenarioError, match="come from a file"):
        model.make_inputs(Random(1), batch=3)


def test_inputs_as_the_inference_protocol_writes_them(folder: Path, tmp_path: Path):
    entries = [
        {"name": "A", "shape": [1, 1, 3], "datatype": "FP32", "data": [1, 2, 3]},
        {"name": "T", "shape": [1, 1], "datatype": "BYTES", "data": ["ä"]},
    ]
    (tmp_path / "in.json").write_text(json.dumps({"inputs": entries}))
    inputs = serve_own("m", folder, CPU, "in.json", base=tmp_path).make_inputs(Random(1))
    assert (inputs["A"].dtype, inputs["A"].tolist()) == (np.dtype(np.float32), [[[1, 2, 3]]])
    assert inputs["T"].tolist() == [["ä".encode()]]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("in.json", b"{", "cannot be read as inputs"),
        ("in.json", b'{"inputs": [{"name": "A", "shape": [2], "data": [1]}]}', "cannot be read as inputs"),
        (
            "in.json",
            b'{"inputs": [{"name": "Z", "shape": [1], "data": [1]}]}',
            "found tensor 'Z', expected some of",
        ),
        ("in.json", b'{"inputs": []}', "found no tensors"),
        ("in.npz", b"not a zip", "NumPy cannot read"),
        ("in.npz", np.float64, "found A of type float64, expected float32"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(folder: Path, tmp_path: Path, name: str, content: object, told: str):
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        np.savez(tmp_path / name, A=np.zeros(3, np.float64))
    with pytest.raises(ScenarioError) as error:
        serve_own("m", folder, CPU, name, base=tmp_path)
    assert told in error.value.message


def test_without_a_config_it_can_be_loaded_but_not_asked(folder: Path):
    (folder / "config.pbtxt").unlink()
    (folder / "labels.txt").unlink()
    model = serve_own("m", folder, CPU)
    assert set(model.files) == {"1/model.py", "2/"}
    with pytest.raises(ScenarioError, match="names no inputs"):
        model.make_inputs(Random(1))


def test_a_config_that_cannot_be_read_is_told_with_its_file(folder: Path):
    (folder / "config.pbtxt").write_text("max_batch_size: eight")
    with pytest.raises(ConfigTextError, match=r"theirs/config.pbtxt.*"):
        serve_own("m", folder, CPU)


@pytest.mark.parametrize(
    ("changes", "on_cpu", "on_gpu"),
    [
        ({}, False, False),
        ({"instance_group[0].kind": "KIND_GPU"}, True, True),
        ({"backend": "onnxruntime"}, False, True),
        ({"backend": "onnxruntime", "instance_group[0].kind": "KIND_CPU"}, False, False),
        ({"backend": "tensorrt"}, True, True),
        ({"backend": None, "platform": "tensorrt_plan"}, True, True),
        ({"backend": None, "platform": "onnxruntime_onnx"}, False, True),
    ],
)
def test_device_memory_decides_where_the_model_is_put_on_a_gpu(folder: Path, changes, on_cpu: bool, on_gpu: bool):
    (folder / "config.pbtxt").write_text(pbtxt.edit(CONFIG, changes))
    assert (serve_own("m", folder, CPU).needs_gpu, serve_own("m", folder, GPU).needs_gpu) == (on_cpu, on_gpu)


def test_a_folder_that_leads_back_to_itself_is_refused(folder: Path):
    (folder / "1" / "loop").symlink_to(folder)
    with pytest.raises(ScenarioError, match="leads back"):
        serve_own("m", folder, CPU)
