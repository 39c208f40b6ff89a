"""Edits of the text: the named field changes, every other byte stays."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tritonchaos.errors import ConfigTextError
from tritonchaos.pbtxt import message
from tritonchaos.pbtxt.text import edit

CONFIG = """\
# Identity, as in the report.
name: "ident"   # the folder's name
backend: 'planted'
from_the_future { knob: 3 inner: <> }   # unknown to this ModelConfig
input [
  {
    name: "INPUT"
    data_type: TYPE_FP32
    dims: [ 16 ]
  }
]
output [
  {
    name: "OUTPUT"
    data_type: TYPE_FP32  # as the engine has it
    dims: [ 16 ]
  }
]
version_policy: { latest { num_versions: 1 } }
parameters { key: "retain" value { string_value: "1" } }
"""


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """Lines that only `before` has, and that only `after` has; the others must be the same, in the same order."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return [line.rstrip("\n") for line in old], [line.rstrip("\n") for line in new]


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        (
            {"output[0].data_type": "TYPE_INT32"},
            ["    data_type: TYPE_FP32  # as the engine has it"],
            ["    data_type: TYPE_INT32  # as the engine has it"],
        ),
        ({"backend": "it's"}, ["backend: 'planted'"], ["backend: 'it\\'s'"]),
        (
            {"name": 'a"b\\c\n'},
            ['name: "ident"   # the folder\'s name'],
            ['name: "a\\"b\\\\c\\n"   # the folder\'s name'],
        ),
        ({"max_batch_size": 8}, [], ["max_batch_size: 8"]),
        ({"input[0].optional": True}, [], ["    optional: true"]),
        ({"input[0].dims": [1, 2]}, ["    dims: [ 16 ]"], ["    dims: [ 1, 2 ]"]),
        ({"input[0].dims[1]": 2}, ["    dims: [ 16 ]"], ["    dims: [ 16, 2 ]"]),
        ({"instance_group[0].count": 2}, [], ["instance_group [ { count: 2 } ]"]),
        ({"dynamic_batching.preferred_batch_size": [4]}, [], ["dynamic_batching { preferred_batch_size: [ 4 ] }"]),
        ({'parameters["b"].string_value': "2"}, [], ['parameters { key: "b" value { string_value: "2" } }']),
        (
            {'parameters["retain"].string_value': "2"},
            ['parameters { key: "retain" value { string_value: "1" } }'],
            ['parameters { key: "retain" value { string_value: "2" } }'],
        ),
        (
            {"version_policy.specific.versions": [1, 3]},
            ["version_policy: { latest { num_versions: 1 } }"],
            ["version_policy: { specific { versions: [ 1, 3 ] } }"],
        ),
        ({"backend": None}, ["backend: 'planted'"], []),
        ({"name": None}, ['name: "ident"   # the folder\'s name'], ["# the folder's name"]),
        ({"input[0].dims[0]": None}, ["    dims: [ 16 ]"], []),
        ({"output[1].name": "B"}, ["  }"], ["  },", '  { name: "B" }']),
        (
            {"output[0]": {"name": "OUTPUT", "data_type": "TYPE_INT8", "dims": [16]}},
            ["    data_type: TYPE_FP32  # as the engine has it"],
            ["    data_type: TYPE_INT8  # as the engine has it"],
        ),
    ],
)
def test_changes_the_named_field_and_nothing_else(changes, old, new):
    assert changed_lines(CONFIG, edit(CONFIG, changes)) == (old, new)


@pytest.mark.parametrize(
    "changes",
    [
        {"output[0].data_type": "TYPE_FP32"},
        {"input[0].dims": [16]},
        {"parameters": {"retain": {"string_value": "1"}}},
        {"backend": "planted"},
        {"optimization.cuda.graphs": None},
        {'parameters["never"]': None},
        {},
    ],
)
def test_what_is_there_already_is_not_written_again(changes):
    assert edit(CONFIG, changes) == CONFIG


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ({"output[0].data_type": "TYPE_INT32"}, {"output[0].data_type": "TYPE_FP32"}),
        ({"input[0].dims": [1, 2, 3]}, {"input[0].dims": [16]}),
        ({"input[0].dims": []}, {"input[0].dims": [16]}),
        ({"max_batch_size": 4}, {"max_batch_size": None}),
        ({"output[1].name": "B"}, {"output[1]": None}),
        ({'parameters["b"].string_value': "2"}, {'parameters["b"]': None}),
        ({"instance_group": [{"kind": "KIND_CPU", "count": 2}]}, {"instance_group": None}),
    ],
)
def test_the_way_back_restores_every_byte(there, back):
    away = edit(CONFIG, there)
    assert away != CONFIG
    if there != {"input[0].dims": []}:
        assert edit(away, back) == CONFIG
    assert message.parse(edit(away, back), allow_unknown_fields=True) == message.parse(
        CONFIG, allow_unknown_fields=True
    )


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("", {"name": "a"}, 'name: "a"\n'),
        ('name: "a"', {"max_batch_size": 1}, 'name: "a"\nmax_batch_size: 1'),
        ('name: "a"\nmax_batch_size: 1', {"max_batch_size": None}, 'name: "a"'),
        ('name: "a"\r\n', {"max_batch_size": 1}, 'name: "a"\r\nmax_batch_size: 1\r\n'),
        ("output {}", {"output[0].name": "a"}, 'output {name: "a"}'),
        ("output { }", {"output[0].name": "a"}, 'output { name: "a" }'),
        ("output < name: 'a' >", {"output[0].dims": [1]}, "output < name: 'a' dims: [ 1 ] >"),
        ("output { name: 'a', dims: 1, }", {"output[0].name": None}, "output { dims: 1, }"),
        ('name:"a"backend:"b"platform:"c"', {"backend": None}, 'name:"a" platform:"c"'),
        ("input { dims: 1 dims: 2 }", {"input[0].dims": [1, 3]}, "input { dims: 1 dims: 3 }"),
        ("input { dims: 1 dims: 2 }", {"input[0].dims[2]": 3}, "input { dims: 1 dims: 2 dims: 3 }"),
        ("input { dims: [1,2,3] }", {"input[0].dims[1]": None}, "input { dims: [1,3] }"),
        ("input { dims: [1,2,3] }", {"input[0].dims[2]": None}, "input { dims: [1,2] }"),
        ("input { dims: [1, # one\n 2] }", {"input[0].dims[0]": None}, "input { dims: [ # one\n 2] }"),
        ("input { dims: [ ] }", {"input[0].dims": [5]}, "input { dims: [5 ] }"),
        ("[my.extension/x]: <> name: 'a'", {"name": "b"}, "[my.extension/x]: <> name: 'b'"),
        ("name: 'a' 'b' # c\n", {"name": "d"}, "name: 'd' # c\n"),
        (
            "parameters { key: 'k' }",
            {'parameters["k"].string_value': "v"},
            "parameters { key: 'k' value { string_value: \"v\" } }",
        ),
        ("parameters [ { key: 'a' }, { key: 'b' } ]", {"parameters['a']": None}, "parameters [ { key: 'b' } ]"),
        ("dynamic_batching { }\n", {"sequence_batching": {}}, "sequence_batching { }\n"),
        ('name: "\\303\\244"', {"name": "ä"}, 'name: "\\303\\244"'),
    ],
)
def test_keeps_to_the_layout_that_it_finds(text, changes, expected):
    assert edit(text, changes) == expected


@pytest.mark.parametrize("value", [math.nan, -math.nan, math.inf, -math.inf, 0.1, 1e-30, 3])
def test_writes_every_float(value):
    path = "sequence_batching.direct.minimum_slot_utilization"
    text = edit("", {path: value})
    assert message.parse(text).sequence_batching.direct.minimum_slot_utilization == pytest.approx(value, nan_ok=True)
    assert edit(text, {path: value}) == text


def test_a_long_message_is_laid_out_over_lines_with_the_indentation_around_it():
    text = "output [\n    {\n        name: 'a'\n    }\n]\n"
    inner = {"name": "b" * 30, "data_type": "TYPE_FP32", "dims": [1, 2], "label_filename": "c" * 30}
    lines = edit(text, {"output[1]": inner}).splitlines()
    assert lines[3:6] == ["    },", "    {", f'      name: "{"b" * 30}"']
    assert lines[-2:] == ["    }", "]"]


def test_edits_what_is_known_in_a_text_that_is_no_valid_config():
    text = "output { data_type: TYPE_FP4 name: 'a' }  # of a newer Triton\n"
    assert edit(text, {"output[0].name": "b"}) == text.replace("'a'", "'b'")
    assert edit(text, {"output[0].data_type": "TYPE_FP16"}) == text.replace("TYPE_FP4", "TYPE_FP16")
    with pytest.raises(ConfigTextError, match="list of 1"):
        edit(text, {"output[2].name": "b"})
    with pytest.raises(ConfigTextError, match="below 1"):
        edit(text, {"output[1]": None})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: 'a\n", "line 1, column 7: found a string without its closing quote"),
        ("input [\n  { name: 'a'\n", "line 3, column 1: found the end of the file, expected a field name or '}'"),
        ("name 'a'", "line 1, column 6: found \"'a'\", expected ':' or a message"),
        ("name: ?", "line 1, column 7: found '?'"),
        ("input { dims: [ 1 2 ] }", "found '2', expected ',' or ']'"),
        ("name: }", "found '}', expected a value"),
        ("a {" * 100, "levels of brackets"),
        ("output: 3", "found a scalar, expected the message output[0]"),
    ],
)
def test_says_where_a_broken_text_cannot_be_edited(text, words):
    with pytest.raises(ConfigTextError) as caught:
        edit(text, {"output[0].name": "x"})
    assert words in str(caught.value)


# --- properties over configs in every layout that text format allows --------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
DIMS = st.lists(st.integers(-1, 2**40), max_size=4)
TYPES = st.sampled_from(["TYPE_FP32", "TYPE_INT32", "TYPE_STRING", "TYPE_BOOL"])
TENSORS = st.fixed_dictionaries({}, optional={"name": TEXTS, "data_type": TYPES, "dims": DIMS})
PARAMETERS = st.dictionaries(
    st.sampled_from(["a", "b", "it's", "\n"]), st.fixed_dictionaries({}, optional={"string_value": TEXTS})
)
BATCHING = st.fixed_dictionaries(
    {}, optional={"preferred_batch_size": st.lists(st.integers(1, 9), max_size=3), "preserve_ordering": st.booleans()}
)
FIELDS = {
    "name": TEXTS,
    "max_batch_size": st.integers(0, 64),
    "input": st.lists(TENSORS, max_size=3),
    "output": st.lists(TENSORS, max_size=3),
    "parameters": PARAMETERS,
    "dynamic_batching": BATCHING,
}
CONFIGS = st.fixed_dictionaries({}, optional=FIELDS)
DIMENSION = st.integers(-1, 9)
TENSOR_FIELDS = {
    "": TENSORS,
    ".name": TEXTS,
    ".data_type": TYPES,
    ".dims": DIMS,
    ".dims[0]": DIMENSION,
    ".dims[1]": DIMENSION,
}
PATHS = {
    **FIELDS,
    **{f"{side}[{n}]{end}": of for side in ("input", "output") for n in (0, 1, 2) for end, of in TENSOR_FIELDS.items()},
    'parameters["a"].string_value': TEXTS,
    'parameters["it\'s"].string_value': TEXTS,
    'parameters["b"]': st.fixed_dictionaries({}, optional={"string_value": TEXTS}),
    "dynamic_batching.preferred_batch_size[0]": DIMENSION,
    "dynamic_batching.preserve_ordering": st.booleans(),
    "sequence_batching.max_sequence_idle_microseconds": st.integers(0, 9),
    "sequence_batching.direct.minimum_slot_utilization": st.floats(width=32),
}
CHANGES = st.sampled_from(sorted(PATHS)).flatmap(lambda path: st.tuples(st.just(path), st.none() | PATHS[path]))
BLANKS = st.sampled_from([" ", "\n", "  ", "\n  ", "\t", " # note\n", '\n# note { " \n', "\r\n"])


@st.composite
def config_texts(draw):
    """A valid config in a layout chosen at random: brackets, separators, lists or repeats, blanks, comments."""
    config = message.edit(message.parse(""), draw(CONFIGS))
    pieces = list(_message_pieces(draw, config))
    return "".join(piece + draw(BLANKS) for piece in pieces)


def _message_pieces(draw, parsed):
    for field, value in parsed.ListFields():
        values = list(value) if field.is_repeated else [value]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            values = [field.message_type._concrete_class(key=key, value=value[key]) for key in value]
        if draw(st.booleans()) and field.is_repeated:
            yield from (field.name, ":", "[")
            for index, element in enumerate(values):
                yield from [","] * bool(index)
                yield from _value_pieces(draw, field, element)
            yield "]"
            continue
        for element in values:
            yield field.name
            if field.message_type is None or draw(st.booleans()):
                yield ":"
            yield from _value_pieces(draw, field, element)
            yield draw(st.sampled_from(["", ",", ";"]))


def _value_pieces(draw, field, value):
    if field.message_type is not None:
        opening, closing = draw(st.sampled_from(["{}", "<>"]))
        yield opening
        yield from _message_pieces(draw, value)
        yield closing
    elif field.enum_type is not None:
        yield field.enum_type.values_by_number[value].name
    elif isinstance(value, str):
        yield "'" + "".join(f"\\{byte:03o}" for byte in value.encode()) + "'" if draw(st.booleans()) else _plain(value)
    else:
        yield str(value).lower()


def _plain(value: str) -> str:
    return (
        '"'
        + "".join(c if c.isalnum() and c.isascii() else "".join(f"\\{b:03o}" for b in c.encode()) for c in value)
        + '"'
    )


@settings(max_examples=100, deadline=None)
@given(config_texts(), st.lists(CHANGES, min_size=1, max_size=3))
def test_the_text_says_what_the_message_says(text, changes):
    changes = dict(changes)
    try:
        expected = message.edit(message.parse(text), changes)
    except ConfigTextError as error:
        with pytest.raises(ConfigTextError) as caught:
            edit(text, changes)
        assert str(caught.value) == str(error)
    else:
        found = message.parse(edit(text, changes))
        assert found.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)


@settings(max_examples=50, deadline=None)
@given(config_texts(), st.integers(0, 99), st.integers(0, 99))
def test_a_scalar_goes_and_comes_back_and_no_other_byte_moves(text, old, new):
    text = f"max_batch_size: {old} # first\n" + edit(text, {"max_batch_size": None})
    edited = edit(text, {"max_batch_size": new})
    assert edited == text.replace(f": {old} #", f": {new} #", 1)
    assert edit(edited, {"max_batch_size": old}) == text


@settings(max_examples=50, deadline=None)
@given(config_texts(), CHANGES)
def test_setting_again_what_was_set_changes_nothing(text, change):
    path, value = change
    # None at an index deletes the next one when it is said again.
    assume(value is not None)
    try:
        once = edit(text, {path: value})
    except ConfigTextError:
        assume(False)
    assert edit(once, {path: value}) == once


@settings(max_examples=50, deadline=None)
@given(config_texts(), st.sampled_from(["name", "output[0].name", "input[0].data_type"]))
def test_an_edit_of_a_scalar_keeps_all_comments(text, path):
    assert edit(text, {path: "TYPE_BF16"}).count("# note") == text.count("# note")


@settings(max_examples=50, deadline=None)
@given(config_texts(), st.integers(0, 64))
def test_a_missing_scalar_is_one_line_that_can_be_taken_out_again(text, value):
    text = edit(text, {"max_batch_size": None})
    added = edit(text, {"max_batch_size": value})
    assert added.startswith(text)
    assert added[len(text) :].strip() == f"max_batch_size: {value}"
    assert edit(added, {"max_batch_size": None}) == text
