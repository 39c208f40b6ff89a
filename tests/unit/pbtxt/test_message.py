"""ModelConfig as a message: what is accepted, what an edit does, what an error says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tritonchaos.errors import ConfigTextError
from tritonchaos.pbtxt.message import edit, parse, print_text

IDENTITY = """
name: "ident"
backend: "planted"
input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 16 ] } ]
parameters { key: "retain" value { string_value: "1" } }
"""


def edited(changes):
    return edit(parse(IDENTITY), changes)


def test_prints_back_what_it_parsed():
    message = parse(IDENTITY)
    assert parse(print_text(message)) == message
    assert print_text(parse(print_text(message))) == print_text(message)


def test_prints_map_keys_sorted():
    one = edited({"parameters": {"b": {"string_value": "2"}, "a": {"string_value": "1"}}})
    other = edited({"parameters": {"a": {"string_value": "1"}, "b": {"string_value": "2"}}})
    assert print_text(one) == print_text(other)


@pytest.mark.parametrize(
    ("path", "value", "read"),
    [
        ("max_batch_size", 8, lambda m: m.max_batch_size),
        ("name", "other", lambda m: m.name),
        ("input[0].dims", [1, 2], lambda m: list(m.input[0].dims)),
        ("input[0].dims[0]", 3, lambda m: m.input[0].dims[0]),
        ("dynamic_batching.preferred_batch_size[0]", 4, lambda m: m.dynamic_batching.preferred_batch_size[0]),
        ("instance_group[0].count", 2, lambda m: m.instance_group[0].count),
        ('parameters["retain"].string_value', "2", lambda m: m.parameters["retain"].string_value),
        ("parameters['it\\'s'].string_value", "x", lambda m: m.parameters["it's"].string_value),
        ("version_policy.specific.versions", [1, 3], lambda m: list(m.version_policy.specific.versions)),
        ("optimization.cuda.graphs", True, lambda m: m.optimization.cuda.graphs),
        (
            "sequence_batching.direct.minimum_slot_utilization",
            0.5,
            lambda m: m.sequence_batching.direct.ByteSize() and 0.5,
        ),
        ('cc_model_filenames["8.0"]', "model.plan", lambda m: m.cc_model_filenames["8.0"]),
        (
            "dynamic_batching.priority_queue_policy[1].max_queue_size",
            5,
            lambda m: m.dynamic_batching.priority_queue_policy[1].max_queue_size,
        ),
    ],
)
def test_sets_what_the_path_names(path, value, read):
    assert read(edited({path: value})) == value


def test_sets_an_enum_by_name():
    assert edited({"output[0].data_type": "TYPE_INT32"}) == parse(
        IDENTITY.replace('"OUTPUT" data_type: TYPE_FP32', '"OUTPUT" data_type: TYPE_INT32')
    )


def test_a_mapping_replaces_a_message_and_a_list_of_them_all():
    message = edited(
        {"output": [{"name": "A", "dims": [1]}, {"name": "B", "data_type": "TYPE_BOOL", "label_filename": None}]}
    )
    assert [output.name for output in message.output] == ["A", "B"]
    assert message.output[0].data_type == 0
    assert edited({"output[0]": {"name": "C"}}).output[0].ByteSize() == len("C") + 2


def test_an_index_equal_to_the_length_appends():
    message = edited({"output[1].name": "SECOND", "input[0].dims[1]": 4})
    assert [output.name for output in message.output] == ["OUTPUT", "SECOND"]
    assert list(message.input[0].dims) == [16, 4]


def test_none_deletes_and_what_is_absent_stays_absent():
    message = edited(
        {
            "backend": None,
            "input[0].dims[0]": None,
            'parameters["retain"]': None,
            'parameters["never"].string_value': None,
            "optimization.cuda.graphs": None,
        }
    )
    assert (message.backend, list(message.input[0].dims), dict(message.parameters)) == ("", [], {})
    assert not message.HasField("optimization")


def test_the_message_given_is_not_changed():
    message = parse(IDENTITY)
    edit(message, {"name": "other"})
    assert message.name == "ident"


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("output[0].data_typ", 1, ["output[0].data_typ", "ModelOutput has no field 'data_typ'", "data_type"]),
        ("instance_groups", [], ["ModelConfig has no field", "nearest: instance_group"]),
        ("output[0].data_type", "FP32", ["DataType has no value 'FP32'", "TYPE_FP32"]),
        ("output[0].data_type", "TYPE_FP23", ["nearest: TYPE_FP32"]),
        ("output[0].data_type", 11, ["found 11 (int)", "name of a DataType"]),
        ("output[2].name", "x", ["output[2]", "list of 1", "at most 1"]),
        ("output[1]", None, ["list of 1", "below 1"]),
        ("input[0].dims[3]", 1, ["input[0].dims[3]", "list of 1"]),
        ("optimization.execution_accelerators.gpu_execution_accelerator[1].name", "x", ["[1]", "list of 0"]),
        ("output.name", "x", ["output is a list", "output[0].name"]),
        ("parameters.retain", "x", ["parameters is a map", 'parameters["KEY"]']),
        ("parameters[0].string_value", "x", ["is a map", "a key in quotes"]),
        ('output["OUTPUT"].name', "x", ["is a list", "expected an index"]),
        ("max_batch_size[0]", 1, ["is not repeated"]),
        ("name.first", "x", ["name is a single value"]),
        ("max_batch_size", "8", ["found '8' (str)", "an integer from -2147483648 to 2147483647"]),
        ("max_batch_size", True, ["found True (bool)", "an integer"]),
        ("max_batch_size", 2**31, ["an integer from"]),
        ("optimization.cuda.graphs", 1, ["found 1 (int)", "true or false"]),
        ("name", 3, ["found 3 (int)", "a string"]),
        ("name", "\ud800", ["UTF-8"]),
        ("input[0].dims", 3, ["input[0].dims", "found 3 (int)", "a list"]),
        ("input[0].dims", [1, "2"], ["input[0].dims[1]", "found '2'"]),
        ("output", [{"name": "A", "dimensions": [1]}], ["output[0].dimensions", "no field", "dims"]),
        ("version_policy", {"all": {}, "latest": {}}, ["found both all and latest"]),
        ("parameters", {"a": "1"}, ['parameters["a"]', "a mapping of ModelParameter's fields"]),
        ("output[0].", 1, ["cannot be read as a field path"]),
        ("", 1, ["cannot be read as a field path"]),
        ("output[-1].name", "x", ["cannot be read as a field path"]),
        ("dynamic_batching.priority_queue_policy['x']", {}, ["found key 'x'", "an integer"]),
    ],
)
def test_says_what_is_wrong_with_an_edit(path, value, words):
    with pytest.raises(ConfigTextError) as caught:
        edited({path: value})
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name: "a"\nnme: "x"', ["line 2, column 1", 'no field named "nme"', "name"]),
        ('name: "a"\n  max_batch_size: many', ["line 2, column 19", "found 'many'"]),
        ("output { data_type: TYPE_FP4096 }", ["column 21", "TYPE_FP4096"]),
        ('name: "a', ["line 1, column 7", "quote"]),
        ("input [ {", ["line 1"]),
        ("max_batch_size: 1 max_batch_size: 2", ["should not have multiple"]),
    ],
)
def test_says_where_a_text_is_wrong(text, words):
    with pytest.raises(ConfigTextError) as caught:
        parse(text)
    for word in words:
        assert word in str(caught.value)


def test_unknown_fields_can_be_allowed():
    assert parse('name: "a" from_the_future { x: 1 }', allow_unknown_fields=True).name == "a"


@pytest.mark.parametrize(
    "order",
    [
        "pbtxt.parse('name: \"a\"'); import tritonclient.grpc.model_config_pb2 as m; m.ModelConfig(name='a')",
        "import tritonclient.grpc.model_config_pb2 as m; pbtxt.parse('name: \"a\"'); m.ModelConfig(name='a')",
        "pbtxt.parse('name: \"a\"'); import sys; assert 'grpc' not in sys.modules, 'grpcio was imported'",
        "import sys; assert 'google.protobuf' not in sys.modules, 'protobuf was imported at start'",
    ],
)
def test_gets_along_with_tritonclients_own_import(order):
    run = subprocess.run(
        [sys.executable, "-c", f"from tritonchaos import pbtxt; {order}"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
