"""Which channel a series comes from, where its file does not say."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, islice

from tritonchaos.post_unload import Channel
from tritonchaos.series.records import Expected, SeriesFlaw, stopped_by
from tritonchaos.units import KIB, MIB

_LOOKED_AT = 64
_HOST_WORDS = ("rss", "pss", "uss", "private", "host_", "resident")
_DEVICE_WORDS = ("nvml", "gpu", "cuda", "device", "memory.used")


def find_channel(
    values: Iterator[int], name: str, expected: Expected, channel: Channel | None = None
) -> tuple[Iterator[int], Channel]:
    """Find the channel: what the user says, else what the file says, else what the first values look like.

    Args:
        name: Of the metric or column, which may tell where it comes from.
        channel: What the file says.

    Returns:
        The same values again, and their channel.
    """
    channel = expected.channel or channel or _by_name(name)
    if channel is None:
        first, values = _peek(values)
        channel = _by_looks(first)
    return values, channel


def _by_name(name: str) -> Channel | None:
    small = name.lower()
    if any(word in small for word in _HOST_WORDS):
        return Channel.HOST
    return Channel.DEVICE if any(word in small for word in _DEVICE_WORDS) else None


def _by_looks(first: list[int]) -> Channel:
    """Tell by the largest power of two that divides all: whole MiB are the device's, whole pages the host's."""
    common = math.gcd(*first) if first else 0
    if common % MIB == 0:
        return Channel.DEVICE
    return Channel.HOST if common % (4 * KIB) == 0 or max(first) >= MIB else Channel.COUNT


def _peek(values: Iterator[int]) -> tuple[list[int], Iterator[int]]:
    """Look at the first values; a flaw among them is raised where it stands, not here."""
    first: list[int] = []
    found: SeriesFlaw | None = None
    try:
        for value in islice(values, _LOOKED_AT):
            first.append(value)
    except SeriesFlaw as flaw:
        found = flaw
    return first, chain(first, stopped_by(found), values)
