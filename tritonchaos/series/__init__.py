"""Series of memory that were recorded elsewhere: read from JSON lines, CSV or nvidia-smi's log, and judged."""

from tritonchaos.series.judging import BUDGET, SeriesVerdict, judge_series
from tritonchaos.series.reading import read_series
from tritonchaos.series.records import Expected, Series, SeriesFlaw

__all__ = ["BUDGET", "Expected", "Series", "SeriesFlaw", "SeriesVerdict", "judge_series", "read_series"]
