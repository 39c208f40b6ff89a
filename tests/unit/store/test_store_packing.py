import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonchaos.store.packing import (
    Cursor,
    squeeze,
    unsqueeze,
    write_count,
    write_gapped_series,
    write_integer,
    write_series,
)

integers = st.integers(min_value=-(2**70), max_value=2**70)


@given(st.integers(min_value=0, max_value=2**80), integers, st.lists(integers), st.lists(st.none() | integers))
def test_numbers_and_series_come_back_in_order(count, number, series, gapped):
    out = bytearray()
    write_count(count, out)
    write_integer(number, out)
    write_series(series, out)
    write_gapped_series(gapped, out)
    packed = Cursor(bytes(out))
    assert [packed.count(), packed.integer(), packed.series(), packed.gapped_series()] == [
        count,
        number,
        series,
        gapped,
    ]
    assert packed.is_at_end


def test_a_flat_series_takes_one_byte_for_each_further_reading():
    short, longer = bytearray(), bytearray()
    write_series([7 << 30] * 10, short)
    write_series([7 << 30] * 110, longer)
    assert len(longer) - len(short) == 100


def test_bytes_that_end_early_are_an_index_error():
    out = bytearray()
    write_series([1, 2, 3], out)
    with pytest.raises(IndexError):
        Cursor(bytes(out[:-1])).series()
    with pytest.raises(IndexError, match="5 bytes announced, 2 left"):
        Cursor(b"ab").take(5)


@given(st.binary(max_size=400))
def test_squeezing_is_undone(body):
    assert unsqueeze(squeeze(body)) == body


def test_squeezing_makes_repetition_small_and_never_costs_more_than_its_mark():
    assert len(squeeze(b"ident" * 200)) < 50
    assert len(squeeze(bytes(range(256)))) == 257


def test_foreign_bytes_are_a_value_error():
    with pytest.raises(ValueError, match="mark"):
        unsqueeze(b"\x07abc")
    with pytest.raises(ValueError):
        unsqueeze(b"\x01abc")
