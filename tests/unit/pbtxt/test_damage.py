"""Damage on purpose: never a valid config, always the same from the same seed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonchaos.errors import ConfigTextError
from tritonchaos.pbtxt import DAMAGES, damage, parse

CONFIG = """\
name: "ident"
max_batch_size: 8
input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ 16, -1 ] } ]
output { name: 'OUTPUT' data_type: TYPE_FP32 dims: 16 } # a comment
instance_group < count: 2 kind: KIND_CPU >
parameters { key: "a" value { string_value: "{" } }
dynamic_batching { preferred_batch_size: [ 4 ] }
"""


@given(st.sampled_from(sorted(DAMAGES)), st.integers(0, 1000))
def test_breaks_the_config_and_does_so_the_same_way_again(kind, seed):
    damaged = damage(CONFIG, kind, Random(seed))
    assert damaged == damage(CONFIG, kind, Random(seed))
    with pytest.raises(ConfigTextError):
        parse(damaged)


@pytest.mark.parametrize("kind", sorted(DAMAGES))
def test_chooses_different_places(kind):
    assert len({damage(CONFIG, kind, Random(seed)) for seed in range(40)}) > 2


def test_only_the_unknown_field_is_left_to_a_newer_triton():
    assert parse(damage(CONFIG, "unknown_field", Random(1)), allow_unknown_fields=True) == parse(CONFIG)


def test_says_which_kinds_there_are_and_what_is_lacking():
    with pytest.raises(ConfigTextError, match="nearest: drop_brace"):
        damage(CONFIG, "drop_braces", Random(0))
    with pytest.raises(ConfigTextError, match="lacks an enum value"):
        damage('name: "a"', "unknown_enum", Random(0))
