"""What the allocator of the host explains without a leak."""

from __future__ import annotations

from typing import Final

from tritonchaos.growth.trial import Trial
from tritonchaos.post_unload import Channel
from tritonchaos.units import KIB, MIB

_NEED_STEADY: Final = 24  # treatment cycles after which even growth is a leak
_NEED_IRREGULAR: Final = 30
# Every load thread has its own arena, and the first load on it takes 152 KiB for good (glibc, Triton 2.51, which has 4
# load threads; seen with 32): with N of them, growth is as even as a leak for N - 1 cycles. 80 cycles cover N = 64.
_NEED_ALONE: Final = 80
_ARENA: Final = 256 * KIB  # per cycle; below it, growth may be arenas used for the first time
# Once all arenas are in use no cycle of 7,000 took more than 44 KiB (python backend, once per HTTP thread), in-process
# backends 12 KiB.
SMALLEST_ALONE: Final = 48 * KIB
_SMALL: Final = 64 * KIB  # per cycle; below it, a failed load may touch its code and heap for the first time
SMALL_TOTAL: Final = MIB  # ten times what failed loads after good ones took until they were flat


def cycles_needed(trial: Trial) -> int:
    """Return the treatment cycles after which the allocator no longer explains even growth, on the host or elsewhere.

    Elsewhere it is the time that caches, pools and contexts get to fill.
    """
    steady = _NEED_IRREGULAR if trial.is_irregular else _NEED_STEADY
    if trial.channel is not Channel.HOST or trial.has_flat_control or trial.rate is None:
        return steady
    return steady if trial.grown_per_reading >= _ARENA else _NEED_ALONE


def is_small(trial: Trial) -> bool:
    """Say whether host growth is so small that what is touched for the first time may explain it."""
    return trial.channel is Channel.HOST and trial.rate is not None and trial.rate.bytes_per_cycle < _SMALL


def may_explain(trial: Trial) -> bool:
    """Say whether the allocator may explain the growth, however even it is.

    Without a control arm that went flat a host leak is claimed only where each cycle, the later ones too, takes more
    than a warm allocator ever took; it takes no more for 32 loads before a reading than for one. With such an arm,
    smaller growth is a leak once it adds up to more than any warm-up.
    """
    if trial.channel is not Channel.HOST or trial.rate is None:
        return False
    if trial.has_flat_control:
        return is_small(trial) and trial.grown(0, trial.end) < SMALL_TOTAL
    later = trial.grown(trial.end / 2, trial.end) / (trial.end / 2)
    return min(trial.rate.low, later) * trial.loads < SMALLEST_ALONE
