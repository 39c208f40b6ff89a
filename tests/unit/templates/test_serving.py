from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tritonchaos.errors import TemplateError
from tritonchaos.native import missing_compiler
from tritonchaos.templates import Machine, ModelTemplate, Tensor, find_template, template_names

LOCAL = Machine(backends=frozenset({"python"}), has_gpu=False, c_compiler=True)
TENSORRT = Machine(backends=frozenset({"python", "tensorrt"}), has_gpu=True, c_compiler=True)


@pytest.fixture
def identity() -> ModelTemplate:
    return find_template("identity")


def write_template(folder: Path, text: str, **files: str) -> ModelTemplate:
    root = folder / "double"
    root.mkdir(exist_ok=True)
    (root / "template.yaml").write_text(text)
    for name, content in {"config.pbtxt": 'backend: "${backend}"\n', **files}.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return find_template("double", [folder])


DOUBLE = """
template: double
inputs: [{name: X, datatype: FP32, dims: [2]}]
outputs: [{name: Y, datatype: "${to}", dims: [2], expected: 2 * X}]
parameters: {to: {type: datatype, default: FP64}, note: {type: text, default: none}}
variants: {mine: {backend: mine}, other: {backend: other}}
"""


# --- finding ----------------------------------------------------------------------------------------


def test_identity_is_shipped() -> None:
    assert "identity" in template_names()


def test_an_unknown_template_names_the_nearest() -> None:
    with pytest.raises(TemplateError, match="no model template 'identiy'") as caught:
        find_template("identiy")
    assert "did you mean 'identity'?" in caught.value.hint


@pytest.mark.parametrize("name", ["../identity", "/etc", "", "identity/planted"])
def test_a_name_never_leads_out_of_the_folders(name: str) -> None:
    with pytest.raises(TemplateError, match="no model template"):
        find_template(name)


def test_own_folders_go_first(tmp_path: Path) -> None:
    write_template(tmp_path, DOUBLE)
    (tmp_path / "identity").mkdir()
    (tmp_path / "identity/template.yaml").write_text(DOUBLE.replace("double", "identity"))
    assert {"double", "identity"} <= set(template_names([tmp_path]))
    assert find_template("identity", [tmp_path]).variants == ("mine", "other")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("double", "triple", "expected its folder's name 'double'"),
        ("variants:", "variant:", "variants: Field required"),
        ("backend: mine", "backend: mine, speed: 3", "variants.mine.speed: Extra inputs"),
        ("type: text", "type: colour", "parameters.note.type"),
        ("template: double", "template: [", "cannot read"),
    ],
)
def test_a_wrong_template_file_is_named_with_the_place(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    with pytest.raises(TemplateError) as caught:
        write_template(tmp_path, DOUBLE.replace(old, new))
    assert complaint in str(caught.value)
    assert "template.yaml" in str(caught.value)


# --- choosing ---------------------------------------------------------------------------------------


def test_planted_is_chosen_on_a_plain_server(identity: ModelTemplate) -> None:
    assert identity.choose_variant(LOCAL, None) == ("planted", (("tensorrt", "no GPU"),))


def test_python_is_chosen_without_a_compiler(identity: ModelTemplate) -> None:
    machine = Machine(frozenset({"python"}), has_gpu=False, c_compiler=False)
    chosen, skipped = identity.choose_variant(machine, None)
    assert chosen == "python"
    assert dict(skipped)["planted"] == "no C compiler"


def test_a_stand_in_is_never_chosen_where_the_server_brings_tensorrt(identity: ModelTemplate) -> None:
    with pytest.raises(TemplateError) as caught:
        identity.choose_variant(TENSORRT, None)
    assert "tensorrt: " in caught.value.message
    assert "variant: planted" in caught.value.hint


def test_planted_gpu_is_chosen_only_by_name(identity: ModelTemplate) -> None:
    machine = Machine(frozenset(), has_gpu=True, c_compiler=True)
    # Nothing but planted_gpu has the parameter `kind`.
    with pytest.raises(TemplateError, match="planted_gpu: it is taken only by name"):
        identity.choose_variant(machine, None, {"kind": "KIND_CPU"})
    assert identity.choose_variant(machine, "planted_gpu") == ("planted_gpu", ())
    with pytest.raises(TemplateError, match="no GPU"):
        identity.choose_variant(LOCAL, "planted_gpu")


def test_planted_gpu_needs_device_readings(identity: ModelTemplate) -> None:
    if why := missing_compiler():
        pytest.skip(why)
    served = identity.serve("m", {"plant": [{"what": "device_bytes", "bytes": "2MiB"}]}, "planted_gpu")
    assert served.needs_gpu
    config = as_bytes(served.files["config.pbtxt"]).decode()
    assert "kind: KIND_GPU" in config
    assert r'string_value: "[{\"what\":\"device_bytes\",\"bytes\":2097152}]"' in config


@pytest.mark.parametrize("variant", ["planted", "python"])
def test_a_stand_in_may_be_named(identity: ModelTemplate, variant: str) -> None:
    assert identity.choose_variant(TENSORRT, variant) == (variant, ())


@pytest.mark.parametrize(
    ("machine", "forced", "why"),
    [
        (LOCAL, "tensorrt", "no GPU"),
        (Machine(frozenset(), has_gpu=False, c_compiler=True), "python", "no backend python"),
        (Machine(frozenset({"python"}), has_gpu=False, c_compiler=False), "planted", "no C compiler"),
        (LOCAL, "plantd", "no variant 'plantd'"),
    ],
)
def test_a_named_variant_has_no_fallback(identity: ModelTemplate, machine: Machine, forced: str, why: str) -> None:
    with pytest.raises(TemplateError, match=why):
        identity.choose_variant(machine, forced)


def test_nothing_is_chosen_where_nothing_can_be_served(identity: ModelTemplate) -> None:
    with pytest.raises(TemplateError, match="no variant"):
        identity.choose_variant(Machine(frozenset(), has_gpu=True, c_compiler=False), None)


def test_a_variant_that_would_ignore_a_parameter_is_passed_over(identity: ModelTemplate) -> None:
    chosen, skipped = identity.choose_variant(LOCAL, None, {"leave_temp_bytes_per_failed_load": "1MiB"})
    assert chosen == "python"
    assert "leave_temp_bytes_per_failed_load" in dict(skipped)["planted"]


BUILT = """
template: double
inputs: [{name: X, datatype: FP32, dims: [2]}]
outputs: [{name: Y, datatype: FP32, dims: [2]}]
variants: {tensorrt: {backend: tensorrt, build: build.py, file: model.plan}, other: {backend: other}}
"""
IDENTIFY = 'def identify(): return {{"library": "{}", "version": "{}", "device": "cpu"}}'


@pytest.mark.parametrize(
    ("library", "version", "server", "why"),
    [
        ("tensorrt", "10.13.3.9", "10.13.3", None),
        ("tensorrt", "10.13.2.6", "10.13.3", "TensorRT 10.13.2.6 is installed here, but the server has 10.13.3"),
        ("tensorrt", "10.13.3.9", None, "which TensorRT the server has is not known"),
        ("tensorrt_rtx", "1.7.1.116", "1.7.1", "only tensorrt_rtx 1.7.1.116 is installed here"),
    ],
)
def test_a_plan_is_served_only_by_the_tensorrt_that_built_it(
    tmp_path: Path, library: str, version: str, server: str | None, why: str | None
) -> None:
    template = write_template(tmp_path, BUILT, **{"build.py": IDENTIFY.format(library, version)})
    machine = Machine(frozenset({"tensorrt"}), has_gpu=True, tensorrt_version=server)
    chosen, skipped = template.choose_variant(machine)
    assert chosen == ("tensorrt" if why is None else "other")
    assert [reason.startswith(why or "") for _, reason in skipped] == ([] if why is None else [True])
    if why is not None:
        with pytest.raises(TemplateError, match=why):
            template.choose_variant(machine, "tensorrt")


def test_without_the_library_the_variant_says_so(tmp_path: Path) -> None:
    template = write_template(tmp_path, BUILT, **{"build.py": "def identify(): raise SystemExit('no such library')"})
    machine = Machine(frozenset({"tensorrt"}), has_gpu=True, tensorrt_version="10.13.3")
    assert template.choose_variant(machine) == ("other", (("tensorrt", "no such library"),))


def test_a_server_of_unknown_backends_serves_what_is_named(identity: ModelTemplate) -> None:
    unknown = Machine(backends=None, has_gpu=False, c_compiler=True)
    assert identity.choose_variant(unknown, "python") == ("python", ())


# --- parameters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"dtype": "FP32"}, "no parameter 'dtype'"),
        ({"datatype": "FP23"}, "did you mean 'FP32'"),
        ({"datatype": "TYPE_FP32"}, "expected a datatype"),
        ({"dims": 3}, "expected dims such as"),
        ({"dims": []}, "expected dims such as"),
        ({"dims": [3, 0]}, "found 0 in the dims"),
        ({"dims": [True]}, "found True in the dims"),
        ({"max_batch_size": -1}, "not negative"),
        ({"max_batch_size": "8"}, "found '8'"),
        ({"retain_host_bytes_per_failed_load": "1 parsec"}, "expected a size in bytes"),
    ],
)
def test_wrong_parameters_are_refused(identity: ModelTemplate, parameters: dict[str, object], complaint: str) -> None:
    with pytest.raises(TemplateError, match=complaint):
        identity.serve("m", parameters, "python")


def test_an_unknown_parameter_names_the_nearest_and_all(identity: ModelTemplate) -> None:
    with pytest.raises(TemplateError) as caught:
        identity.serve("m", {"dim": [3]}, "python")
    assert "did you mean 'dims'?" in caught.value.hint
    assert "max_batch_size" in caught.value.hint


def test_a_parameter_without_effect_is_refused_and_its_default_is_not(identity: ModelTemplate) -> None:
    with pytest.raises(TemplateError, match="'retain_host_bytes_per_failed_load' has no effect"):
        identity.serve("m", {"retain_host_bytes_per_failed_load": 1}, "python")
    assert identity.serve("m", {"retain_host_bytes_per_failed_load": "0 MiB"}, "python").variant == "python"


# --- serving ----------------------------------------------------------------------------------------


def test_parameters_reach_the_configuration_and_the_engine(identity: ModelTemplate) -> None:
    parameters = {"datatype": "BYTES", "dims": [-1, 3], "max_batch_size": 4, "leave_shm_bytes_per_good_load": "2KiB"}
    served = identity.serve("m", parameters, "python")
    config = as_bytes(served.files["config.pbtxt"]).decode()
    assert "data_type: TYPE_STRING" in config
    assert "dims: [-1, 3]" in config
    assert "max_batch_size: 4" in config
    assert 'string_value: "2048"' in config
    engine = json.loads(as_bytes(served.files["1/engine.json"]))
    assert engine["max_batch_size"] == 4
    assert engine["inputs"] == [{"name": "INPUT", "datatype": "BYTES", "dims": [-1, 3]}]
    assert set(served.files) == {"config.pbtxt", "1/engine.json", "1/model.py"}
    assert served.inputs == (Tensor("INPUT", "BYTES", (-1, 3)),)
    assert served.outputs == (Tensor("OUTPUT", "BYTES", (-1, 3)),)
    assert not served.needs_gpu


def test_files_of_the_variant_lie_over_those_of_the_template(tmp_path: Path) -> None:
    template = write_template(
        tmp_path,
        DOUBLE,
        **{
            "labels.txt": "${kept}",
            "mine__labels.txt": "mine",
            "mine__1__m.json": '"${note}"',
            "other__1__o.txt": "no",
        },
    )
    mine, other = template.serve("m", {"note": 'a "b"'}, "mine"), template.serve("m", {}, "other")
    assert set(mine.files) == {"config.pbtxt", "labels.txt", "1/m.json"}
    assert as_bytes(mine.files["labels.txt"]) == b"mine"
    assert json.loads(as_bytes(mine.files["1/m.json"])) == 'a "b"'
    assert mine.files["config.pbtxt"] == b'backend: "mine"\n'
    assert set(other.files) == {"config.pbtxt", "labels.txt", "1/o.txt"}
    assert as_bytes(other.files["labels.txt"]) == b"${kept}"


def test_an_unknown_placeholder_names_the_file(tmp_path: Path) -> None:
    template = write_template(tmp_path, DOUBLE, **{"config.pbtxt": "${not_there}"})
    with pytest.raises(TemplateError, match=r"config\.pbtxt: there is no parameter 'not_there'"):
        template.serve("m", {}, "mine")


def test_expected_outputs_have_the_declared_datatype(tmp_path: Path) -> None:
    served = write_template(tmp_path, DOUBLE).serve("m", {}, "mine")
    inputs = served.make_inputs(Random(5))
    expected = served.expected(inputs)
    assert expected["Y"].dtype == np.float64
    assert np.array_equal(expected["Y"], (2 * inputs["X"]).astype(np.float64))


def test_inputs_carry_a_batch_dimension_where_the_model_batches(identity: ModelTemplate) -> None:
    served = identity.serve("m", {"dims": [-1, 2], "max_batch_size": 4}, "python")
    shapes = {served.make_inputs(Random(seed))["INPUT"].shape for seed in range(60)}
    assert {shape[0] for shape in shapes} == {1, 2, 3, 4}
    assert {len(shape) for shape in shapes} == {3}
    assert len({shape[1] for shape in shapes}) > 3


def test_inputs_depend_on_the_random_alone(identity: ModelTemplate) -> None:
    served = identity.serve("m", {}, "python")
    assert np.array_equal(served.make_inputs(Random("a"))["INPUT"], served.make_inputs(Random("a"))["INPUT"])
    assert not np.array_equal(served.make_inputs(Random("a"))["INPUT"], served.make_inputs(Random("b"))["INPUT"])


def as_bytes(content: bytes | Path) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()
