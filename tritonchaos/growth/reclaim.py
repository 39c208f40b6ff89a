"""Who holds what has grown: read off what returned it, on the reclaim ladder or by a trim of the allocators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from tritonchaos.observations import History, Reading
from tritonchaos.units import format_bytes
from tritonchaos.verdict import Ladder, Rung

_START: Final = "ladder_start"
# Reading after each rung, what was done, and who had held what it returned.
_RUNGS: Final = (
    ("ladder_good_load", "a good load", "instance or model"),
    ("ladder_unload_all", "unloading all models", "instance or model"),
    ("after_trim", "malloc_trim", "allocator or pool"),
    ("ladder_exit", "the end of the process", "backend or process"),
)
_NAMES: Final = frozenset({_START, "before_trim", *(name for name, _, _ in _RUNGS)})
_TRIM: Final = "malloc_trim"
_NOT_TRIMMED: Final = "allocator, backend or process"
_NOBODY: Final = "nobody in the server's process"
# What is only kept comes back nearly whole; the rest of a page that is partly in use does not.
_RETAINED_SHARE: Final = 0.8


def climb(history: History, metric: str, grown_bytes: int) -> Ladder | None:
    """Read the ladder of a metric; None where it was not climbed.

    Args:
        grown_bytes: What the judged cycles have added.
    """
    levels = _levels(history, metric)
    if _START not in levels or grown_bytes <= 0:
        return None
    rungs: list[Rung] = []
    before, returned, held_by = levels[_START], 0, ""
    for name, done, holder in _RUNGS:
        if name not in levels:
            continue
        rungs.append(Rung(done, levels[name], before - levels[name]))
        returned += before - levels[name]
        before = levels[name]
        if not held_by and returned * 2 >= grown_bytes:
            held_by = holder
    is_trimmed = any(rung.done == _TRIM for rung in rungs)
    if held_by == _RUNGS[-1][2] and not is_trimmed:
        held_by = _NOT_TRIMMED
    return Ladder(grown_bytes, tuple(rungs), held_by or _NOBODY)


class _Rungs:
    """Keeps the readings of ladders and trims: those by name, and every "loaded" one once a ladder has begun."""

    kinds: ClassVar[tuple[type, ...]] = (Reading,)

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self.readings: list[Reading] = []
        self._has_begun = False

    @property
    def kept(self) -> int:
        """How many it has."""
        return len(self.readings)

    def state(self) -> bool:
        """Say whether a ladder has begun."""
        return self._has_begun

    def resume(self, state: bool) -> None:
        """Go on from there."""
        self._has_begun = state

    def see(self, reading: Reading) -> None:
        """Take the next reading."""
        self._has_begun = self._has_begun or reading.name == _START
        if reading.name in _NAMES or (self._has_begun and reading.name == "loaded"):
            self.readings.append(reading)


def _readings(history: History) -> list[Reading]:
    return history.followed("rungs", _Rungs).readings


def _levels(history: History, metric: str) -> dict[str, int]:
    """Level after each rung, from the last start of the ladder on; of the process nothing is left after its end."""
    wanted = {name for name, _, _ in _RUNGS}
    levels: dict[str, int] = {}
    for reading in _readings(history):
        if reading.name == _START:
            levels.clear()
        elif reading.name not in wanted or not levels:
            continue
        if metric in reading.values:
            levels[reading.name] = reading.values[metric]
        elif reading.name == "ladder_exit" and not metric.startswith("nvml_device"):
            levels[reading.name] = 0
    return levels


def ladder_in_words(ladder: Ladder) -> str:
    """Say what each rung returned and who therefore held it."""
    told = ", ".join(f"{rung.done} {format_bytes(max(rung.returned_bytes, 0))}" for rung in ladder.rungs)
    return f"reclaim ladder: of {format_bytes(ladder.grown_bytes)} grown, {told} came back; held by {ladder.held_by}"


def footprint_on_ladder(history: History, metric: str) -> int:
    """Bytes of the ladder's good load while it was loaded, for runs in which no cycle loads well; 0 if not known."""
    loaded, has_begun = 0, False
    for reading in _readings(history):
        has_begun = has_begun or reading.name == _START
        if has_begun and reading.name == "loaded":
            loaded = max(loaded, reading.values.get(metric, 0))
        elif has_begun and reading.name == "ladder_good_load" and metric in reading.values:
            return max(0, loaded - reading.values[metric])
    return 0


def trimmed(history: History, metric: str) -> int | None:
    """Return the bytes that the last trim of the allocators has returned; None where there was none."""
    before: Mapping[str, int] = {}
    returned: int | None = None
    for reading in _readings(history):
        if reading.name == "before_trim":
            before = reading.values
        elif reading.name == "after_trim" and metric in before and metric in reading.values:
            returned = before[metric] - reading.values[metric]
    return returned


def is_retention(returned_bytes: int | None, grown_bytes: int) -> bool:
    """Say whether what has grown was free memory that the allocator only kept."""
    return returned_bytes is not None and grown_bytes > 0 and returned_bytes >= _RETAINED_SHARE * grown_bytes
