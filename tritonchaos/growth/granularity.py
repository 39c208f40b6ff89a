"""The quantum of a series: the smallest difference that its readings can show, given or learned."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from tritonchaos.growth.readings import Readings
from tritonchaos.post_unload import Channel
from tritonchaos.units import KIB, MIB

USUAL: Final = {Channel.DEVICE: 2 * MIB, Channel.HOST: 4 * KIB, Channel.COUNT: 1}
_SMALLEST: Final = {Channel.DEVICE: 64 * KIB, Channel.HOST: 4 * KIB, Channel.COUNT: 1}
_LEAST_MOVES: Final = 3  # rises, and falls, that must be seen before a coarser quantum is believed
_SHARE: Final = 0.9  # of the differences that must be multiples of it
_DISTINCT: Final = 256  # differences that are told apart; readings that move in more ways are not coarse
_LEARNS_UP_TO: Final = 240  # readings


class Granularity:
    """Learns the quantum from the differences between readings, unless it is given.

    It starts with what the driver or the system hands out (2 MiB pages on the device, 4 KiB on the host, 1 for counts).
    Finer differences make it finer at once. It is made coarser only by readings that go up and down by multiples of
    something coarser: a leak of 32 MiB per cycle moves in steps of 32 MiB too, but never down.

    Args:
        given: The quantum, if it is known; then nothing is learned.
        finest: No finer one is learned, and this one is taken to begin with; None: as usual on this channel.
    """

    def __init__(self, given: int | None, channel: Channel, finest: int | None = None) -> None:
        self._usual, self._smallest = finest or USUAL[channel], finest or _SMALLEST[channel]
        self.quantum = given or self._usual
        self._learns = given is None
        self._moves: Counter[int] = Counter()
        self._rises = self._falls = 0

    def take(self, readings: Readings) -> None:
        """Take the last reading."""
        if not self._learns or len(readings) < 2:
            return
        move = readings.values[-1] - readings.values[-2]
        if move:
            self._rises += move > 0
            self._falls += move < 0
            self._moves[abs(move)] += 1
            self.quantum = self._learned()
        self._learns = len(readings) < _LEARNS_UP_TO and len(self._moves) < _DISTINCT

    def _learned(self) -> int:
        coarsest = self._coarsest()
        if coarsest > self._usual and min(self._rises, self._falls) < _LEAST_MOVES:
            return self._usual
        return max(coarsest, self._smallest)

    def _coarsest(self) -> int:
        """Return the greatest number that divides nine of ten differences."""
        total, best = sum(self._moves.values()), math.gcd(*self._moves)
        for candidate in self._moves:
            fits = sum(count for move, count in self._moves.items() if move % candidate == 0)
            if candidate > best and fits >= _SHARE * total:
                best = candidate
        return best
