"""What a recorded series is, and what can be wrong with one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tritonchaos.post_unload import Channel

LARGEST: Final = 2**62  # bytes; what is above is no reading of memory
_SHOWN: Final = 40
_JSON_WORDS: Final = {None: "null", True: "true", False: "false"}


class SeriesFlaw(ValueError):
    """Something in a recorded series because of which nothing can be told from it; the text says what and where."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the user knows about the readings and the file may not say.

    Attributes:
        column: Name of the column of a CSV, or its number from 1; None: there is but one.
        channel: Where the readings come from; None: what the file says, or what the readings look like.
        quantum: Their granularity in bytes (1 for counts); None: what the file says, or learned from the readings.
    """

    column: str | None = None
    channel: Channel | None = None
    quantum: int | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A recorded series, to be read once.

    Attributes:
        id: Its name.
        values: Bytes (or a count) still in use after each cycle, oldest first. Raises SeriesFlaw where it cannot go on.
        arms: One letter per value, C for control and T for treatment; "": all are treatment.
        quantum: Granularity of the values in bytes (1 for counts); None: to be learned from them.
        footprint: Bytes that a loaded model takes; 0 if unknown.
    """

    id: str
    values: Iterator[int]
    arms: str = ""
    channel: Channel = Channel.DEVICE
    quantum: int | None = None
    footprint: int = 0


def stopped_by(flaw: SeriesFlaw | None) -> Iterator[int]:
    """Yield no value, and raise the flaw if there is one."""
    if flaw is not None:
        raise flaw
    yield from ()


def shown(found: object) -> str:
    """Print something that was found, cut short; what JSON has words for in those."""
    text = _JSON_WORDS.get(found, "") if found is None or isinstance(found, bool) else repr(found)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]}...{text[-1]}"


def whole(value: object, where: str) -> int:
    """Return a reading as a whole number of bytes.

    Raises:
        SeriesFlaw: It is none, or negative, or larger than any memory.
    """
    if type(value) is int and 0 <= value <= LARGEST:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SeriesFlaw(f"{where}: found {shown(value)}, expected a number of bytes")
    if value != value:
        raise SeriesFlaw(f"{where}: found NaN, expected a number of bytes; a reading that failed is no reading")
    if value < 0:
        number = int(value) if float(value).is_integer() else value
        raise SeriesFlaw(f"{where}: found {shown(number)}, a negative number; expected bytes in use, not a difference")
    if value > LARGEST:
        raise SeriesFlaw(f"{where}: found {shown(value)}, more than any memory has")
    return round(value)
