"""Turns raw post-unload readings into a floor that was never given back, and the smallest step to believe in it."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tritonchaos.post_unload import Channel

_BLOCK: Final = 12  # cycles whose minimum stands for them when the device is noisy
_BLOCKS_FROM: Final = 60  # cycles before blocks are worth more than single readings
# Single host pages are touched for the first time after a hundred cycles and more (seen with Triton 2.51); 16 KiB, the
# quantum of the settle rule, is the smallest step of host memory that means anything.
_HOST_PAGES: Final = 4
_HOST_TAIL: Final = 3  # floor of the last readings that a reclaim may still lower
_TOO_NOISY: Final = 8  # quanta; a device whose smallest believable step is above this is not idle


@dataclass(frozen=True, slots=True)
class CleanSeries:
    """A series without one-sample outliers, and how far it can be trusted.

    Attributes:
        smooth: Running median of three, in bytes, shape [cycles].
        floor: Smallest value from this cycle on: what was never given back, in bytes, shape [cycles].
        step: Smallest rise of the floor that is believed, in bytes.
        tail: Number of last cycles whose floor may still change.
        is_noisy: Readings vary by more than their quantum.
        is_too_noisy: The device is so busy that no step can be told from noise.
    """

    smooth: tuple[int, ...]
    floor: tuple[int, ...]
    step: float
    tail: int
    is_noisy: bool
    is_too_noisy: bool


def clean(readings: Sequence[int], quantum: int, channel: Channel) -> CleanSeries:
    """Take outliers away and estimate the noise.

    Args:
        readings: Post-unload readings, oldest first, shape [cycles], at least one.
        quantum: Granularity of the readings, in bytes (1 for counts).
    """
    smooth = _median_of_three(readings)
    spread = _spread(readings, channel)
    is_noisy = 3 * spread > quantum
    host = channel is Channel.HOST
    step = max(_HOST_PAGES * quantum, 4 * spread) if host else max(quantum, 3 * spread)
    tail = _HOST_TAIL if host or is_noisy else 0
    if not host and is_noisy and len(readings) >= _BLOCKS_FROM:
        by_blocks = 3 * _block_spread(smooth)
        if by_blocks < step:
            step, tail = max(quantum, by_blocks), _BLOCK
    return CleanSeries(
        smooth=tuple(smooth),
        floor=tuple(_floor(smooth)),
        step=step,
        tail=tail,
        is_noisy=is_noisy,
        is_too_noisy=not host and step > _TOO_NOISY * quantum,
    )


def _median_of_three(readings: Sequence[int]) -> list[int]:
    if len(readings) < 2:
        return list(readings)
    inner = [sorted(three)[1] for three in zip(readings, readings[1:], readings[2:], strict=False)]
    return [readings[0], *inner, min(readings[-2:])]


def _floor(smooth: Sequence[int]) -> list[int]:
    floor: list[int] = []
    lowest = smooth[-1]
    for value in reversed(smooth):
        lowest = min(lowest, value)
        floor.append(lowest)
    floor.reverse()
    return floor


def _spread(readings: Sequence[int], channel: Channel) -> float:
    """Return the standard deviation of the readings about their running median of five, robustly."""
    if len(readings) < 5:
        return 0.0
    windows = zip(*(readings[shift:] for shift in range(5)), strict=False)
    apart = [value - sorted(five)[2] for value, five in zip(readings[2:-2], windows, strict=False)]
    if channel is Channel.HOST:
        middle = statistics.median(apart)
        return float(1.4826 * statistics.median(abs(value - middle) for value in apart))
    # On the device most differences are exactly 0; their 0.70-quantile (1.036 sigma of a normal) stays robust, yet sees
    # noise that a median would call 0.
    ordered = sorted(abs(value) for value in apart)
    return float(ordered[min(len(ordered) - 1, int(0.70 * len(ordered)))] / 1.036)


def _block_spread(smooth: Sequence[int]) -> float:
    """Return the standard deviation of the rises between block minima, without the one farthest from the rest."""
    minima = [min(smooth[at : at + _BLOCK]) for at in range(0, len(smooth) - _BLOCK + 1, _BLOCK)]
    rises = [after - before for before, after in itertools.pairwise(minima)]
    middle = statistics.median(rises)
    rises.remove(max(rises, key=lambda rise: abs(rise - middle)))
    return statistics.stdev(rises) if len(rises) > 1 else float("inf")
