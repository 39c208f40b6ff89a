import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonchaos.store.packing import write_series
from tritonchaos.store.unpacking import unpack_all_series


def packed(series: list[list[int]]) -> bytes:
    out = bytearray()
    for numbers in series:
        write_series(numbers, out)
    return bytes(out)


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300))))
def test_many_series_come_back(series: list[list[int]]) -> None:
    found = unpack_all_series(packed(series), [len(numbers) for numbers in series])
    assert list(found) == [number for numbers in series for number in numbers]


def test_numbers_of_any_size_come_back() -> None:
    series = [[2**80, -(2**80)], [], [1]]
    assert list(unpack_all_series(packed(series), [2, 0, 1])) == [2**80, -(2**80), 1]


@pytest.mark.parametrize(
    ("damaged", "lengths"),
    [(packed([[1, 2]]), [3]), (packed([[1, 2]]), [2, 0]), (packed([[1, 2**20]])[:-1], [2]), (b"", [1]), (b"\xff", [])],
)
def test_other_bytes_are_refused(damaged: bytes, lengths: list[int]) -> None:
    with pytest.raises((ValueError, IndexError)):
        unpack_all_series(damaged, lengths)
