import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonchaos.errors import StoreError
from tritonchaos.store.interning import Interned, Interner
from tritonchaos.store.samples import SampleBlocks, StoredSamples

S = 1_000_000_000


def stored(*batches) -> StoredSamples:
    """Each batch is added and then committed."""
    blocks, interner, rows = SampleBlocks(), Interner(), {}
    for batch in batches:
        blocks.add(batch)
        rows.update(blocks.take_changed(interner))
    return StoredSamples([rows[number] for number in sorted(rows)], Interned(dict(interner.take_new())))


def test_samples_come_back_by_metric():
    samples = stored(
        {"host_rss_bytes": [(1, 4096), (S + 1, 8192)], "server_fds": [(1, 9)]}, {"host_rss_bytes": [(S + 2, 4096)]}
    )
    assert sorted(samples) == ["host_rss_bytes", "server_fds"]
    assert list(samples["host_rss_bytes"]) == [(1, 4096), (S + 1, 8192), (S + 2, 4096)]
    assert list(samples["server_fds"]) == [(1, 9)]
    assert "host_pss_bytes" not in samples
    assert len(samples) == 2


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.lists(st.tuples(st.integers(0, 9 * S), st.integers())))))
def test_any_batches_come_back_in_the_order_of_time(batches):
    samples = stored(*batches)
    for metric in "abc":
        pairs = [pair for batch in batches for pair in batch.get(metric, [])]
        assert sorted(samples.get(metric, ())) == sorted(pairs)
        times = [t_ns for t_ns, _ in samples.get(metric, ())]
        assert times == sorted(times)


def test_a_second_that_grows_is_written_again_in_its_place():
    blocks, interner = SampleBlocks(), Interner()
    blocks.add({"a": [(1, 1)]})
    first = blocks.take_changed(interner)
    assert blocks.take_changed(interner) == []
    blocks.add({"a": [(2, 1)]})
    again = blocks.take_changed(interner)
    assert [number for number, _ in first] == [number for number, _ in again] == [0]


def test_a_sample_that_comes_very_late_is_not_lost():
    seconds = [{"a": [(second * S, second)]} for second in range(10)]
    assert list(stored(*seconds, {"a": [(5, 77)]})["a"][:2]) == [(0, 0), (5, 77)]


def test_a_damaged_block_is_a_store_error():
    with pytest.raises(StoreError, match="samples of this run are damaged"):
        list(StoredSamples([b"\x00\xff"], Interned({})))
