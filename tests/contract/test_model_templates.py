"""What every model template that comes with tritonchaos must keep, in every variant that this version can serve."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tritonchaos import native
from tritonchaos.errors import TemplateError
from tritonchaos.templates import ServedModel, find_template, template_names
from tritonchaos.templates.tensors import DATATYPES, config_datatype


def variants() -> list[tuple[str, str]]:
    templates = [find_template(name) for name in template_names()]
    return [(template.name, variant) for template in templates for variant in template.variants]


def serve(template: str, variant: str, **parameters: Any) -> ServedModel:
    if find_template(template).read.variants[variant].native and (why := native.missing_compiler()):
        pytest.skip(why)
    try:
        return find_template(template).serve("any", parameters, variant)
    except TemplateError as error:
        if "neither tensorrt nor tensorrt_rtx can be imported" in error.message:
            pytest.skip("no TensorRT module is installed")
        raise


@pytest.fixture(params=variants(), ids="/".join)
def served(request: pytest.FixtureRequest) -> ServedModel:
    return serve(*request.param)


def config_text(served: ServedModel) -> str:
    content = served.files["config.pbtxt"]
    return (content if isinstance(content, bytes) else content.read_bytes()).decode()


def model_config(text: str) -> Any:
    """Parse with Triton's own message definition, which tritonclient ships."""
    pb2 = pytest.importorskip("tritonclient.grpc.model_config_pb2", reason="tritonclient[grpc] is not installed")
    from google.protobuf import text_format

    return text_format.Parse(text, pb2.ModelConfig())


def test_it_says_what_it_is() -> None:
    for name in template_names():
        template = find_template(name)
        assert template.about
        assert all(entry.about for entry in template.read.parameters.values()), name


def test_it_is_served_with_its_defaults_and_makes_its_tensors(served: ServedModel) -> None:
    inputs = served.make_inputs(Random(0))
    expected = served.expected(inputs)
    assert set(inputs) == {tensor.name for tensor in served.inputs}
    assert set(expected) <= {tensor.name for tensor in served.outputs}
    assert {tensor.datatype for tensor in (*served.inputs, *served.outputs)} <= set(DATATYPES)
    for array in (*inputs.values(), *expected.values()):
        assert array.size > 0
        assert array.dtype.kind not in "f" or np.isfinite(array).all()


def test_nothing_is_left_to_fill_in(served: ServedModel) -> None:
    for name, content in served.files.items():
        if isinstance(content, bytes):
            assert not re.search(rb"\$\{", content), name


def test_its_files_stay_below_the_model_directory(served: ServedModel) -> None:
    for name in served.files:
        assert not Path(name).is_absolute()
        assert ".." not in Path(name).parts
    assert any(name.startswith("1/") for name in served.files), "there is no version directory 1"


def test_its_backend_is_there(served: ServedModel) -> None:
    for name, folder in served.backends.items():
        assert (folder / f"libtriton_{name}.so").is_file()


def test_its_configuration_parses_prints_back_and_declares_the_same_tensors(served: ServedModel) -> None:
    from google.protobuf import text_format

    config = model_config(config_text(served))
    assert model_config(text_format.MessageToString(config)) == config
    # A name in the file would have to be the model directory's, which the scenario chooses.
    assert config.name == ""
    assert config.backend == find_template(served.template).read.variants[served.variant].backend
    assert config.max_batch_size == served.max_batch_size
    for declared, tensors in ((config.input, served.inputs), (config.output, served.outputs)):
        datatypes = declared[0].DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number
        found = [(io.name, datatypes[io.data_type].name, tuple(io.dims)) for io in declared]
        assert found == [(tensor.name, config_datatype(tensor.datatype), tensor.dims) for tensor in tensors]


@pytest.mark.parametrize(("template", "variant"), variants())
def test_every_parameter_with_an_effect_reaches_a_file(template: str, variant: str) -> None:
    plain = serve(template, variant)
    others = {"datatype": "INT32", "dims": [5, -1], "int": 7, "bytes": 12345, "text": "other"}
    others["plants"] = [{"what": "fds"}]
    for name, entry in find_template(template).read.parameters.items():
        if entry.only and variant not in entry.only:
            continue
        changed = serve(template, variant, **{name: others[entry.type]})
        assert changed.files != plain.files, name
