"""Samples of the sampling thread, packed in blocks of one second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tritonchaos.errors import StoreError
from tritonchaos.store.interning import Interned, Interner
from tritonchaos.store.packing import Cursor, squeeze, unsqueeze, write_count, write_series

_BLOCK_NS: Final = 1_000_000_000
# A block that is older than this many others is not kept open; what comes late makes another block.
_OPEN_BLOCKS: Final = 3

# Metric -> (t_ns, value) pairs.
_Block = dict[str, list[tuple[int, int]]]


class SampleBlocks:
    """Collects samples by the second; a second that is not over yet is written again when it has grown."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[int, _Block]] = {}
        self._changed: set[int] = set()
        self._count = 0

    def add(self, samples: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Take (t_ns, value) pairs of some metrics."""
        for metric, pairs in samples.items():
            for pair in pairs:
                second = pair[0] // _BLOCK_NS
                if second not in self._open:
                    self._open[second] = (self._count, {})
                    self._count += 1
                self._open[second][1].setdefault(metric, []).append(pair)
                self._changed.add(second)

    def take_changed(self, interner: Interner) -> list[tuple[int, bytes]]:
        """Return the rows to be written or written again, as (row number, packed block)."""
        rows = [(self._open[second][0], pack_block(self._open[second][1], interner)) for second in self._changed]
        self._changed.clear()
        for second in sorted(self._open)[:-_OPEN_BLOCKS]:
            del self._open[second]
        return sorted(rows)


def pack_block(block: _Block, interner: Interner) -> bytes:
    """Pack one block; metrics that were read at the same instants share their stamps."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for metric, pairs in block.items():
        groups.setdefault(tuple(t_ns for t_ns, _ in pairs), []).append(metric)
    out = bytearray()
    for times_ns, metrics in groups.items():
        write_series(times_ns, out)
        write_count(len(metrics), out)
        for metric in metrics:
            write_count(interner.number(metric.encode()), out)
            values = bytearray()
            write_series([value for _, value in block[metric]], values)
            write_count(len(values), out)
            out += values
    return squeeze(bytes(out))


def _series_of(stored: bytes, interned: Interned) -> Iterator[tuple[str, list[int], bytes]]:
    """Yield metric, stamps and packed values; a caller unpacks only the values it wants."""
    try:
        packed = Cursor(unsqueeze(stored))
        while not packed.is_at_end:
            times_ns = packed.series()
            for _ in range(packed.count()):
                metric = interned.text(packed.count())
                yield metric, times_ns, packed.take(packed.count())
    except (ValueError, LookupError) as error:
        raise StoreError(
            f"the samples of this run are damaged: {type(error).__name__}: {error}",
            hint="copy the run directory again, whole",
        ) from error


class StoredSamples(Mapping[str, Sequence[tuple[int, int]]]):
    """Metric -> (t_ns, value) pairs, shape [samples, 2]; a metric is unpacked when it is asked for."""

    def __init__(self, blocks: Sequence[bytes], interned: Interned) -> None:
        self._blocks = blocks
        self._interned = interned
        self._names: tuple[str, ...] | None = None
        self._unpacked: dict[str, tuple[tuple[int, int], ...]] = {}

    def __iter__(self) -> Iterator[str]:
        if self._names is None:
            every = (metric for block in self._blocks for metric, _, _ in _series_of(block, self._interned))
            self._names = tuple(dict.fromkeys(every))
        return iter(self._names)

    def __len__(self) -> int:
        return len(tuple(iter(self)))

    def __getitem__(self, metric: str) -> Sequence[tuple[int, int]]:
        if metric not in self._unpacked:
            if metric not in tuple(iter(self)):
                raise KeyError(metric)
            self._unpacked[metric] = self._unpack(metric)
        return self._unpacked[metric]

    def _unpack(self, wanted: str) -> tuple[tuple[int, int], ...]:
        pairs: list[tuple[int, int]] = []
        for block in self._blocks:
            for metric, times_ns, values in _series_of(block, self._interned):
                if metric == wanted:
                    pairs.extend(zip(times_ns, Cursor(values).series(), strict=True))
        # A sampling thread that was late makes a block out of order.
        return tuple(sorted(pairs, key=lambda pair: pair[0]))
