"""Columns come back as they were, whatever is in them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tritonchaos.store.column_packing import pack_column, unpack_column

SMALL = st.none() | st.integers(-300, 300)
ANY = st.none() | st.integers(-(2**63), 2**63 - 1)


@given(st.lists(SMALL, max_size=30) | st.lists(ANY, max_size=30))
@example([2**63 - 1, -(2**63), None, 0])
@example([])
@example([None, None])
def test_a_column_comes_back_as_it_was(numbers: list[int | None]) -> None:
    column = unpack_column(pack_column(numbers))
    assert [column.at(place) for place in range(len(column.values))] == numbers
    assert (column.has is None) is (None not in numbers)


def test_what_does_not_change_takes_next_to_nothing() -> None:
    assert len(pack_column([53] * 1024)) < 32
    assert len(pack_column(list(range(1024)))) < 32


@pytest.mark.parametrize(
    "packed", [b"", b"\x02q", b"\x02qabc", b"\x03\x71\x05abcde", b"\x02zx\x9c\x03\x00\x00\x00\x00\x01"]
)
def test_damage_is_told(packed: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        unpack_column(packed)
