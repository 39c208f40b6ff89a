"""Makes long series short without losing a spike: the least and the most of each stretch stay."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def thin(values: ArrayLike, at_most: int) -> list[int]:
    """Choose which values of a series to draw, in one pass.

    The series is cut into equal stretches; of each the first, last, least and most are kept, so that a drawing no wider
    than the number of stretches looks as if all were drawn.

    Args:
        values: Shape [values].
        at_most: How many may be kept, 4 or more.

    Returns:
        Places in the series, ascending, each once, shape [kept]; all of them if there are no more than `at_most`.
    """
    import numpy

    series = numpy.asarray(values)
    if len(series) <= at_most:
        return list(range(len(series)))
    stretches = max(1, at_most // 4)
    bounds = numpy.arange(stretches + 1) * len(series) // stretches
    found = [bounds[:-1], bounds[1:] - 1]
    for choose in (numpy.argmin, numpy.argmax):
        found.append(numpy.array([a + choose(series[a:b]) for a, b in pairwise(bounds.tolist())]))
    kept: list[int] = numpy.unique(numpy.concatenate(found)).tolist()
    return kept
