"""The lanes of the time line: each kind of step with its marks, few enough to be drawn."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LANES: Final = 24
_MARKS: Final = 600
_HELD: Final = 50_000
_OTHERS: Final = "other steps"


@dataclass(slots=True)
class Mark:
    """One or more steps of a lane.

    Attributes:
        outcome: OK, REFUSED (as expected) or UNMET, the worst of them.
        count: How many steps.
        place: Cycle of the worst of them, as a number among all cycles that were started; -1 outside cycles.
    """

    start_ns: int
    end_ns: int
    outcome: int
    count: int
    text: str
    place: int


class Lane:
    """Marks of one kind of step; where there are too many, neighbours in time are put together.

    Attributes:
        width_ns: Marks that begin within so much time are one; 0: each step has its own.
    """

    def __init__(self) -> None:
        self.width_ns = 0
        self._starts, self._ends, self._counts = array("q"), array("q"), array("q")
        self._outcomes, self._texts, self._places = array("q"), array("q"), array("q")
        self._columns = (self._starts, self._ends, self._counts, self._outcomes, self._texts, self._places)
        self._numbers: dict[str, int] = {}

    def add(self, mark: Mark) -> None:
        """Take a mark; they need not come in the order of time."""
        text = self._numbers.setdefault(mark.text, len(self._numbers))
        row = (mark.start_ns, mark.end_ns, mark.count, mark.outcome, text, mark.place)
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        if len(self._starts) >= _HELD:
            self._thin()

    def spread(self, mark: Mark, shifts_ns: NDArray[Any], places: NDArray[Any]) -> None:
        """Take marks that differ in nothing but their time and their cycle.

        Args:
            shifts_ns: How much later than `mark` each is, shape [marks].
            places: Shape [marks].
        """
        import numpy

        alike = numpy.ones(len(places), numpy.int64)
        text = self._numbers.setdefault(mark.text, len(self._numbers))
        rows = (shifts_ns + mark.start_ns, shifts_ns + mark.end_ns, alike, alike * mark.outcome, alike * text, places)
        for column, row in zip(self._columns, rows, strict=True):
            column.frombytes(numpy.asarray(row, numpy.int64).tobytes())
        if len(self._starts) >= _HELD:
            self._thin()

    def marks(self) -> list[Mark]:
        """Return the marks in the order of time."""
        if len(self._starts) > 2 * _MARKS or self.width_ns:
            self._thin()
        texts = list(self._numbers)
        rows = sorted(zip(*self._columns, strict=True))
        return [
            Mark(start, end, outcome, count, texts[text], place) for start, end, count, outcome, text, place in rows
        ]

    def _thin(self) -> None:
        """Put together what begins in the same stretch of time; the first of the worst gives text and cycle."""
        import numpy

        starts, ends, counts, outcomes, texts, places = (numpy.array(column) for column in self._columns)
        first_ns = starts.min()
        self.width_ns = max(self.width_ns, int(-(-(starts.max() - first_ns + 1) // _MARKS)))
        bins = (starts - first_ns) // self.width_ns
        order = numpy.lexsort((starts, -outcomes, bins))
        heads = numpy.flatnonzero(numpy.diff(bins[order], prepend=-1))
        worst = order[heads]
        thinned = (
            numpy.minimum.reduceat(starts[order], heads),
            numpy.maximum.reduceat(ends[order], heads),
            numpy.add.reduceat(counts[order], heads),
            outcomes[worst],
            texts[worst],
            places[worst],
        )
        for column, kept in zip(self._columns, thinned, strict=True):
            del column[:]
            column.frombytes(kept.astype(numpy.int64).tobytes())


class Lanes:
    """All lanes by their label; at most 24, the others share one."""

    def __init__(self) -> None:
        self.by_label: dict[str, Lane] = {}

    def of(self, label: str, *, is_always_shown: bool = False) -> Lane:
        """Return the lane of a label."""
        if label not in self.by_label and len(self.by_label) >= _LANES and not is_always_shown:
            label = _OTHERS
        if label not in self.by_label:
            self.by_label[label] = Lane()
        return self.by_label[label]
