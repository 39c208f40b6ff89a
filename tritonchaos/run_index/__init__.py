"""The runs of a folder in one SQLite file, which the folders can make again at any time, and how they developed."""

from tritonchaos.run_index.index import INDEX_FILE, index_runs
from tritonchaos.run_index.records import IndexedRun
from tritonchaos.run_index.trends import ScenarioTrend, VersionRuns, trends

__all__ = ["INDEX_FILE", "IndexedRun", "ScenarioTrend", "VersionRuns", "index_runs", "trends"]
