from __future__ import annotations

import pytest

from tritonchaos.pbtxt import line_of

CONFIG = """\
# a model
name: "ident"
input [
  {
    name: "INPUT"
    data_type: TYPE_FP32
  }
]
output [ { name: "OUTPUT"
           data_type: TYPE_INT32 dims: [
             16 ] } ]
parameters: { key: "A" value: { string_value: "1" } }
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("name", 2),
        ("input[0].data_type", 6),
        ("output[0].data_type", 10),
        ("output[0].dims", 10),
        ('parameters["A"].string_value', 12),
        ("input[0].dims", 4),  # not there: where the message begins
        ("max_batch_size", 1),
        ("instance_group[0].count", None),
        ("no_such_field", None),
        ("output[7].dims", None),
    ],
)
def test_the_line_of_a_field(path: str, line: int | None) -> None:
    assert line_of(CONFIG, path) == line


def test_a_text_that_cannot_be_read_has_no_lines() -> None:
    assert line_of('name: "ident', "name") is None
