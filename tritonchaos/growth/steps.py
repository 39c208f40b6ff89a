"""The floor of a series, what was never given back, and the steps by which it rose."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Final, NamedTuple

from tritonchaos.growth.estimate import IRREGULAR, Steps
from tritonchaos.growth.noise import NoiseGate
from tritonchaos.growth.readings import Readings

_EVEN_FALLS: Final = 3
_OVERDUE: Final = 3  # longest periods after which a sawtooth has ended
_PERIOD: Final = 64  # cycles; longest sawtooth whose first trough is looked for
_SINGLE_ARM_START: Final = 2  # the first cycles of a series hold what is set up once


class FloorStep(NamedTuple):
    """The floor rose at a cycle.

    Attributes:
        cycle: Index in the series.
        size: Rise above the level of the step before, in bytes.
    """

    cycle: int
    size: int


@dataclass(frozen=True, slots=True)
class Floor:
    """The floor up to now.

    Attributes:
        start: Cycle from whose level growth is counted.
        known_to: Number of cycles whose floor is trusted.
        top: Floor of the last trusted cycle, in bytes: the last ledge.
        top_since: First cycle of the last ledge.
        ledges: Number of ledges below it.
        steps: Number of believed steps on both arms up to those.
        last_step: A believed step to the last ledge.
        falls: Number of believed falls, when they make a sawtooth; else 0.
        is_lowered: The last reading, which may turn out to be an outlier, has lowered it.
    """

    start: int
    known_to: int
    top: int
    top_since: int
    ledges: int
    steps: int
    last_step: FloorStep | None
    falls: int
    is_lowered: bool


class Staircase:
    """Keeps the floor as readings come in: its ledges, and the steps that are large enough to be believed.

    The floor of a cycle is the smallest reading from it on, outliers smoothed away: memory that was given back later
    was no leak. It rises only, so it is kept as a stack of ledges; a reading takes off those above it. Each ledge knows
    how many steps lead up to it, so that the cost of a reading does not grow with the length of the run.

    Source: a leak survives every later reclaim, as in Cork (POPL 2007) and LeakBot, where growth must survive
    collections.
    """

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._version = 0  # changes with the steps
        self._split: tuple[object, Steps, list[FloorStep]] | None = None
        self._begin(0, 1.0)

    def _begin(self, start: int, step: float) -> None:
        self.start, self.step = start, step
        self._levels = array("q")  # of each ledge, rising
        self._firsts = array("q")  # first cycle of each ledge
        self._marks = array("q")  # level of the last believed step up to each ledge
        self._counts = array("q")  # believed steps up to each ledge
        self._jumps = array("q")  # last ledge so far that rose by a whole step at once: its first cycle; else -1
        self._longest = array("q")  # longest time between two such jumps so far, in treatment cycles
        self._version += 1
        self._cycles = array("q")  # of each believed step
        self._sizes = array("q")
        self._trough = (-1, -1, 0, 0)  # where it was looked for, the level of the floor there, and where it was found
        self._falls = 0
        self._has_risen = False
        self._lowest: int | None = None
        self._last_fall = start
        self._longest_fall = 0
        self._fall_gaps = (0.0, 0.0)  # sum, sum of squares
        self._taken = 0

    def rebuild(self, start: int, step: float) -> None:
        """Build the staircase anew for another start or another smallest step."""
        taken = self._taken
        self._begin(start, step)
        smooth = self._readings.smooth
        for at in range(taken):
            self._take(at, smooth(at))

    def take(self) -> None:
        """Take the reading before the last, of which it is known by now whether it was an outlier."""
        at = len(self._readings) - 2
        if at >= 0:
            self._take(at, self._readings.smooth(at))

    def _take(self, at: int, value: int) -> None:
        self._taken = at + 1
        if at > self.start:
            self._note_moves(at, value)
        first, levels = at, self._levels
        while levels and levels[-1] > value:
            levels.pop()
            first = self._firsts.pop()
        if levels and levels[-1] == value:
            return
        self._forget(len(levels))
        self._push(first, value)

    def _note_moves(self, at: int, value: int) -> None:
        """Note a fall, if the readings rose by a step before: a pool that is given back bit by bit is no sawtooth."""
        if self._lowest is None:
            self._lowest = value
        self._has_risen = self._has_risen or value - self._lowest >= self.step
        self._lowest = min(self._lowest, value)
        if self._has_risen and self._readings.smooth(at - 1) - value >= self.step:
            self._note_fall(at)
            self._has_risen, self._lowest = False, value

    def _note_fall(self, at: int) -> None:
        self._falls += 1
        gap = at - self._last_fall
        self._longest_fall = max(self._longest_fall, gap)
        total, squares = self._fall_gaps
        self._fall_gaps = (total + gap, squares + gap * gap)
        self._last_fall = at

    def _forget(self, ledges: int) -> None:
        del self._marks[ledges:], self._counts[ledges:], self._jumps[ledges:], self._longest[ledges:]
        steps = self._counts[-1] if ledges else 0
        if steps < len(self._cycles):
            self._version += 1
            del self._cycles[steps:], self._sizes[steps:]

    def _push(self, first: int, value: int) -> None:
        self._levels.append(value)
        self._firsts.append(first)
        if first <= self.start or not self._marks:
            self._marks.append(value)
            self._counts.append(0)
            self._jumps.append(-1)
            self._longest.append(0)
            return
        mark, steps = self._marks[-1], self._counts[-1]
        if value - mark >= self.step:
            self._version += 1
            self._cycles.append(first)
            self._sizes.append(value - mark)
            mark, steps = value, steps + 1
        self._marks.append(mark)
        self._counts.append(steps)
        self._note_jump(first, value)

    def _note_jump(self, first: int, value: int) -> None:
        last, longest = self._jumps[-1], self._longest[-1]
        if value - self._levels[-2] >= self.step:
            longest = max(longest, self._between(last, first))
            last = first
        self._jumps.append(last)
        self._longest.append(longest)

    def _between(self, before: int, after: int) -> int:
        treated = self._readings.treated
        return treated[after] - treated[self.start if before < 0 else before]

    @property
    def falls_evenly(self) -> bool:
        """Say whether the readings fell three times or more, at even times."""
        if self._falls < _EVEN_FALLS:
            return False
        total, squares = self._fall_gaps
        mean = total / self._falls
        return squares / self._falls - mean * mean <= (IRREGULAR * mean) ** 2

    # --- now -------------------------------------------------------------------------------------

    def now(self, gate: NoiseGate) -> Floor:
        """Return the floor with the last reading laid over it, which may still turn out to be an outlier."""
        last = len(self._readings) - 1
        value = self._readings.smooth(last)
        falls, last_fall = self._sawtooth(last, value)
        known_to = last_fall if falls else max(last + 1 - gate.tail, self.start + 1)
        above = bisect_right(self._levels, value)
        is_lowered = above < len(self._firsts) and self._firsts[above] < known_to
        ledges = bisect_left(self._levels, value)
        first = self._firsts[ledges] if ledges < len(self._levels) else last
        if first >= known_to:
            ledges = bisect_left(self._firsts, known_to, 0, ledges) - 1
            first, value = self._firsts[ledges], self._levels[ledges]
        steps = self._counts[ledges - 1] if ledges else 0
        step = self._step_to(first, value, ledges)
        return Floor(self.start, known_to, value, first, ledges, steps, step, falls, is_lowered)

    def _step_to(self, first: int, value: int, ledges: int) -> FloorStep | None:
        if first <= self.start or not ledges:
            return None
        size = value - self._marks[ledges - 1]
        return FloorStep(first, size) if size >= self.step else None

    def _sawtooth(self, last: int, value: int) -> tuple[int, int]:
        """Return the number of falls and the last one, if they keep coming: two or more, and the next not overdue.

        The floor of a sawtooth is known only up to its last fall.
        """
        falls, last_fall, longest = self._falls, self._last_fall, self._longest_fall
        if last > self.start and self._has_risen and self._readings.smooth(last - 1) - value >= self.step:
            falls, last_fall, longest = falls + 1, last, max(longest, last - last_fall)
        if falls < 2 or last - last_fall > _OVERDUE * longest:
            return 0, last_fall
        return falls, last_fall

    def steps_of(self, floor: Floor) -> list[FloorStep]:
        """Return all believed steps, in order."""
        found = zip(self._cycles[: floor.steps], self._sizes[: floor.steps], strict=True)
        steps = [FloorStep(cycle, size) for cycle, size in found]
        return steps if floor.last_step is None else [*steps, floor.last_step]

    def split(self, floor: Floor) -> tuple[Steps, list[FloorStep]]:
        """Return the steps on treatment cycles, and those on control cycles."""
        key = (self._version, floor.steps, floor.last_step, len(self._readings) if self._readings.loads > 1 else 0)
        if self._split is None or self._split[0] != key:
            both = self.steps_of(floor)
            is_treatment = self._readings.is_treatment
            mine = [step for step in both if is_treatment(step.cycle)]
            cycles = [step.cycle for step in mine]
            steps = Steps(cycles, self._readings.clocks(cycles, floor.start), [step.size for step in mine])
            others = both if not mine else [step for step in both if not is_treatment(step.cycle)]
            self._split = (key, steps, others)
        return self._split[1], self._split[2]

    def has_treated_after(self, floor: Floor, cycle: int, count: int) -> bool:
        """Say whether so many believed steps happened on treatment cycles after a cycle."""
        at = bisect_right(self._cycles, cycle, 0, floor.steps)
        found = int(floor.last_step is not None and self._is_later(floor.last_step.cycle, cycle))
        while at < floor.steps and found < count:
            found += self._is_later(self._cycles[at], cycle)
            at += 1
        return found >= count

    def _is_later(self, step: int, cycle: int) -> bool:
        return step > cycle and self._readings.is_treatment(step)

    def level(self, floor: Floor, at: int) -> int:
        """Return the floor of a cycle, in bytes."""
        if at >= floor.top_since:
            return floor.top
        return self._levels[bisect_right(self._firsts, at, 0, floor.ledges) - 1]

    def first_within(self, floor: Floor, rise: float) -> int:
        """Return the first cycle whose floor is less than so many bytes below the top, and no higher."""
        ledge = bisect_right(self._levels, floor.top - rise, 0, floor.ledges)
        return self._firsts[ledge] if ledge < floor.ledges else floor.top_since

    def first_trough(self, floor: Floor, begin: int) -> int:
        """Return the first cycle of a sawtooth that lies on its floor: what it hides before is not known to be flat.

        It is looked for over one period, of 64 cycles at most. Readings that only fall, those of a pool that is given
        back bit by bit, hide nothing.
        """
        level, end = self.level(floor, begin), min(begin + min(self._longest_fall, _PERIOD) + 1, floor.known_to)
        if self._trough[:3] != (begin, end, level):
            self._trough = (begin, end, level, self._find_trough(begin, end, level))
        return self._trough[3]

    def _find_trough(self, begin: int, end: int, level: int) -> int:
        cycles = [self._readings.smooth(at) for at in range(begin, end)]
        if not cycles or max(cycles) <= cycles[0]:
            return begin
        return next((begin + at for at, value in enumerate(cycles) if value - level < self.step), end - 1)

    def last_jump(self, floor: Floor) -> int:
        """Return the last cycle up to now whose floor rose by a whole step at once; -1: none."""
        return self._with_last_ledge(floor)[0]

    def longest_between_jumps(self, floor: Floor) -> int:
        """Return the longest time between such jumps, the first counted from the start, in treatment cycles."""
        return self._with_last_ledge(floor)[1]

    def _with_last_ledge(self, floor: Floor) -> tuple[int, int]:
        if not floor.ledges:
            return -1, 0
        last, longest = self._jumps[floor.ledges - 1], self._longest[floor.ledges - 1]
        below = self._levels[floor.ledges - 1]
        first = floor.top_since
        if floor.top - below >= self.step and floor.start < first:
            return first, max(longest, self._between(last, first))
        return last, longest


def start_of(readings: Readings, interleaved: bool) -> int:
    """Return the cycle from whose level growth counts: what is set up once by the first cycles is no leak.

    The third cycle of a series, or the second treatment cycle after a control block.
    """
    block = 0 if interleaved else max(readings.block, 0)
    return min(block + 1 if block else _SINGLE_ARM_START, max(len(readings) - 1, 0))
