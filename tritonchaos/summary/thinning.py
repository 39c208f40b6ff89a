"""Makes long series short without losing a spike: the least and the most of each stretch stay."""

from __future__ import annotations

from collections.abc import Sequence


def thin(values: Sequence[float], at_most: int) -> list[int]:
    """Choose which values of a series to draw.

    The series is cut into equal stretches; of each the first, last, least and most are kept, so that a drawing no wider
    than the number of stretches looks as if all were drawn.

    Args:
        at_most: How many may be kept, 4 or more.

    Returns:
        Places in the series, ascending, each once, shape [kept]; all of them if there are no more than `at_most`.
    """
    if len(values) <= at_most:
        return list(range(len(values)))
    stretches = max(1, at_most // 4)
    kept: list[int] = []
    for stretch in range(stretches):
        start, end = (bound * len(values) // stretches for bound in (stretch, stretch + 1))
        part = values[start:end]
        least, most = part.index(min(part)), part.index(max(part))
        kept += sorted({start, start + least, start + most, end - 1})
    return kept
