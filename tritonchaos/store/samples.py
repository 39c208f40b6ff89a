"""Samples of the sampling thread, packed in blocks of one second."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tritonchaos.errors import StoreError
from tritonchaos.observations.sample_series import SampleSeries
from tritonchaos.store.interning import Interned, Interner
from tritonchaos.store.packing import squeeze, unsqueeze, write_count, write_series
from tritonchaos.store.unpacking import count_at, series_at, unpack_all_series

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


class StoredSamples(Mapping[str, Sequence[tuple[int, int]]]):
    """Metric -> (t_ns, value) pairs, shape [samples, 2]; a metric is unpacked when it is asked for, and not kept.

    Args:
        blocks: Packed blocks; they are read through once, when something is asked for first.
    """

    def __init__(self, blocks: Iterable[bytes], interned: Interned) -> None:
        self._blocks: Iterable[bytes] = blocks
        self._interned = interned
        self._metrics: dict[str, list[_Stretch]] | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __contains__(self, metric: object) -> bool:
        return metric in self._read()

    def __getitem__(self, metric: str) -> SampleSeries:
        stretches = self._read()[metric]
        with _as_damage():
            return _in_order([stretch.series(metric) for stretch in stretches])

    def _read(self) -> Mapping[str, list[_Stretch]]:
        if self._metrics is None:
            with _as_damage():
                self._metrics = _stretches(self._blocks, self._interned)
            self._blocks = ()
        return self._metrics


class _Stretch:
    """Blocks of metrics that were read at the same instants; the stamps are unpacked once for all of them."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self._times_ns = array("q")
        self._lengths = array("I")
        self._packed = {metric: bytearray() for metric in metrics}

    def append(self, times_ns: NDArray[Any], packed: Mapping[str, bytes]) -> None:
        self._times_ns.frombytes(times_ns.tobytes())
        self._lengths.append(len(times_ns))
        for metric, values in packed.items():
            self._packed[metric] += values

    def series(self, metric: str) -> SampleSeries:
        return SampleSeries(self._times_ns, unpack_all_series(bytes(self._packed[metric]), self._lengths))


def _stretches(blocks: Iterable[bytes], interned: Interned) -> dict[str, list[_Stretch]]:
    """Put blocks of the same metrics together; a metric may have several, as samplers come and go."""
    stretches: dict[tuple[str, ...], _Stretch] = {}
    of_metrics: dict[str, list[_Stretch]] = {}
    for block in blocks:
        packed, at = unsqueeze(block), 0
        while at < len(packed):
            times_ns, at = series_at(packed, at)
            values, at = _packed_values(packed, at, interned)
            metrics = tuple(values)
            if metrics not in stretches:
                stretches[metrics] = _Stretch(metrics)
                for metric in metrics:
                    of_metrics.setdefault(metric, []).append(stretches[metrics])
            stretches[metrics].append(times_ns, values)
    return of_metrics


def _packed_values(packed: bytes, at: int, interned: Interned) -> tuple[dict[str, bytes], int]:
    """Read metric -> packed values at a byte; return them and the byte after them."""
    values = {}
    count, at = count_at(packed, at)
    for _ in range(count):
        name, at = count_at(packed, at)
        size, at = count_at(packed, at)
        if at + size > len(packed):
            raise IndexError(f"{size} bytes announced, {len(packed) - at} left")
        values[interned.text(name)] = packed[at : at + size]
        at += size
    return values, at


def _in_order(parts: Sequence[SampleSeries]) -> SampleSeries:
    """Put the parts of a metric together by time; a sampling thread that was late makes a block out of order."""
    import numpy

    times_ns = numpy.concatenate([numpy.asarray(part.times_ns, numpy.int64) for part in parts])
    order = numpy.argsort(times_ns, kind="stable")
    in_order = array("q", times_ns[order].tobytes())
    if all(isinstance(part.values, array) for part in parts):
        values = numpy.concatenate([numpy.asarray(part.values) for part in parts])
        return SampleSeries(in_order, array("q", values[order].tobytes()))
    every = [value for part in parts for value in part.values]
    return SampleSeries(in_order, [every[at] for at in order])


@contextlib.contextmanager
def _as_damage() -> Iterator[None]:
    try:
        yield
    except (ValueError, LookupError, OverflowError) as error:
        raise StoreError(
            f"the samples of this run are damaged: {type(error).__name__}: {error}",
            hint="copy the run directory again, whole",
        ) from error
