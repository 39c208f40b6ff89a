"""The samples of one metric as two columns, of which a pair is made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True, slots=True)
class SampleSeries(Sequence[tuple[int, int]]):
    """(t_ns, value) pairs in the order of time, shape [samples, 2].

    Attributes:
        times_ns: Since the run's start, shape [samples].
        values: Shape [samples].
    """

    times_ns: Sequence[int]
    values: Sequence[int]

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, at: int) -> tuple[int, int]: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[int, int]]: ...

    def __getitem__(self, at: int | slice) -> tuple[int, int] | Sequence[tuple[int, int]]:
        if isinstance(at, slice):
            return SampleSeries(self.times_ns[at], self.values[at])
        return self.times_ns[at], self.values[at]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.times_ns, self.values, strict=True)


def as_series(pairs: Sequence[tuple[int, int]]) -> SampleSeries:
    """Return the columns of samples, which hand-made histories have as pairs."""
    if isinstance(pairs, SampleSeries):
        return pairs
    return SampleSeries([t_ns for t_ns, _ in pairs], [value for _, value in pairs])
