"""The noise gate: how large a step must be to be believed, and whether the readings can be judged at all."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tritonchaos.growth.readings import Readings
from tritonchaos.post_unload import Channel

_EVERY_READING_UP_TO: Final = 60  # noise is estimated anew at each reading, beyond it with every 25th part more
_SHARE: Final = 25
_LONG: Final = 5_000  # readings from which on it is estimated with every 4th part more
_SHARE_OF_LONG: Final = 4
_SAMPLE: Final = 4096  # most differences that are kept; of more, every other one is dropped
_BLOCK: Final = 12  # cycles whose minimum stands for them when the device is noisy
_SHORT_BLOCKS: Final = (4, 6, 8, 10)  # the same, where the minima of so many cycles already rise evenly
_LEAST_MINIMA: Final = 6
_BLOCKS_FROM: Final = 60  # cycles before blocks are worth more than single readings
# Single host pages are touched for the first time after a hundred cycles and more (seen with Triton 2.51); 16 KiB, the
# quantum of the settle rule, is the smallest step of host memory that means anything.
_HOST_PAGES: Final = 4
_HOST_TAIL: Final = 3  # floor of the last readings that a reclaim may still lower
_TOO_NOISY: Final = 8  # quanta; a device whose smallest believable step is above this is not idle


@dataclass(frozen=True, slots=True)
class NoiseGate:
    """What the noise of a series lets one believe.

    Attributes:
        step: Smallest rise of the floor that is believed, in bytes.
        tail: Number of last cycles whose floor may still change.
        is_noisy: Readings vary by more than their quantum.
        is_too_noisy: The device is so busy that no step can be told from noise.
    """

    step: float
    tail: int
    is_noisy: bool
    is_too_noisy: bool


class NoiseMeter:
    """Measures how readings scatter about their running median of five, which a slow trend does not change.

    At most 4,096 differences are kept, evenly spread over the run, so that neither memory nor cost grows with it.
    """

    def __init__(self, readings: Readings, channel: Channel) -> None:
        self._readings = readings
        self._is_host = channel is Channel.HOST
        self._apart = array("q")
        self._unequal = 0
        self._stride = 1
        self._minima = {length: array("q") for length in (*_SHORT_BLOCKS, _BLOCK)}
        self._estimated_at = 0

    def take(self) -> None:
        """Note the difference that the last reading makes known, and the last block's minimum."""
        count = len(self._readings)
        if count < 5:
            return
        middle = count - 3
        if middle % self._stride == 0:
            five = self._readings.values[count - 5 :]
            apart = five[2] - sorted(five)[2]
            self._apart.append(apart)
            self._unequal += apart != 0
            if len(self._apart) > _SAMPLE:
                self._thin_out()
        if not self._is_host:
            self._note_minima(count - 1)

    def _note_minima(self, count: int) -> None:
        smooth = self._readings.smooth
        for length, minima in self._minima.items():
            if count % length == 0:
                minima.append(min(smooth(at) for at in range(count - length, count)))

    def _thin_out(self) -> None:
        self._apart = self._apart[::2]
        self._stride *= 2
        self._unequal = sum(apart != 0 for apart in self._apart)

    def is_due(self) -> bool:
        """Say whether the noise is to be estimated anew; depends on the number of readings alone."""
        count, before = len(self._readings), self._estimated_at
        return count <= _EVERY_READING_UP_TO or count >= before + before // (
            _SHARE if count < _LONG else _SHARE_OF_LONG
        )

    def gate(self, quantum: int) -> NoiseGate:
        """Say what may be believed, from all readings up to now.

        Args:
            quantum: Granularity of the readings, in bytes (1 for counts).
        """
        count = self._estimated_at = len(self._readings)
        spread = self._host_spread() if self._is_host else self._device_spread()
        is_noisy = 3 * spread > quantum
        if self._is_host:
            return NoiseGate(max(_HOST_PAGES * quantum, 4 * spread), _HOST_TAIL, is_noisy, False)
        step, tail = max(quantum, 3 * spread), _HOST_TAIL if is_noisy else 0
        if not is_noisy:
            return NoiseGate(step, tail, is_noisy, step > _TOO_NOISY * quantum)
        for length in _SHORT_BLOCKS:
            if _rise_evenly(self._minima[length], quantum):
                return NoiseGate(quantum, length, is_noisy, False)
        if count >= _BLOCKS_FROM:
            by_blocks = 3 * _spread_of_rises(self._minima[_BLOCK])
            if by_blocks < step:
                step, tail = max(quantum, by_blocks), _BLOCK
        return NoiseGate(step, tail, is_noisy, step > _TOO_NOISY * quantum)

    def _device_spread(self) -> float:
        """Return the standard deviation of the differences, from their 0.70-quantile (1.036 sigma of a normal).

        On the device most differences are exactly 0; this quantile stays robust, yet sees noise that a median would
        call 0.
        """
        rank = min(len(self._apart) - 1, int(0.70 * len(self._apart)))
        if rank < len(self._apart) - self._unequal:
            return 0.0
        return sorted(map(abs, self._apart))[rank] / 1.036

    def _host_spread(self) -> float:
        """Return the standard deviation of the differences, from their median absolute deviation (1.4826 MAD)."""
        if 2 * self._unequal < len(self._apart) or not self._apart:
            return 0.0
        middle = median(self._apart)
        return 1.4826 * median([abs(apart - middle) for apart in self._apart])


def _rise_evenly(minima: Sequence[int], quantum: int) -> bool:
    """Say whether the rises between block minima differ by no more than a quantum, but for the one farthest off."""
    if len(minima) < _LEAST_MINIMA:
        return False
    rises = _rises(minima)
    return max(rises) - min(rises) <= quantum


def _rises(minima: Sequence[int]) -> list[int]:
    """Return the rises between block minima, without the one farthest from the rest."""
    rises = [after - before for before, after in itertools.pairwise(minima)]
    middle = median(rises)
    rises.remove(max(rises, key=lambda rise: abs(rise - middle)))
    return rises


def _spread_of_rises(minima: Sequence[int]) -> float:
    """Return the standard deviation of the rises between block minima, without the one farthest from the rest."""
    rises = [after - before for before, after in itertools.pairwise(minima)]
    if len(rises) < 3:
        return math.inf
    middle = median(rises)
    rises.remove(max(rises, key=lambda rise: abs(rise - middle)))
    return deviation(rises)


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two middle ones."""
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample of two or more; `statistics.stdev` is a hundred times slower."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
