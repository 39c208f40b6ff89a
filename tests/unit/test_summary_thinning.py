from hypothesis import given
from hypothesis import strategies as st

from tritonchaos.summary.thinning import thin

SERIES = st.lists(st.integers(-(2**60), 2**60), max_size=400)


@given(SERIES, st.integers(4, 60))
def test_no_spike_is_lost_and_nothing_is_made_up(values: list[int], at_most: int) -> None:
    kept = thin(values, at_most)
    assert len(kept) <= max(4, at_most)
    assert kept == sorted(set(kept))
    assert all(0 <= place < len(values) for place in kept)
    if values:
        drawn = [values[place] for place in kept]
        assert (min(drawn), max(drawn)) == (min(values), max(values))
        assert (drawn[0], drawn[-1]) == (values[0], values[-1])


@given(SERIES, st.integers(4, 60), st.data())
def test_a_column_of_the_drawing_reaches_as_far_as_all_its_values(values, at_most, data) -> None:
    kept = set(thin(values, at_most))
    stretches = max(1, at_most // 4)
    if len(values) <= at_most:
        assert kept == set(range(len(values)))
        return
    stretch = data.draw(st.integers(0, stretches - 1))
    start, end = stretch * len(values) // stretches, (stretch + 1) * len(values) // stretches
    drawn = [values[place] for place in range(start, end) if place in kept]
    assert (min(drawn), max(drawn)) == (min(values[start:end]), max(values[start:end]))


def test_a_short_series_is_kept_whole() -> None:
    assert thin([5, 1, 9], 4) == [0, 1, 2]
    assert thin([], 4) == []
